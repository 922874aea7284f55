# SPDX-License-Identifier: Apache-2.0
"""ONNX files that tf2onnx makes of Keras models: predictions and training compared with TensorFlow's own."""

import keras
import mtc
import numpy as np
import pytest
import tensorflow as tf
import tf2onnx
from keras import layers

BATCH, STEPS, RATE, CLASSES = 8, 5, 0.05, 5
LOSS = "sparse_categorical_crossentropy,from_logits=true"


def mlp():
    return keras.Sequential([keras.Input((8,)), layers.Dense(16, "relu"), layers.Dense(CLASSES)])


def cnn():
    return keras.Sequential([
        keras.Input((12, 12, 3)), layers.Conv2D(8, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.DepthwiseConv2D(3), layers.ReLU(6.0), layers.Flatten(), layers.Dense(CLASSES)])


def resnet():
    inputs = keras.Input((16, 16, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = shortcut = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2D(8, 3, padding="same", use_bias=False)(x)
    x = layers.Add()([layers.BatchNormalization()(x), shortcut])
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))


def unet():
    inputs = keras.Input((16, 16, 3))
    wide = layers.Conv2D(8, 3, padding="same", activation="elu")(inputs)
    x = layers.Conv2D(16, 3, padding="same", activation="swish")(layers.MaxPooling2D()(wide))
    x = layers.Concatenate()([wide, layers.Conv2DTranspose(8, 2, strides=2)(x)])
    x = layers.AveragePooling2D(2)(layers.UpSampling2D()(x))
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.Flatten()(x)))


def lstm():
    return keras.Sequential([keras.Input((6, 4)), layers.LSTM(8, return_sequences=True), layers.LSTM(6),
                             layers.Dense(CLASSES)])


def mobilenet():
    return keras.applications.MobileNetV2((32, 32, 3), alpha=0.35, weights=None, classes=CLASSES,
                                          classifier_activation=None)


def export(model, path):
    spec = (tf.TensorSpec((None, *model.input_shape[1:]), tf.float32, name="x"),)
    function = tf.function(lambda x: model(x, training=False), input_signature=spec)
    tf2onnx.convert.from_function(function, input_signature=spec, opset=17, output_path=str(path))


@pytest.mark.parametrize("make", [mlp, cnn, resnet, unet, lstm, mobilenet], ids=lambda make: make.__name__)
def test_trains_as_tensorflow(make, tmp_path):
    keras.utils.set_random_seed(1)
    model = make()
    random = np.random.default_rng(1)
    for variable in model.variables:  # the exporter leaves out biases of 0, and folds the statistics of batches
        if variable.path.endswith(("bias", "moving_mean")):
            variable.assign(random.uniform(-0.1, 0.1, variable.shape))
        elif variable.path.endswith("moving_variance"):
            variable.assign(random.uniform(0.5, 1.5, variable.shape))
    export(model, tmp_path / "model.onnx")
    plan = mtc.compile(tmp_path / "model.onnx", batch_size=BATCH, loss=LOSS, optimizer=f"sgd,learning_rate={RATE}")
    x = random.standard_normal((BATCH, *model.input_shape[1:])).astype("float32")
    labels = random.integers(0, CLASSES, BATCH)
    with mtc.Session(plan, "cpu:1") as session:
        expected = model(x, training=False).numpy()
        assert np.abs(session.predict(x) - expected).max() <= 1e-5 * np.abs(expected).max()
        if model.non_trainable_variables:  # what is folded trains in another way
            losses = [session.train_on_batch(x, labels)["loss"] for _ in range(STEPS)]
            assert losses[-1] < losses[0]
            return
        optimizer = keras.optimizers.SGD(RATE)
        for _ in range(STEPS):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(x)))
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
            assert session.train_on_batch(x, labels)["loss"] == pytest.approx(float(loss), rel=2e-5)
