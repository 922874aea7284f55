#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of test/keras/data with Keras, and what Keras computes with them. For maintainers.

    pip install jax keras safetensors && test/keras/make.py [NAME ...]

NAME.keras is a small model, trained for STEPS steps so that its optimizer has a state; its members are deflated.
NAME.safetensors holds a batch (`input/NAME`, `target/NAME`), the outputs on it (`output/NAME`), the mean loss (`loss`),
metrics (`metric/NAME`) and weights of samples (`weight/NAME`) where there are some, and every variable after one more
step on it (`after/PATH`).
"""
import io
import os
import pathlib
import sys
import zipfile

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras
import numpy as np
from keras import layers as L
from keras import ops
from safetensors.numpy import save_file

jax.config.update("jax_default_matmul_precision", "highest")
HERE = pathlib.Path(__file__).parent / "data"
ROWS, STEPS = 6, 2
CROSSENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def shared():
    """Two inputs, a layer called twice, two outputs with weights of their own."""
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    twice = L.Dense(5, activation="tanh", name="twice")
    x, y = twice(a), twice(b)
    left = L.Dense(3, name="left")(L.Add()([x, y]))
    right = L.Dense(1, name="right")(L.Multiply()([x, y]))
    model = keras.Model([a, b], [left, right], name="shared")
    model.compile(keras.optimizers.Adam(0.01), loss=[CROSSENTROPY, "mse"], loss_weights=[1.0, 0.5])
    return model


def nested():
    """A Sequential and a functional model inside another, one of them frozen and called twice."""
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="relu"), L.Dense(4)], name="inner")
    i = keras.Input((4,))
    block = keras.Model(i, L.Dense(4, activation="sigmoid", name="gate")(i), name="block")
    block.trainable = False
    i = keras.Input((4,), name="x")
    model = keras.Model(i, L.Dense(3, name="top")(block(L.Add()([block(i), inner(i)]))), name="nested")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), loss=CROSSENTROPY)
    return model


def activations():
    i = x = keras.Input((5,), name="x")
    for layer in (L.ReLU(), L.ReLU(max_value=6, negative_slope=0.1), L.LeakyReLU(), L.LeakyReLU(0.1), L.PReLU(),
                  L.Activation("tanh"),
                  L.Activation("sigmoid"), L.Activation("relu6"), L.Activation("leaky_relu"), L.Softmax()):
        x = L.Add()([layer(L.Dense(5)(x)), x])
    for name in ("log_softmax", "exponential", "linear"):
        x = L.Dense(4, activation=name)(x)
    model = keras.Model(i, L.Dense(3, activation="softmax")(x), name="activations")
    model.compile(keras.optimizers.RMSprop(0.003, momentum=0.5), loss="sparse_categorical_crossentropy")
    return model


def shapes():
    i = keras.Input((12,), name="x")
    x = L.Reshape((3, -1))(i)
    x = L.Dense(6, activation="relu")(L.Permute((2, 1))(x))
    x = L.Flatten()(x)
    x = L.RepeatVector(2)(x)
    x = L.Flatten()(L.Dense(3)(x))
    model = keras.Model(i, L.Dense(2)(x), name="shapes")
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.02), loss="mae")
    return model


def merging():
    i = keras.Input((6,), name="x")
    a, b, c = (L.Dense(5, name=n)(i) for n in "abc")
    parts = [L.Subtract()([a, b]), L.Average()([a, b, c]), L.Maximum()([a, c]), L.Minimum()([b, c]),
             L.Multiply()([a, b, c])]
    model = keras.Model(i, L.Dense(3)(L.Add()(parts)), name="merging")
    model.compile(keras.optimizers.Lion(0.01),
                  loss=keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1))
    return model


def operators():
    i = keras.Input((5,), name="x")
    normal = L.Normalization()
    normal.adapt(np.random.default_rng(3).normal(2, 3, (50, 5)))
    x = L.Rescaling([1.0, 0.5, 2.0, 1.0, 1.0], offset=0.1)(normal(i))
    y = L.Dense(5)(x)
    z = (x * 2.0 - y) / 3.0 + ops.maximum(x, y) * ops.minimum(y, 0.5) + (1.0 - ops.tanh(y)) + ops.abs(x) - (-y)
    z = z + ops.square(y) + ops.sqrt(ops.exp(y)) + ops.relu(x) + ops.sigmoid(y)
    model = keras.Model(i, L.Dense(1, activation="sigmoid")(z), name="operators")
    model.compile(keras.optimizers.SGD(0.01), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def convolutions():
    i = keras.Input((9, 8, 3), name="x")
    a = L.Conv2D(4, 3, strides=2, padding="same", activation="relu")(i)
    b = L.Conv2D(4, (2, 3), dilation_rate=(2, 1), groups=2, padding="same", use_bias=False)(a)
    c = L.DepthwiseConv2D(3, depth_multiplier=2, padding="same", activation="tanh")(L.Add()([a, b]))
    d = L.SeparableConv2D(5, 3)(c)
    e = L.Conv2DTranspose(3, 3, strides=2, padding="same", kernel_regularizer=keras.regularizers.L2(0.01))(d)
    f = L.Conv2DTranspose(3, 2, strides=3)(e)
    model = keras.Model(i, L.Dense(4)(L.GlobalAveragePooling2D()(f)), name="convolutions")
    model.compile(keras.optimizers.Adam(0.01, clipnorm=0.5), loss=CROSSENTROPY)
    return model


def sequences():
    i = keras.Input((10,), dtype="int32", name="ids")
    x = L.Embedding(7, 6)(i)
    x = L.Conv1D(8, 3, padding="causal", activation="gelu")(x)
    x = L.AveragePooling1D(2, padding="same")(L.SeparableConv1D(8, 3, padding="same")(x))
    x = L.Concatenate()([L.MaxPooling1D(2)(x), L.Cropping1D((0, 3))(x)])
    x = L.ZeroPadding1D((1, 2))(L.UpSampling1D(2)(x))
    x = L.Concatenate()([L.GlobalMaxPooling1D()(x), L.GlobalAveragePooling1D()(x)])
    model = keras.Model(i, L.Dense(3)(x), name="sequences")
    model.compile(keras.optimizers.Nadam(0.01), loss=CROSSENTROPY)
    return model


def images():
    i = keras.Input((7, 6, 2), name="x")
    a = L.MaxPooling2D((2, 3), strides=(2, 1), padding="same")(i)
    b = L.AveragePooling2D(3, strides=2, padding="same")(L.ZeroPadding2D(((1, 0), (2, 1)))(i))
    c = L.UpSampling2D((2, 3))(L.Cropping2D(((1, 2), (1, 0)))(i))
    parts = [L.Flatten()(t) for t in (a, b, c)] + [L.GlobalMaxPooling2D()(i)]
    model = keras.Model(i, L.Dense(2)(L.Concatenate(axis=1)(parts)), name="images")
    model.compile(keras.optimizers.Adagrad(0.01, weight_decay=0.01, clipvalue=0.1), loss="huber")
    return model


def normal():
    i = keras.Input((4, 4, 6), name="x")
    x = L.BatchNormalization()(L.Conv2D(6, 1)(i))
    x = L.BatchNormalization(scale=False, momentum=0.9, epsilon=1e-4)(x)
    frozen = L.BatchNormalization(center=False)
    frozen.trainable = False
    x = L.GroupNormalization(3)(L.LayerNormalization()(frozen(x)))
    x = L.UnitNormalization()(L.Dropout(0.0)(x))
    model = keras.Model(i, L.Dense(3)(L.Flatten()(x)), name="normal")
    model.compile(keras.optimizers.Adamax(keras.optimizers.schedules.CosineDecay(0.01, 10)), loss=CROSSENTROPY)
    return model


def curves():
    """Every activation by name; averages of the variables."""
    i = x = keras.Input((5,), name="x")
    for name in ("elu", "celu", "selu", "gelu", "silu", "softplus", "softsign", "log_sigmoid", "hard_sigmoid",
                 "hard_silu", "hard_tanh", "mish", "squareplus"):
        x = L.Dense(5, activation=name, kernel_regularizer="l1" if name == "elu" else None)(x)
    x = L.ELU(0.5)(x)
    model = keras.Model(i, L.Dense(3, activation="softmax",
                                   activity_regularizer=keras.regularizers.L1L2(0.01, 0.02))(x), name="curves")
    model.compile(keras.optimizers.Adam(0.01, amsgrad=True, use_ema=True), loss="kl_divergence")
    return model


def attention():
    i, j = keras.Input((6, 8), name="x"), keras.Input((5, 4), name="y")
    a = L.MultiHeadAttention(2, 3)(i, i, use_causal_mask=True)
    b = L.MultiHeadAttention(3, 4, use_bias=False, output_shape=7, kernel_regularizer="l2")(a, j)
    c = L.MultiHeadAttention(2, 4, use_gate=True, sliding_window=2)(b, b)
    d = L.MultiHeadAttention(1, 5)(c, b, c, attention_mask=ops.matmul(b, ops.swapaxes(b, 1, 2)) > 0)
    e = L.Dot((2, 2))([d, b])
    f = L.Dot(1, normalize=True)([e, d])
    model = keras.Model([i, j], L.Dense(3)(L.Flatten()(f)), name="attention")
    model.compile(keras.optimizers.Adam(0.01), loss=CROSSENTROPY)
    return model


def grouped():
    """Heads of queries that share those of keys; keys of another length; masks and a window."""
    i, j = keras.Input((7, 6), name="x"), keras.Input((5, 6), name="y")
    a = L.GroupQueryAttention(3, 4, 2)(i, i, use_causal_mask=True)
    b = L.GroupQueryAttention(2, 3, 1, use_bias=False, kernel_regularizer="l2")(a, j)
    c = L.GroupQueryAttention(4, 2, 2, use_gate=True, sliding_window=3)(b, b)
    d = L.GroupQueryAttention(5, 2, 1)(c, b, c, attention_mask=ops.matmul(b, ops.swapaxes(b, 1, 2)) > 0)
    model = keras.Model([i, j], L.Dense(3)(L.Flatten()(L.Add()([d, c]))), name="grouped")
    model.compile(keras.optimizers.SGD(0.1), loss=CROSSENTROPY)
    return model


def tensors():
    """Functions on tensors."""
    i = keras.Input((4, 6), name="x")
    a = L.Dense(6)(i)
    b = a[:, 1:4] @ ops.transpose(i, (0, 2, 1))
    b = ops.swapaxes(b, 1, -1)[..., ::2]
    c = ops.stack([ops.sum(a, axis=-1), ops.max(i, axis=2), ops.mean(a, axis=-1), ops.min(a, axis=2),
                   ops.var(a, axis=-1), ops.std(i, axis=-1), ops.logsumexp(a, axis=-1)], axis=1)
    d = ops.concatenate([ops.reshape(b, (-1, 8)), ops.squeeze(ops.expand_dims(a[:, 0], 1), axis=1), a[:, -1, None, 2]],
                        axis=-1)
    e = (ops.where(a > 0.2, a**2, ops.clip(a, -0.5, 3)) + ops.softmax(a, axis=1) + ops.gelu(a)
         + ops.leaky_relu(a, 0.1) + ops.flip(a, axis=1))
    e = (e + ops.rsqrt(ops.square(a) + 1) + ops.sin(a) * ops.cos(a) + ops.erf(a) + 1 / (a * a + 1.0)
         + ops.moveaxis(ops.moveaxis(a, 1, 2), 2, 1) ** 3)
    x = ops.concatenate([L.Flatten()(c), d, L.Flatten()(L.Softmax(axis=[1, 2])(e)), L.Flatten()(L.Softmax(axis=1)(e))],
                        axis=1)
    model = keras.Model(i, L.Dense(3)(x), name="tensors")
    model.compile(keras.optimizers.SGD(0.1), loss=CROSSENTROPY)
    return model


def resized():
    i = keras.Input((7, 5, 2), name="x")
    x = L.Conv2D(3, 3, padding="same")(i)
    a = L.Resizing(5, 9)(x)
    b = L.Resizing(10, 4, interpolation="nearest")(x)
    c = L.Resizing(4, 3, antialias=True, crop_to_aspect_ratio=True)(x)
    d = L.Resizing(8, 8, interpolation="bicubic", pad_to_aspect_ratio=True, fill_value=0.5)(x)
    e = L.UpSampling2D((2, 3), interpolation="bilinear")(x)
    f = L.Resizing(4, 11, interpolation="lanczos3")(x)
    x = L.Concatenate()([L.Flatten()(t) for t in (a, b, c, d, e, f)])
    model = keras.Model(i, L.Dense(3)(x), name="resized")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def augmented():
    """Random layers with ranges of one number, so that Keras' numbers can be met."""
    i = keras.Input((6, 7, 2), name="x")
    x = L.RandomTranslation((0.2, 0.2), (-0.3, -0.3), fill_mode="constant", fill_value=0.3)(i)
    x = L.RandomZoom((0.3, 0.3), (-0.2, -0.2))(L.Conv2D(3, 3)(x))
    x = L.RandomRotation((0.07, 0.07), fill_mode="wrap")(x)
    x = L.RandomTranslation((-0.6, -0.6), (0.15, 0.15), interpolation="nearest", fill_mode="nearest")(x)
    x = L.RandomContrast((0.0, 0.0), value_range=(-1, 1))(x)
    model = keras.Model(i, L.Dense(3)(L.Flatten()(x)), name="augmented")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def turned():
    """Normalisations along other axes than the last; layers as activations; penalties of activities; more rows behind a
    transposed convolution."""
    i = keras.Input((5, 4, 3), name="x")
    numbers = L.Normalization(axis=(1, 3))
    numbers.adapt(np.random.default_rng(3).normal(1, 2, (50, 5, 4, 3)))
    x = L.BatchNormalization(axis=1)(L.Conv2D(4, 1, activation=L.LeakyReLU(0.1))(numbers(i)))
    x = L.GroupNormalization(2, axis=2)(L.UnitNormalization(axis=[1, 3])(x))
    x = L.Identity()(L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1,
                                       activation=L.ReLU(max_value=1.5))(x))
    x = L.ActivityRegularization(l1=0.01, l2=0.02)(L.Conv2DTranspose(2, 2, strides=(3, 2), output_padding=(2, 0))(x))
    for name in ("hard_shrink", "soft_shrink", "tanh_shrink"):
        x = L.Add()([L.Activation(name)(x), x])
    model = keras.Model(i, L.Dense(3)(L.GlobalAveragePooling2D()(x)), name="turned")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def places():
    """Attention over some axes of images."""
    i = keras.Input((3, 4, 6), name="x")
    a = L.MultiHeadAttention(2, 3, attention_axes=(2,))(i, i)
    b = L.MultiHeadAttention(2, 2, attention_axes=(1,), value_dim=3, use_bias=False)(a, i)
    c = L.MultiHeadAttention(1, 4, output_shape=(2, 3))(b, a)
    model = keras.Model(i, L.Dense(3)(L.Flatten()(c)), name="places")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def named():
    """Dictionaries of inputs and outputs, of a nested model too; losses by their keys; an output that stands twice."""
    a, b = keras.Input((4,), name="one"), keras.Input((3,), name="two")
    inner = keras.Model({"two": b, "one": a}, {"sum": L.Dense(3)(L.Concatenate()([b, a]))}, name="inner")
    p, q = keras.Input((3,), name="p"), keras.Input((4,), name="q")
    x = inner({"one": q, "two": p})["sum"]
    model = keras.Model({"k2": p, "k1": q}, {"right": x, "left": L.Dense(2)(x), "again": x}, name="named")
    model.compile(keras.optimizers.SGD(0.1), loss={"left": CROSSENTROPY, "again": "mse", "right": "mae"},
                  loss_weights={"left": 1.0, "right": 0.25, "again": 0.5})
    return model


def counted():
    """Metrics that count, a summed loss, weights of samples."""
    i = keras.Input((4,), name="x")
    model = keras.Model(i, L.Dense(3, activation="sigmoid")(i), name="counted")
    m = keras.metrics
    model.compile(keras.optimizers.SGD(0.02), loss=keras.losses.BinaryCrossentropy(reduction="sum"),
                  metrics=[m.Precision(name="precision"), m.Recall(thresholds=0.3, name="recall"),
                           m.F1Score(average="micro", threshold=0.4), "mae"],
                  weighted_metrics=["binary_accuracy", m.Precision(name="weighted_precision")])
    return model


def areas():
    """Metrics that are formulas of counts; the last batch of a class has no positives."""
    i = keras.Input((4,), name="x")
    model = keras.Model(i, L.Dense(3, activation="sigmoid")(i), name="areas")
    m = keras.metrics
    given = [m.AUC(name="roc"), m.AUC(curve="PR", name="pr", num_thresholds=9),
             m.AUC(name="uneven", thresholds=[0.7, 0.2, 0.45]),
             m.AUC(name="even", thresholds=[0.5, 0.25, 0.75]), m.AUC(multi_label=True, num_labels=3, name="labels"),
             m.AUC(multi_label=True, num_labels=3, curve="PR", name="pr_labels"),
             m.AUC(from_logits=True, name="logits"),
             m.F1Score(name="each"), m.F1Score(average="macro", threshold=0.4, name="macro"),
             m.F1Score(average="weighted", name="weighted"),
             m.RootMeanSquaredError()]
    again = [type(x).from_config(x.get_config() | {"name": "w_" + x.name}) for x in given]
    model.compile(keras.optimizers.SGD(0.02), loss="binary_crossentropy", metrics=given, weighted_metrics=again)
    return model


def constants():
    """Arrays in the graph, and positions: as Keras bakes them in, and learnt."""
    i = keras.Input((6,), dtype="int32", name="ids")
    places = L.Embedding(6, 4, name="places")(ops.zeros_like(i) + ops.arange(6))
    x = L.Embedding(7, 4, name="tokens")(i) + places + L.Embedding(6, 4)(ops.arange(6))
    x = x * np.linspace(0.5, 1, 4, dtype="float32") - ops.convert_to_tensor(np.full((1, 6, 4), 0.25, "float32"))
    x = ops.where(np.tril(np.ones((6, 4))) > 0, x, -0.5) + ops.where(x > np.zeros((6, 1), "float32"), x, 0.1)
    x = L.MultiHeadAttention(2, 3)(x, x, attention_mask=np.tril(np.ones((1, 6, 6))) > 0)
    x = ops.matmul(x, np.arange(12, dtype="float32").reshape(4, 3) / 10)
    model = keras.Model(i, L.Dense(3)(L.Flatten()(x)), name="constants")
    model.compile(keras.optimizers.SGD(0.1), loss=CROSSENTROPY)
    return model


def distributed():
    """A layer at each step of a sequence."""
    i = keras.Input((5, 4), name="x")
    x = L.TimeDistributed(L.Dense(6, activation="tanh", kernel_regularizer="l2"), name="steps")(i)
    x = L.TimeDistributed(L.LayerNormalization())(x)
    x = L.TimeDistributed(L.Dense(2, use_bias=False, trainable=False))(L.TimeDistributed(L.Activation("relu"))(x))
    model = keras.Model(i, L.Dense(3)(L.Flatten()(x)), name="distributed")
    model.compile(keras.optimizers.Adam(0.01), loss=CROSSENTROPY)
    return model


def tied():
    """A table that is the embedding and, in reverse, the head; its logits are capped."""
    i = keras.Input((5,), dtype="int32", name="ids")
    tokens = L.ReversibleEmbedding(7, 4, logit_soft_cap=3.0, embeddings_initializer="glorot_normal", name="tokens")
    x = tokens(i)
    x = L.LayerNormalization()(x + L.Dense(4, activation="gelu")(x))
    model = keras.Model(i, tokens(x, reverse=True), name="tied")
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.02, global_clipnorm=0.5), loss=CROSSENTROPY)
    return model


def recurrent():
    """Recurrent layers of each cell, forwards and backwards, that give their states to one another."""
    i = keras.Input((5, 4), name="x")
    x = L.LSTM(6, return_sequences=True, kernel_regularizer="l2", recurrent_regularizer="l1")(i)
    y, h, c = L.LSTM(3, return_state=True, return_sequences=True, go_backwards=True, unit_forget_bias=False)(x)
    z = L.LSTM(3, activation="softsign", recurrent_activation="hard_sigmoid", use_bias=False)(x, initial_state=[c, h])
    g = L.GRU(4, return_sequences=True)(y)
    g = L.GRU(3, reset_after=False, go_backwards=True)(g, initial_state=z)
    k = L.GRU(5, use_bias=False, unroll=True)(y)
    s, t = L.SimpleRNN(3, return_state=True)(x)
    x = L.Concatenate()([h, c, g, k, s, t, L.SimpleRNN(2, activation="relu", go_backwards=True)(y)])
    model = keras.Model(i, L.Dense(3)(x), name="recurrent")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def directions():
    """Both directions, merged in each way; cells on top of one another."""
    i = keras.Input((4, 3), name="x")
    a = L.Bidirectional(L.LSTM(4, return_sequences=True))(i)
    b = L.Bidirectional(L.GRU(4), merge_mode="sum")(a)
    c = L.Bidirectional(L.SimpleRNN(4, return_sequences=True), merge_mode="mul",
                        backward_layer=L.SimpleRNN(4, activation="relu", return_sequences=True, go_backwards=True))(a)
    d, e = L.Bidirectional(L.GRU(4, go_backwards=True, return_sequences=True), merge_mode=None,
                           backward_layer=L.GRU(4, return_sequences=True))(c)
    f, *states = L.Bidirectional(L.LSTM(4, return_state=True), merge_mode="ave")(d)
    g = L.RNN([L.LSTMCell(3), L.GRUCell(5), L.LSTMCell(4)], go_backwards=True, return_sequences=True)(L.Add()([d, e]))
    h = L.RNN(L.GRUCell(4, reset_after=False), name="alone")(g)
    k = L.Bidirectional(L.RNN(L.SimpleRNNCell(2)))(g)
    x = L.Concatenate()([b, f, *states, h, k])
    model = keras.Model(i, L.Dense(3)(x), name="directions")
    model.compile(keras.optimizers.Adam(0.01), loss=CROSSENTROPY)
    return model


def masked():
    """Masks of an embedding and of a layer, through recurrent layers and to the loss and the metric."""
    i, j = keras.Input((5,), dtype="int32", name="ids"), keras.Input((5, 3), name="x")
    x = L.Dropout(0.0)(L.Dense(4)(L.Embedding(7, 4, mask_zero=True)(i)))
    y = L.Masking()(ops.where(j[:, :, :1] > 0, j, 0.0))
    a = L.LSTM(4, return_sequences=True)(x)
    b = L.Bidirectional(L.GRU(2, return_sequences=True))(y)
    c = L.RNN([L.SimpleRNNCell(3), L.LSTMCell(4)], go_backwards=True)(b)
    d = L.RNN(L.GRUCell(4), zero_output_for_mask=True)(y)
    e = L.GlobalAveragePooling1D()(L.Add()([a, x]))
    z = L.GRU(4, return_sequences=True)(a, initial_state=c + d + e)
    model = keras.Model([i, j], L.Dense(3)(z), name="masked")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss=CROSSENTROPY)
    return model


def transformer():
    """What transformers are made of: rotary embeddings, gates, root mean squares, attention as a function."""
    i = keras.Input((6, 8), name="x")
    x = L.RMSNormalization()(i)
    heads = [ops.reshape(L.Dense(n * 4, use_bias=False)(x), (-1, 6, n, 4)) for n in (2, 1, 1)]
    angles = np.arange(6, dtype="float32").reshape(6, 1, 1) * np.asarray([1.0, 0.1], "float32")
    q, k = (ops.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)
            for a, b in (ops.split(t, 2, axis=-1) for t in heads[:2]))
    a = ops.dot_product_attention(q, k, heads[2], is_causal=True)
    a = a + ops.dot_product_attention(q, q, q, scale=0.3, mask=ops.transpose(k, (0, 2, 3, 1))[:, :, :1] > -0.5)
    a = a + ops.dot_product_attention(q, q, a, bias=np.linspace(-1, 1, 36, dtype="float32").reshape(6, 6))
    x = i + L.Dense(8)(ops.reshape(a, (-1, 6, 8)))
    u, v, w = ops.split(L.Dense(20)(L.TimeDistributed(L.RMSNormalization(epsilon=1e-3))(x)), [8, 16], axis=-1)
    x = x + L.Dense(8)(ops.silu(u) * v) + ops.cumsum(v, axis=1) - ops.stop_gradient(u) + ops.sum(w, axis=-1)[..., None]
    model = keras.Model(i, L.Dense(3)(L.Flatten()(x)), name="transformer")
    model.compile(keras.optimizers.SGD(0.02, momentum=0.9), loss=CROSSENTROPY)
    return model


MODELS = {f.__name__: f for f in (shared, nested, activations, shapes, merging, operators, convolutions, sequences,
                                  images, normal, curves, attention, grouped, tensors, resized, augmented, counted,
                                  areas, turned, places, named, constants, distributed, tied, recurrent,
                                  directions, masked, transformer)}
WEIGHTED = {"counted", "areas"}


def names_of(model):
    """Of the outputs: in a dictionary, the keys."""
    return sorted(model._outputs_struct) if isinstance(model._outputs_struct, dict) else model.output_names


def packed(struct, values):
    return dict(zip(sorted(struct), values)) if isinstance(struct, dict) else values


def on(model, tensors):
    inputs, targets = tensors
    return packed(model._inputs_struct, inputs), packed(model._outputs_struct, targets)


def batch(model, seed):
    r = np.random.default_rng(seed)
    inputs, targets = [], []
    for t in model.inputs:
        size = (ROWS, *t.shape[1:])
        inputs.append(r.integers(0, 7, size).astype("int32") if t.dtype == "int32"
                      else r.normal(0, 1, size).astype("float32"))
    losses = model._compile_loss._user_loss
    if isinstance(losses, dict):
        losses = [losses[name] for name in names_of(model)]
    elif not isinstance(losses, list):
        losses = [losses]
    for t, loss in zip(model.outputs, losses):
        name = (loss if isinstance(loss, str) else loss.name)
        if name.startswith("sparse"):
            targets.append(r.integers(0, t.shape[-1], (ROWS, *t.shape[1:-1])).astype("int32"))
        elif name.startswith(("categorical", "binary")):
            targets.append((r.random((ROWS, *t.shape[1:])) > 0.5).astype("float32"))
        else:
            targets.append(r.normal(0, 1, (ROWS, *t.shape[1:])).astype("float32"))
    return inputs, targets


def make(name):
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    model = MODELS[name]()
    for step in range(STEPS):
        model.train_on_batch(*on(model, batch(model, 100 + step)))
    model.save(HERE / "whole.keras")
    deflated = zipfile.ZipFile(HERE / f"{name}.keras", "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(HERE / "whole.keras") as whole, deflated as small:
        for member in whole.namelist():
            small.writestr(zipfile.ZipInfo(member), whole.read(member), zipfile.ZIP_DEFLATED)
    (HERE / "whole.keras").unlink()
    inputs, targets = batch(model, 1)
    tensors = {f"input/{t.name}": x for t, x in zip(model.inputs, inputs)}
    only = len(targets) == 1
    tensors |= {f"target/{'target' if only else n + '_target'}": y for n, y in zip(names_of(model), targets)}
    given, wanted = on(model, (inputs, targets))
    outputs = model(given, training=False)
    outputs = [outputs[n] for n in names_of(model)] if isinstance(outputs, dict) else outputs
    tensors |= {f"output/{n}": np.asarray(y) for n, y in zip(names_of(model), [outputs] if only else outputs)}
    model.reset_metrics()
    weights = np.linspace(0.25, 2, ROWS, dtype="float32") if name in WEIGHTED else None
    if weights is not None:
        tensors["weight/sample_weight"] = weights
    result = model.train_on_batch(given, wanted, sample_weight=weights, return_dict=True)
    tensors["loss"] = np.asarray(result["loss"], "float32")
    if name in WEIGHTED:
        for key, value in result.items():
            value = np.asarray(value, "float32")
            if value.ndim:  # a metric a class
                tensors |= {f"metric/{key}/{n}": v for n, v in enumerate(value)}
            elif key != "loss":
                tensors[f"metric/{key}"] = value
    variables = [*model.variables, *model.optimizer.variables]
    # Nadam leaves its product without a name.
    tensors |= {f"after/{'nadam/u_product' if v.path == 'variable' else v.path}":
                np.asarray(v.value, "int32" if "int" in v.dtype else "float32")
                for v in variables if not v.path.endswith(("seed_generator_state", "/count"))}
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, HERE / f"{name}.safetensors")
    print(name, float(result["loss"]), (HERE / f"{name}.keras").stat().st_size)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name in sys.argv[1:] or MODELS:
        make(name)
