# SPDX-License-Identifier: Apache-2.0
"""The encoders that `benchmarks/run` times, for Keras and for PyTorch.

    vit    ViT-Tiny (Touvron et al., 2021): patches of 16 x 16, the mean of all positions in place of a class token,
           and positions that are not trained
    bert   BERT-mini (Turc et al., 2019): normalisation behind each sum, a class of the first token

PyTorch's form is its users' best: one product for queries, keys and values, scaled_dot_product_attention.
"""
import typing


class Size(typing.NamedTuple):
    """A model's numbers. `shape` is an image's, or the tokens of a text."""
    shape: tuple
    channels: int
    heads: int
    blocks: int
    classes: int
    tokens: int = 0  # of the vocabulary
    patch: int = 0


SIZES = {"vit": Size((224, 224, 3), 192, 3, 12, 1000, patch=16), "bert": Size((128,), 256, 4, 4, 2, tokens=30522)}


def keras_model(name):
    import keras
    from keras import layers, ops
    size = SIZES[name]
    first = keras.Input(size.shape, dtype="int32" if size.tokens else "float32")

    def attention(x):
        return layers.MultiHeadAttention(size.heads, size.channels // size.heads)(x, x)

    def dense(x):
        return layers.Dense(size.channels)(layers.Dense(4 * size.channels, activation="gelu")(x))

    def places(numbers, count):
        return layers.Embedding(count, size.channels)(numbers + ops.arange(count, dtype="int32"))

    if size.tokens:
        x = layers.Embedding(size.tokens, size.channels)(first) + places(ops.zeros_like(first), size.shape[0])
        x = layers.LayerNormalization()(x)
        for _ in range(size.blocks):
            x = layers.LayerNormalization()(x + attention(x))
            x = layers.LayerNormalization()(x + dense(x))
        x = layers.Dense(size.channels, activation="tanh")(x[:, 0])
    else:
        count = (size.shape[0] // size.patch) ** 2
        x = layers.Conv2D(size.channels, size.patch, strides=size.patch)(first)
        x = layers.Reshape((count, size.channels))(x)
        x = x + places(0, count)
        for _ in range(size.blocks):
            x = x + attention(layers.LayerNormalization()(x))
            x = x + dense(layers.LayerNormalization()(x))
        x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(first, layers.Dense(size.classes)(x), name=name)


def torch_model(name):
    import torch
    from torch import nn
    size = SIZES[name]

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts, self.join = nn.Linear(size.channels, 3 * size.channels), nn.Linear(size.channels, size.channels)

        def forward(self, x):
            parts = self.parts(x).unflatten(-1, (3, size.heads, -1)).permute(2, 0, 3, 1, 4)
            return self.join(nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.dense = nn.Sequential(nn.Linear(size.channels, 4 * size.channels), nn.GELU(),
                                       nn.Linear(4 * size.channels, size.channels))
            self.norms = nn.ModuleList(nn.LayerNorm(size.channels) for _ in range(2))

        def forward(self, x):
            if size.tokens:
                x = self.norms[0](x + self.attention(x))
                return self.norms[1](x + self.dense(x))
            x = x + self.attention(self.norms[0](x))
            return x + self.dense(self.norms[1](x))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Embedding(size.tokens, size.channels) if size.tokens else nn.Conv2d(
                size.shape[-1], size.channels, size.patch, size.patch)
            count = size.shape[0] if size.tokens else (size.shape[0] // size.patch) ** 2
            self.places = nn.Parameter(torch.randn(count, size.channels) * 0.02, requires_grad=bool(size.tokens))
            self.norm = nn.LayerNorm(size.channels)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.blocks)))
            self.pool = nn.Sequential(nn.Linear(size.channels, size.channels), nn.Tanh())
            self.head = nn.Linear(size.channels, size.classes)

        def forward(self, x):
            x = self.first(x)
            if size.tokens:
                return self.head(self.pool(self.blocks(self.norm(x + self.places))[:, 0]))
            x = x.flatten(2).transpose(1, 2) + self.places
            return self.head(self.norm(self.blocks(x)).mean(1))

    return Encoder()
