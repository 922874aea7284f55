#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random Keras models of up to 30 layers, and what Keras computes with them: outputs, the loss and all gradients of one
batch.

    pip install jax keras safetensors torch
    test/keras/random_models.py FOLDER [--count 200] [--first 0]
    MTC_KERAS_DATA=FOLDER build/release/test/unit/kerasEvaluateTests     what models mean, in double precision
    MTC_KERAS_DATA=FOLDER build/release/test/unit/kerasTests            what their plans compute, in float32

A model is made and saved in float32. What it computes is Keras' result in float64 from the same weights, so that a
difference is one of meaning, or rounding of ours alone; `rounding/NAME` is how far Keras' own float32 lies from it.
Keras runs on PyTorch, which compiles nothing (keras_in_float64.py).

Model N depends on N and the models before it: of layers and options that fit, one that earlier models have least is
likelier. At the end each layer and option that stands fewer than five times in the models is named; an activation is
one option, whatever the layer. Random layers have a rate of 0, a range of one number or images that they leave alone,
since their numbers cannot be Keras'. The optimizer is SGD with a rate of 1 and a momentum: after one step its slots are
the gradients.
"""
import argparse
import collections
import json
import pathlib
import random
import time
import zipfile

import keras_in_float64  # noqa: F401  (before Keras)
import keras
import numpy as np
from keras import layers as L
from keras import ops
from safetensors.numpy import save_file

ROWS, LEAST = 6, 5
ACTIVATIONS = ["relu", "relu6", "elu", "celu", "selu", "gelu", "silu", "softplus", "softsign", "tanh", "sigmoid",
               "hard_sigmoid", "hard_silu", "hard_tanh",
               "leaky_relu", "log_sigmoid", "mish", "squareplus", "softmax", "log_softmax", "exponential", "linear"]
REGULARIZERS = [None, "l1", "l2", keras.regularizers.L1L2(0.01, 0.02)]
used = collections.Counter()
known = set()


def label(value):
    return type(value).__name__ if isinstance(value, keras.regularizers.Regularizer) else str(value)


class Chooser:
    """Picks values, rarely used ones first, and counts them."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, what, values):
        known.update((what, label(v)) for v in values)
        value = self.random.choices(values, [4.0 / (1 + used[what, label(v)]) ** 2 + 0.02 for v in values])[0]
        used[what, label(value)] += 1
        return value

    def pick_layer(self, names):
        """Likelier with each of its options that stands too rarely."""
        def missing(name):
            return sum(used[what, v] < LEAST for what, v in known if what == name or what.startswith(name + "."))
        known.update(("layer", n) for n in names)
        name = self.random.choices(names, [4.0 / (1 + used["layer", n]) ** 2 + 0.02 + missing(n) for n in names])[0]
        used["layer", name] += 1
        return name

    def options(self, layer, **options):
        return {k: self.pick("activation" if k == "activation" else f"{layer}.{k}", v) for k, v in options.items()}


def weights(c, name, **more):
    return c.options(name, use_bias=[True, False], activation=ACTIVATIONS, **more)


def regularized(c, name):
    return c.options(name, kernel_regularizer=REGULARIZERS, bias_regularizer=REGULARIZERS,
                     activity_regularizer=REGULARIZERS)


def pairs(c):
    return tuple((c.random.randint(0, 2), c.random.randint(0, 2)) for _ in range(2))


def conv(axes, cls, **fixed):
    def build(c, x):
        name = cls.__name__
        size = min(x.shape[1:-1])
        channels = x.shape[-1]
        o = weights(c, name, padding=["same", "valid"] + (["causal"] if cls is L.Conv1D else []),
                    kernel_size=[k for k in (1, 2, 3) if k <= size])
        if cls is not L.Conv2DTranspose or c.random.random() < 0.5:
            o |= c.options(name, strides=[s for s in (1, 2) if s <= size])
        if o.get("strides", 1) == 1 and cls is not L.Conv2DTranspose:
            o |= c.options(name, dilation_rate=[d for d in (1, 2) if (o["kernel_size"] - 1) * d < size])
        if cls in (L.Conv1D, L.Conv2D):
            groups = c.pick(f"{name}.groups", [g for g in (1, 2) if channels % g == 0])
            o |= {"groups": groups, "filters": groups * c.random.randint(1, 4)} | regularized(c, name)
        elif cls in (L.DepthwiseConv1D, L.DepthwiseConv2D):
            o |= c.options(name, depth_multiplier=[1, 2])
        else:
            o["filters"] = c.random.randint(1, 6)
        if "Separable" in name:
            o |= c.options(name, depth_multiplier=[1, 2])
        return cls(**o)(x)
    return build


def pool(axes, cls):
    def build(c, x):
        size = min(x.shape[1:-1])
        return cls(**c.options(cls.__name__, pool_size=[k for k in (1, 2, 3) if k <= size], strides=[1, 2, None],
                               padding=["same", "valid"]))(x)
    return build


def merge(cls):
    def build(c, x):
        return cls()([x, L.Dense(x.shape[-1])(x)])
    return build


def reshape(c, x):
    shape = x.shape[1:]
    size = int(np.prod(shape))
    return L.Reshape((-1, shape[-1]) if len(shape) == 3 else (shape[0], 1, -1) if len(shape) == 2 else (1, size))(x)


def permute(c, x):
    order = list(range(1, len(x.shape)))
    c.random.shuffle(order)
    return L.Permute(order)(x)


def attention(c, x):
    o = c.options("MultiHeadAttention", num_heads=[1, 2, 3], key_dim=[2, 3], use_bias=[True, False],
                  output_shape=[None, 5], use_gate=[False, True],
                  sliding_window=[None, 2], kernel_regularizer=REGULARIZERS)
    causal = c.pick("MultiHeadAttention.use_causal_mask", [True, False])
    other = x if c.random.random() < 0.5 else L.Dense(4)(x)
    return L.MultiHeadAttention(**o)(x, other, use_causal_mask=causal)


def dot(c, x):
    axis = c.random.randint(1, len(x.shape) - 1)
    y = L.Dot(axis, **c.options("Dot", normalize=[True, False]))([x, L.Activation("tanh")(x)])
    return y if len(y.shape) <= 4 else L.Flatten()(y)


def resizing(c, x):
    o = c.options("Resizing", interpolation=["nearest", "bilinear", "bicubic", "lanczos3"], antialias=[False, True],
                  crop_to_aspect_ratio=[False, True])
    if not o["crop_to_aspect_ratio"]:
        o |= c.options("Resizing", pad_to_aspect_ratio=[False, True])
    return L.Resizing(c.random.randint(2, 9), c.random.randint(2, 9), **o)(x)


def moved(cls, *factors):
    def build(c, x):
        o = c.options(cls.__name__, fill_mode=["reflect", "wrap", "constant", "nearest"])
        values = [(v, v) for v in (round(c.random.uniform(-0.4, 0.4), 2) for _ in factors)]
        return cls(*values, **o)(x)
    return build


def flipped(c, x):
    """Of images that are their own mirror images."""
    mode = c.pick("RandomFlip.mode", ["horizontal", "vertical", "horizontal_and_vertical"])
    for axis, name in ((1, "vertical"), (2, "horizontal")):
        if name in mode:
            x = x + ops.flip(x, axis=axis)
    return L.RandomFlip(mode)(x)


def tensors(c, x):
    """Functions of keras.ops."""
    y = L.Dense(x.shape[-1], activation="tanh")(x)
    last = len(x.shape) - 1
    table = {
        "operators": lambda: (x * 2.0 - y) / 3.0 + (1.0 - y) - (-y),
        "maximum": lambda: ops.maximum(x, y) + ops.minimum(y, 0.5),
        "unary": lambda: ops.abs(y) + ops.square(y) + ops.exp(y) + ops.sqrt(y + 2.0) + ops.log(y + 3.0)
        + ops.sigmoid(y),
        "power": lambda: y**2 + ops.power(y, 3) + 1 / (y * y + 1.0),
        "where": lambda: ops.where(y > 0.1, x, ops.clip(y, -0.5, 0.4)),
        "softmax": lambda: ops.softmax(x, axis=c.random.randint(1, last)),
        "reductions": lambda: y + ops.sum(y, axis=last, keepdims=True) + ops.mean(x, axis=1, keepdims=True)
        + ops.max(y, axis=last, keepdims=True),
        "variance": lambda: ((x - ops.mean(x, axis=last, keepdims=True))
                             / ops.sqrt(ops.var(x, axis=last, keepdims=True) + 0.1)),
        "concatenate": lambda: ops.concatenate([x, y], axis=last),
        "stack": lambda: ops.reshape(ops.stack([x, y], axis=last), (-1, *x.shape[1:-1], 2 * x.shape[-1])),
        "slice": lambda: ops.concatenate([x[..., ::2], y[..., :1], y[..., -1:]], axis=-1),
        "flip": lambda: ops.flip(x, axis=last) + y,
        "transpose": lambda: ops.transpose(x, [0, *range(last, 0, -1)]),
        "swapaxes": lambda: ops.swapaxes(x, 1, last),
        "expand": lambda: ops.squeeze(ops.expand_dims(x, 1), axis=1) + y,
        "matmul": lambda: ops.matmul(ops.softmax(ops.matmul(x, ops.swapaxes(y, -1, -2)), axis=-1), y) if last > 1 else x
        + y,
        "gelu": lambda: ops.gelu(x) + ops.gelu(y, approximate=False) + ops.leaky_relu(x) + ops.elu(y) + ops.silu(y)
        + ops.relu6(x),
    }
    return table[c.pick("ops", list(table))]()


def nested(c, x):
    i = keras.Input(x.shape[1:])
    kind = c.pick("nested", ["Sequential", "Functional", "frozen", "twice"])
    if kind == "Sequential":
        return keras.Sequential([keras.Input(x.shape[1:]), L.Dense(x.shape[-1], activation="tanh"), L.Dense(3)])(x)
    model = keras.Model(i, L.Dense(x.shape[-1], activation="tanh")(L.LayerNormalization()(i)))
    model.trainable = kind != "frozen"
    return model(model(x)) if kind == "twice" else model(x)


def simple(cls, *args, **options):
    return lambda c, x: cls(*args, **c.options(cls.__name__, **options))(x)


# By the axes of a sample that a layer takes.
ANY = {
    "Dense": lambda c, x: L.Dense(c.random.randint(1, 8), **weights(c, "Dense"), **regularized(c, "Dense"))(x),
    "Activation": simple(L.Activation, activation=ACTIVATIONS),
    "ReLU": simple(L.ReLU, max_value=[None, 1.5], negative_slope=[0.0, 0.1], threshold=[0.0, 0.2]),
    "LeakyReLU": simple(L.LeakyReLU, negative_slope=[0.3, 0.1]), "ELU": simple(L.ELU, alpha=[1.0, 0.5]),
    "Softmax": simple(L.Softmax, axis=[-1, 1]),
    "PReLU": lambda c, x: L.PReLU(alpha_initializer="he_normal",
                                  **({"shared_axes": [1]} if c.pick("PReLU.shared_axes", [False, True]) else {}))(x),
    "BatchNormalization": simple(L.BatchNormalization, center=[True, False], scale=[True, False], momentum=[0.99, 0.5],
                                 epsilon=[1e-3, 1e-2], trainable=[True, False]),
    "LayerNormalization": simple(L.LayerNormalization, center=[True, False], scale=[True, False], epsilon=[1e-3, 1e-2]),
    "GroupNormalization": lambda c, x: L.GroupNormalization(
        c.pick("GroupNormalization.groups", [-1, 1]),
        **c.options("GroupNormalization", center=[True, False], scale=[True, False]))(x),
    "UnitNormalization": simple(L.UnitNormalization), "Rescaling": simple(L.Rescaling, 0.5, offset=[0.0, 0.2]),
    "Normalization": lambda c, x: L.Normalization(mean=0.3, variance=2.0,
                                                  **c.options("Normalization", invert=[False, True]))(x),
    "Dropout": simple(L.Dropout, 0.0), "GaussianNoise": simple(L.GaussianNoise, 0.0),
    "GaussianDropout": simple(L.GaussianDropout, 0.0),
    "Flatten": simple(L.Flatten), "Reshape": reshape, "Permute": permute, "Dot": dot, "ops": tensors, "nested": nested,
    "Add": merge(L.Add), "Subtract": merge(L.Subtract), "Multiply": merge(L.Multiply), "Average": merge(L.Average),
    "Maximum": merge(L.Maximum), "Minimum": merge(L.Minimum),
    "Concatenate": lambda c, x: (lambda axis: L.Concatenate(axis=axis)([x, x]))(c.pick("Concatenate.axis", [-1, 1])),
}
VECTORS = {"RepeatVector": lambda c, x: L.RepeatVector(c.random.randint(1, 4))(x)}
SEQUENCES = {
    "Conv1D": conv(1, L.Conv1D), "DepthwiseConv1D": conv(1, L.DepthwiseConv1D),
    "SeparableConv1D": conv(1, L.SeparableConv1D),
    "MaxPooling1D": pool(1, L.MaxPooling1D), "AveragePooling1D": pool(1, L.AveragePooling1D),
    "SpatialDropout1D": simple(L.SpatialDropout1D, 0.0),
    "GlobalMaxPooling1D": simple(L.GlobalMaxPooling1D, keepdims=[True, False]),
    "GlobalAveragePooling1D": simple(L.GlobalAveragePooling1D, keepdims=[True, False]),
    "ZeroPadding1D": lambda c, x: L.ZeroPadding1D(pairs(c)[0])(x), "UpSampling1D": simple(L.UpSampling1D, size=[1, 2]),
    "Cropping1D": lambda c, x: L.Cropping1D((0, 1) if x.shape[1] > 1 else 0)(x), "MultiHeadAttention": attention,
}
IMAGES = {
    "Conv2D": conv(2, L.Conv2D), "DepthwiseConv2D": conv(2, L.DepthwiseConv2D),
    "SeparableConv2D": conv(2, L.SeparableConv2D), "Conv2DTranspose": conv(2, L.Conv2DTranspose),
    "MaxPooling2D": pool(2, L.MaxPooling2D), "AveragePooling2D": pool(2, L.AveragePooling2D),
    "SpatialDropout2D": simple(L.SpatialDropout2D, 0.0),
    "GlobalMaxPooling2D": simple(L.GlobalMaxPooling2D, keepdims=[True, False]),
    "GlobalAveragePooling2D": simple(L.GlobalAveragePooling2D, keepdims=[True, False]),
    "ZeroPadding2D": lambda c, x: L.ZeroPadding2D(pairs(c))(x),
    "Cropping2D": lambda c, x: L.Cropping2D(((0, 1 if x.shape[1] > 1 else 0), (1 if x.shape[2] > 1 else 0, 0)))(x),
    "UpSampling2D": simple(L.UpSampling2D, size=[1, 2, (1, 2)], interpolation=["nearest", "bilinear"]),
    "Resizing": resizing,
    "RandomTranslation": moved(L.RandomTranslation, "height", "width"),
    "RandomZoom": moved(L.RandomZoom, "height", "width"), "RandomRotation": moved(L.RandomRotation, "angle"),
    "RandomFlip": flipped, "RandomCrop": lambda c, x: L.RandomCrop(x.shape[1], x.shape[2])(x),
    "RandomContrast": simple(L.RandomContrast, (0.0, 0.0), value_range=[(-1, 1), (-9, 9)]),
}
LOSSES = ["mse", "mae", "huber", "log_cosh", "categorical_crossentropy", "sparse_categorical_crossentropy",
          "binary_crossentropy", "kl_divergence", "poisson", "hinge",
          "squared_hinge", "cosine_similarity"]
MOST_ELEMENTS, MOST_LAYERS = 1200, 30


def makeModel(c, name):
    kind = c.pick("input", ["image", "image", "image", "sequence", "vector", "ids", "two"])
    shape = {"image": (c.random.randint(4, 9), c.random.randint(4, 9), c.random.randint(1, 4)),
             "vector": (c.random.randint(2, 9),)}
    inputs = ([keras.Input((7,), dtype="int32", name="a")] if kind == "ids" else
              [keras.Input(shape.get(kind, (c.random.randint(3, 8), c.random.randint(1, 5))), name="a")])
    x = inputs[0]
    if kind == "ids":
        x = L.Embedding(7, 4, **c.options("Embedding", embeddings_regularizer=REGULARIZERS))(x)
    if kind == "two":
        inputs.append(keras.Input((4,), name="b"))
        x = L.Concatenate()([x, L.RepeatVector(x.shape[1])(L.Dense(2)(inputs[1]))])
    for _ in range(c.random.randint(3, MOST_LAYERS - 8)):
        table = ANY | {2: VECTORS, 3: SEQUENCES, 4: IMAGES}[len(x.shape)]
        layer = c.pick_layer(list(table))
        y = table[layer](c, x)
        if int(np.prod(y.shape[1:])) > MOST_ELEMENTS or len(y.shape) > 4:
            y = L.GlobalAveragePooling2D()(y) if len(y.shape) == 4 else L.Dense(4)(L.Flatten()(y))
        x = y
    loss = c.pick("loss", LOSSES)
    last = "softmax" if loss in ("categorical_crossentropy", "sparse_categorical_crossentropy",
                                 "kl_divergence") else "sigmoid" if loss in ("binary_crossentropy", "poisson") else None
    heads = c.pick("outputs", [1, 2])
    outputs = [L.Dense(3, activation=last, name=f"out{i}")(L.UnitNormalization()(L.Flatten()(x))) for i in range(heads)]
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], outputs if heads > 1 else outputs[0], name=name), loss


def compiled(model, loss):
    many = len(model.outputs) > 1
    model.compile(keras.optimizers.SGD(1.0, momentum=0.9, name="sgd"),
                  loss=[loss] * len(model.outputs) if many else loss, **({"loss_weights": [1.0, 0.5]} if many else {}))
    model.optimizer.build(model.trainable_variables)
    return model


def makeData(model, loss, seed):
    r = np.random.default_rng(seed)
    inputs = [r.integers(0, 7, (ROWS, *t.shape[1:])).astype("int32") if t.dtype == "int32"
              else r.normal(0, 1, (ROWS, *t.shape[1:])).astype("float32") for t in model.inputs]
    targets = []
    for t in model.outputs:
        if loss.startswith("sparse"):
            targets.append(r.integers(0, 3, (ROWS,)).astype("int32"))
        elif loss in ("categorical_crossentropy", "kl_divergence"):
            y = r.random((ROWS, 3)).astype("float32")
            targets.append(y / y.sum(-1, keepdims=True))
        elif loss in ("binary_crossentropy", "poisson"):
            targets.append((r.random((ROWS, 3)) > 0.5).astype("float32"))
        else:
            targets.append(r.normal(0, 1, (ROWS, 3)).astype("float32"))
    return inputs, targets


def save(model, path):
    """As Keras does, but small."""
    whole = path.with_suffix(".whole.keras")
    model.save(whole)
    with zipfile.ZipFile(whole) as large, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as small:
        for member in large.namelist():
            small.writestr(zipfile.ZipInfo(member), large.read(member), zipfile.ZIP_DEFLATED)
    whole.unlink()


def in_float64(path, source, loss):
    """The saved model with the same weights."""
    with zipfile.ZipFile(path) as archive:
        config = json.loads(archive.read("config.json").decode().replace('"float32"', '"float64"'))
    config.pop("compile_config")
    model = keras.saving.deserialize_keras_object(config)
    for variable, value in zip(model.variables, source.variables, strict=True):
        variable.assign(ops.convert_to_numpy(value))
    return compiled(model, loss)


def results(model, inputs, targets, source):
    """Outputs, the loss of a step and all variables after it, by their paths in the source."""
    tensors = {}
    argument = inputs if len(inputs) > 1 else inputs[0]
    outputs = model(argument, training=False)
    tensors |= {f"output/{n}": ops.convert_to_numpy(y) for n,
                y in zip(model.output_names, [outputs] if len(targets) == 1 else outputs)}
    tensors["loss"] = np.asarray(model.train_on_batch(argument, targets if len(targets) > 1 else targets[0],
                                                      return_dict=True)["loss"])
    variables, paths = ([*m.variables, *m.optimizer.variables] for m in (model, source))
    tensors |= {f"after/{p.path}": ops.convert_to_numpy(v) for v,
                p in zip(variables, paths, strict=True) if not p.path.endswith(("seed_generator_state", "/count"))}
    return tensors


def attempt(folder, number, seed):
    """False where a number is not finite, and the model is not kept."""
    before = used.copy()
    name = f"random{number:03d}"
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed + 1)
    model, loss = makeModel(Chooser(seed), name)
    compiled(model, loss)
    # No variable is 0, where slopes of |x| differ.
    r = np.random.default_rng(seed + 1000)
    for variable in model.trainable_variables:
        variable.assign(ops.convert_to_numpy(variable) + r.normal(0, 0.1, variable.shape).astype("float32"))
    inputs, targets = makeData(model, loss, seed)
    path = folder / f"{name}.keras"
    save(model, path)
    keras.config.set_floatx("float64")
    try:
        exact = results(in_float64(path, model, loss),
                        *([x.astype("float64") if x.dtype == "float32" else x for x in group]
                          for group in (inputs, targets)), model)
    finally:
        keras.config.set_floatx("float32")
    single = results(model, inputs, targets, model)
    finite = all(np.isfinite(t).all() and np.abs(t).max(initial=0) < 1e6 for t in (*exact.values(), *single.values()))
    if finite:
        tensors = {f"input/{t.name}": x for t, x in zip(model.inputs, inputs)}
        tensors |= {f"target/{'target' if len(targets) == 1 else n + '_target'}": y for n,
                    y in zip(model.output_names, targets)}
        tensors |= {key: value.astype("int32" if "int" in value.dtype.name else "float32") for key,
                    value in exact.items()}
        tensors |= {f"rounding/{key}": np.asarray(np.abs(single[key] - value).max(initial=0), "float32") for key,
                    value in exact.items()}
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / f"{name}.safetensors")
    else:
        path.unlink()
        used.clear()
        used.update(before)
    print(name, len(model.layers), "layers", loss, float(exact["loss"]), "" if finite else "drawn again: not finite",
          flush=True)
    return finite


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    began = time.monotonic()
    for number in range(arguments.first, arguments.first + arguments.count):
        seed = number
        while not attempt(arguments.folder, number, seed):
            seed += 10000
    rare = [what for what in sorted(known) if used[what] < LEAST]
    for what in rare:
        print("fewer than", LEAST, "times:", *what, used[what])
    layers = [value for what, value in known if what == "layer"]
    print(f"{arguments.count} models in {time.monotonic() - began:.0f} s: {len(layers)} layers, "
          f"{len(known) - len(layers)} options; {len(rare)} fewer than {LEAST} times, the rarest "
          f"{min(used[what] for what in known)}")


if __name__ == "__main__":
    main()
