# SPDX-License-Identifier: Apache-2.0
"""The models of images, of text and of sequences that `benchmarks/run` and `benchmarks/gpu` time, for Keras (also the
file that mtc compiles), JAX and PyTorch.

    images.py MODEL FILE            writes the compiled, untrained model: FILE.keras, or FILE.json without its variables

    convnet    three convolutions with batch normalisation, global average, dropout; Adam      28 x 28 x 1
    cnn        two convolutions with max pools, two dense layers; Adam                         28 x 28 x 1
    resnet20   three stages of three blocks, 16 to 64 channels; SGD with momentum              32 x 32 x 3
    resnet50   four stages of bottleneck blocks; Adam                                         224 x 224 x 3, 5 classes
    lstm       two LSTMs of 256; Adam                                                         64 steps of 256 numbers
    transformer  embeddings, two blocks of causal attention in 4 heads and a GELU; Adam       256 tokens, of 512,
                                                                                              256 channels
    vit, bert  encoders (encoders.py); Adam                                                   an image, 128 tokens

Images are float32, rows x columns x channels; PyTorch gets them as channels last.
"""
import json
import os
import sys

import encoders
import numpy as np

SHAPES = {"convnet": (28, 28, 1), "cnn": (28, 28, 1), "resnet20": (32, 32, 3), "resnet50": (224, 224, 3),
          "lstm": (64, 256), "transformer": (256,), **{name: size.shape for name, size in encoders.SIZES.items()}}
CLASSES = {"convnet": 10, "cnn": 10, "resnet20": 10, "resnet50": 5, "lstm": 10, "transformer": 512,
           **{name: size.classes for name, size in encoders.SIZES.items()}}
RATES = {"convnet": 1e-3, "cnn": 1e-3, "resnet20": 0.1, "resnet50": 1e-4, "lstm": 1e-3, "transformer": 3e-4,
         "vit": 1e-3, "bert": 1e-4}
# Of the convnet: filters, taps, stride, padding.
CONVNET = ((12, 3, 1, "same"), (24, 6, 2, "valid"), (32, 6, 2, "same"))
UNITS = 256  # of the LSTM
# Of the transformer: channels, heads, blocks.
CHANNELS, HEADS, BLOCKS = 256, 4, 2


def inputs(name, batch):
    random = np.random.default_rng(0)
    if name == "transformer":
        return tuple(random.integers(0, CLASSES[name], (batch, *SHAPES[name])).astype(np.int32) for _ in range(2))
    if name == "bert":
        ids = random.integers(0, encoders.SIZES[name].tokens, (batch, *SHAPES[name]))
        return ids.astype(np.int32), random.integers(0, CLASSES[name], batch).astype(np.int32)
    images = random.random((batch, *SHAPES[name]), dtype=np.float32)
    return images * (255 if name == "convnet" else 1), random.integers(0, CLASSES[name], batch).astype(np.int32)


def keras_model(name):
    import keras
    from keras import layers

    def normalised(x, filters, taps, stride):
        x = layers.Conv2D(filters, taps, strides=stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    def block(x, filters, stride):
        y = layers.ReLU()(normalised(x, filters, 3, stride))
        y = normalised(y, filters, 3, 1)
        return layers.ReLU()(layers.add([y, normalised(x, filters, 1, stride) if stride > 1 else x]))

    if name == "transformer":
        return keras_transformer()
    if name in encoders.SIZES:
        return encoders.keras_model(name)
    if name == "resnet50":
        return keras.applications.ResNet50(weights=None, input_shape=SHAPES[name], classes=CLASSES[name],
                                           classifier_activation=None)
    first = x = keras.Input(SHAPES[name])
    if name == "convnet":
        x = layers.Rescaling(1 / 255)(x)
        for filters, taps, stride, padding in CONVNET:
            x = layers.Conv2D(filters, taps, strides=stride, padding=padding, use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization(scale=False)(x))
        x = layers.Dense(256, activation="relu")(layers.GlobalAveragePooling2D()(x))
        x = layers.Dropout(0.5)(x)
    elif name == "lstm":
        x = layers.LSTM(UNITS)(layers.LSTM(UNITS, return_sequences=True)(x))
    elif name == "cnn":
        for filters in (32, 64):
            x = layers.MaxPooling2D()(layers.Conv2D(filters, 3, activation="relu")(x))
        x = layers.Dense(128, activation="relu")(layers.Flatten()(x))
    else:
        x = layers.ReLU()(normalised(x, 16, 3, 1))
        for filters in (16, 32, 64):
            for index in range(3):
                x = block(x, filters, 2 if index == 0 and filters > 16 else 1)
        x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(first, layers.Dense(CLASSES[name])(x), name=name)


def keras_transformer():
    import keras
    from keras import layers, ops
    (length,), tokens = SHAPES["transformer"], CLASSES["transformer"]
    text = keras.Input((length,), dtype="int32")

    def embedded(ids, count):
        return layers.Embedding(count, CHANNELS, embeddings_initializer="glorot_normal")(ids)

    x = embedded(text, tokens) + embedded(ops.zeros_like(text) + ops.arange(length, dtype="int32"), length)
    for _ in range(BLOCKS):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(HEADS, CHANNELS // HEADS)(y, y, use_causal_mask=True)
        y = layers.LayerNormalization()(x)
        x = x + layers.Dense(CHANNELS)(layers.Dense(4 * CHANNELS, activation="gelu")(y))
    return keras.Model(text, layers.Dense(tokens)(layers.LayerNormalization()(x)), name="transformer")


def keras_parts(name):
    import keras
    rate = RATES[name]
    optimizer = keras.optimizers.SGD(rate, momentum=0.9) if name == "resnet20" else keras.optimizers.Adam(rate)
    return keras_model(name), optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def jax_step(name, batch, wait=True):
    """One jitted function from state to state; buffers are donated."""
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    model, optimizer, criterion = keras_parts(name)
    optimizer.build(model.trainable_variables)

    def step(trained, others, slots, x, y):
        def loss(trained):
            logits, updated = model.stateless_call(trained, others, x, training=True)
            return criterion(y, logits), (updated, logits)
        (value, (others, logits)), gradients = jax.value_and_grad(loss, has_aux=True)(trained)
        trained, slots = optimizer.stateless_apply(slots, gradients, trained)
        return trained, others, slots, value, (logits.argmax(-1) == y).mean()

    step = jax.jit(step, donate_argnums=(0, 1, 2))
    state = [[v.value for v in group] for group in (model.trainable_variables, model.non_trainable_variables,
                                                    optimizer.variables)]
    x, y = map(jax.device_put, inputs(name, batch))

    def run():
        state[:] = step(*state, x, y)[:3]
        return jax.block_until_ready(state) if wait else state[0]
    return run


def torch_model(name):
    import torch
    from torch import nn

    def normalised(inner, outer, taps, stride):
        return nn.Sequential(nn.Conv2d(inner, outer, taps, stride, taps // 2, bias=False), nn.BatchNorm2d(outer))

    class Residual(nn.Module):
        def __init__(self, inner, outer, stride, narrow=None):
            super().__init__()
            if narrow:
                path = (normalised(inner, narrow, 1, 1), nn.ReLU(), normalised(narrow, narrow, 3, stride), nn.ReLU(),
                        normalised(narrow, outer, 1, 1))
            else:
                path = (normalised(inner, outer, 3, stride), nn.ReLU(), normalised(outer, outer, 3, 1))
            self.path = nn.Sequential(*path)
            self.shortcut = normalised(inner, outer, 1, stride) if stride > 1 or inner != outer else nn.Identity()

        def forward(self, x):
            return nn.functional.relu(self.path(x) + self.shortcut(x))

    def stages(layers, inner, sizes):
        for outer, blocks, narrow in sizes:
            for index in range(blocks):
                layers.append(Residual(inner, outer, 2 if index == 0 and layers.started else 1, narrow))
                inner = outer
            layers.started = True
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, CLASSES[name]))

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.LSTM(SHAPES[name][1], UNITS, num_layers=2, batch_first=True)
            self.head = nn.Linear(UNITS, CLASSES[name])

        def forward(self, x):
            return self.head(self.layers(x)[0][:, -1])

    class Layers(list):
        started = False

    if name == "lstm":
        return Lstm()
    if name in encoders.SIZES:
        return encoders.torch_model(name)

    if name == "cnn":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                             nn.MaxPool2d(2),
                             nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))
    if name == "convnet":
        layers, inner = [], 1
        for filters, taps, stride, padding in CONVNET:
            spare = taps - stride if padding == "same" else 0
            layers += [nn.ZeroPad2d((spare // 2, spare - spare // 2) * 2),
                       nn.Conv2d(inner, filters, taps, stride, bias=False),
                       nn.BatchNorm2d(filters, eps=1e-3, momentum=0.01), nn.ReLU()]
            inner = filters
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 256), nn.ReLU(),
                             nn.Dropout(0.5), nn.Linear(256, 10))
    if name == "resnet20":
        return stages(Layers([normalised(3, 16, 3, 1), nn.ReLU()]), 16, [(16, 3, None), (32, 3, None), (64, 3, None)])
    return stages(Layers([normalised(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]), 64,
                  [(256, 3, 64), (512, 4, 128), (1024, 6, 256), (2048, 3, 512)])


def torch_transformer():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(CHANNELS), nn.LayerNorm(CHANNELS)
            self.heads, self.join = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CHANNELS)
            self.dense = nn.Sequential(nn.Linear(CHANNELS, 4 * CHANNELS), nn.GELU(), nn.Linear(4 * CHANNELS, CHANNELS))

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.heads(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.join(seen.transpose(1, 2).reshape(batch, length, CHANNELS))
            return x + self.dense(self.between(x))

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            (length,), tokens = SHAPES["transformer"], CLASSES["transformer"]
            self.tokens, self.places = nn.Embedding(tokens, CHANNELS), nn.Embedding(length, CHANNELS)
            self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
            self.head = nn.Sequential(nn.LayerNorm(CHANNELS), nn.Linear(CHANNELS, tokens))

        def forward(self, text):
            x = self.tokens(text) + self.places(torch.arange(text.shape[1], device=text.device))
            return self.head(self.blocks(x)).flatten(0, 1)  # a token is a sample of the loss

    return Transformer()


def torch_run(model, optimizer, features, y, compiled):
    """A step with loss and accuracy, on what features() returns."""
    import torch

    def backward():
        logits = model(features())
        torch.nn.functional.cross_entropy(logits, y).backward()
        return (logits.argmax(-1) == y).float().mean()

    return torch_step_of(backward, optimizer, compiled)


def torch_step_of(backward, optimizer, compiled):
    """A step of backward(), which makes the gradients, and of the optimizer."""
    import torch
    update = optimizer.step
    if compiled:
        backward, update = torch.compile(backward), torch.compile(update)

    def run():
        optimizer.zero_grad(set_to_none=True)
        backward()
        update()
    return run


def torch_step(name, batch, compiled):
    import torch
    from torch import nn
    images = len(SHAPES[name]) == 3
    model = torch_model(name)
    model = model.to(memory_format=torch.channels_last) if images else model
    if name == "resnet20":
        optimizer = torch.optim.SGD(model.parameters(), RATES[name], momentum=0.9)
    else:
        rate = torch.tensor(RATES[name]) if compiled else RATES[name]  # a tensor: else the rate is compiled in
        optimizer = torch.optim.Adam(model.parameters(), rate, eps=1e-7, fused=None if compiled else True)
    x, y = map(torch.from_numpy, inputs(name, batch))
    x, y = x.permute(0, 3, 1, 2) if images else x, y.long()
    return torch_run(model, optimizer, lambda: x / 255 if name == "convnet" else x, y, compiled)


def keras_tensorflow_step(name, batch):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    model, optimizer, criterion = keras_parts(name)
    model.compile(optimizer, criterion, metrics=["accuracy"])
    x, y = inputs(name, batch)
    return lambda: model.train_on_batch(x, y)


def main():
    name, path = sys.argv[1:3]
    os.environ.setdefault("KERAS_BACKEND", "jax")
    model, optimizer, criterion = keras_parts(name)
    model.compile(optimizer, criterion, metrics=["accuracy"])
    if path.endswith(".json"):
        import keras
        with open(path, "w") as file:
            json.dump(keras.saving.serialize_keras_object(model), file)
    else:
        model.save(path)


if __name__ == "__main__":
    main()
