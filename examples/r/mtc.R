# SPDX-License-Identifier: Apache-2.0
#
# MTC for R: source("mtc.R"). Matrices, arrays, factors and whole numbers are given as R users write them, and
# predictions and histories come back as R's own. Arrays pass as bytes, so any version of reticulate and NumPy will do.
library(reticulate)

mtc <- import("mtc", convert = FALSE)
np <- import("numpy", convert = FALSE)

# What Python takes: arrays of float32 or int32, whole numbers as integers, lists item by item.
as_python <- function(x) {
  if (is.factor(x)) x <- as.integer(x) - 1L
  if (is.list(x) && !inherits(x, "python.builtin.object")) return(lapply(x, as_python))
  if (!is.numeric(x)) return(x)
  if (length(x) == 1 && is.null(dim(x))) return(if (x == round(x) && abs(x) < 2^31) as.integer(x) else x)
  type <- if (is.integer(x)) "int32" else "float32"
  size <- if (is.null(dim(x))) length(x) else dim(x)
  bytes <- writeBin(if (type == "int32") as.integer(x) else as.double(x), raw(), size = 4)
  array <- np$frombuffer(r_to_py(bytes), dtype = type) # in R's order, the first axis fastest
  array$reshape(r_to_py(as.list(as.integer(rev(size)))))$T
}

# What R takes: an array of Python with its dimensions.
as_r <- function(x) {
  x <- np$asarray(x, dtype = "float64")
  size <- as.integer(unlist(py_to_r(x$shape)))
  values <- as.numeric(unlist(py_to_r(x$ravel(order = "F")$tolist())))
  if (length(size) > 1) array(values, size) else values
}

# Trains a Keras model, and returns a data frame with a row for each epoch. The arguments are those of mtc.fit.
mtc_fit <- function(model, x, y = NULL, ...) {
  history <- do.call(mtc$fit, c(list(model, as_python(x), as_python(y)), as_python(list(...))))
  data.frame(lapply(py_to_r(history$history), unlist))
}

# The outputs of a Keras model, as a matrix or an array.
mtc_predict <- function(model, x, ...) as_r(do.call(mtc$predict, c(list(model, as_python(x)), as_python(list(...)))))

# Losses and metrics, as a named vector.
mtc_evaluate <- function(model, x, y, ...) {
  arguments <- c(list(model, as_python(x), as_python(y), return_dict = TRUE), as_python(list(...)))
  unlist(py_to_r(do.call(mtc$evaluate, arguments)))
}
