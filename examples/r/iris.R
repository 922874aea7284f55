# SPDX-License-Identifier: Apache-2.0
#
# A matrix and a factor of R train a Keras model: Rscript iris.R, in this folder.
source("mtc.R")
keras <- import("keras", convert = FALSE)
keras$utils$set_random_seed(1L)

x <- scale(as.matrix(iris[, 1:4]))
model <- keras$Sequential(list(keras$Input(shape = list(4L)), keras$layers$Dense(16L, "tanh"), keras$layers$Dense(3L)))
model$compile(optimizer = keras$optimizers$Adam(0.05), metrics = list("accuracy"),
              loss = keras$losses$SparseCategoricalCrossentropy(from_logits = TRUE))
history <- mtc_fit(model, x, iris$Species, epochs = 20, batch_size = 32, verbose = 0)
print(tail(history, 1))
print(mtc_evaluate(model, x, iris$Species, verbose = 0))
logits <- mtc_predict(model, x, verbose = 0)
print(dim(logits))
print(mean(max.col(logits) == as.integer(iris$Species)))
