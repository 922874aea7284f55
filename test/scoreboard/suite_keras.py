# SPDX-License-Identifier: Apache-2.0
"""What Keras' own tests make, each in a model: by file (NAME:file) and by trace (NAME:trace), beside Keras on JAX.

The model has an identity Dense before a layer, so that a gradient flows through it. Compared are predictions, loss,
metrics and the changes of all variables after a step, of optimizers after three. Of a layer that draws random numbers
the predictions alone are compared.
"""

import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import warnings

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
import numpy as np  # noqa: E402

CASES = pathlib.Path(os.environ.get("MTC_SCOREBOARD_CASES", "scoreboard")) / "keras_cases.pkl"
SETTINGS = {"devices": "cpu:1", "cpu": "native", "check": False}
R = {}


def records():
    if not R:
        if not CASES.exists():
            CASES.parent.mkdir(parents=True, exist_ok=True)
            made = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("collect_keras.py"), CASES],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            assert CASES.exists(), f"collect_keras.py ends with {made.returncode}"
        R.update(pickle.loads(CASES.read_bytes()))
    return R


def cases():
    """The first configuration of each class, then the second of each, so that a part says something of all."""
    names = sorted(records())
    random.Random(4).shuffle(names)
    return [f"{n}:{way}" for n in sorted(names, key=lambda n: int(n.rpartition("/")[2])) for way in ("file", "trace")]


class Unfit(Exception):
    """No case of a training step."""


def run(case):
    import keras

    warnings.simplefilter("ignore")
    name, _, way = case.rpartition(":")
    record = records()[name]
    kind = record["kind"]
    try:
        model, x, y, weight, metric = MAKERS[kind](record)
        wanted = keras_says(model, x, y, weight, metric, kind)
    except Exception as error:  # Keras cannot do it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}
    problems = compare(model, x, y, weight, metric, kind, way, wanted, keras)
    return {"status": "wrong" if problems else "right", "message": "\n".join(problems)[:1500]}


def made(record):
    import keras

    return keras.saving.deserialize_keras_object(json.loads(record["config"]))


def array(shape, dtype, seed):
    numbers = np.random.default_rng(seed)
    if "float" in dtype:
        return numbers.standard_normal(shape).astype("float32")
    return numbers.integers(0, 2, shape).astype(bool if dtype == "bool" else "int32")


def numbers_of(value):
    value = np.asarray(value)
    return value.astype("float32" if value.dtype.kind == "f" else "int32")


def inputs_of(record):
    import keras

    if record["data"] is not None:
        return keras.tree.map_structure(np.asarray, record["data"])
    if record["shape"] is None:
        raise Unfit("no input")
    seeds = iter(range(1000))

    def walk(shape, dtype):
        if isinstance(shape, dict):
            return {k: walk(v, dtype[k] if dtype else None) for k, v in shape.items()}
        if shape and not isinstance(shape[0], (int, type(None))):
            return type(shape)(walk(s, dtype[k] if dtype else None) for k, s in enumerate(shape))
        return array((5, *shape[1:]), dtype or "float32", next(seeds))

    return walk(record["shape"], record["dtype"])


def of_layer(record):
    import keras
    from keras.src.layers.preprocessing.image_preprocessing.base_image_preprocessing_layer import (
        BaseImagePreprocessingLayer,
    )

    layer, x = made(record), inputs_of(record)
    leaves = keras.tree.flatten(x)
    if any(not isinstance(a, np.ndarray) or a.dtype.kind not in "fiub" or a.ndim == 0 for a in leaves):
        raise Unfit("inputs that are no arrays of numbers")
    if isinstance(layer, BaseImagePreprocessingLayer) and leaves[0].ndim == 3:
        raise Unfit("one picture: its first axis, which a model has as the batch, is its height")
    rows = leaves[0].shape[0]
    if rows == 0 or any(a.shape[0] != rows for a in leaves):
        raise Unfit("inputs of different batches")
    leaves = [a if a.dtype.kind == "b" else numbers_of(a) for a in leaves]
    symbols = [keras.Input(a.shape[1:], dtype=str(a.dtype), name=f"in{k}") for k, a in enumerate(leaves)]
    inner = [keras.layers.Dense(s.shape[-1], use_bias=False, kernel_initializer="identity", name=f"before{k}")(s)
             if s.dtype == "float32" and len(s.shape) >= 2 and s.shape[-1] else s for k, s in enumerate(symbols)]
    packed = keras.tree.pack_sequence_as(x, inner)
    out = layer(**packed, **record["call"]) if isinstance(packed, dict) else layer(packed, **record["call"])
    flat = []
    for o in keras.tree.flatten(out):
        if "float" not in o.dtype or None in o.shape[1:]:
            raise Unfit("an output that is no floats of known sizes")
        flat.append(keras.layers.Flatten()(o) if len(o.shape) > 1 else keras.layers.Reshape((1,))(o))
    whole = flat[0] if len(flat) == 1 else keras.layers.Concatenate()(flat)
    model = keras.Model(symbols if len(symbols) > 1 else symbols[0], keras.layers.Dense(3, name="after")(whole))
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return model, leaves if len(leaves) > 1 else leaves[0], array((rows, 3), "float32", 99), None, None


def passing(record):
    """A model whose output is its input, and the data for it."""
    import keras

    y_pred = np.asarray(record["y_pred"], "float32")
    if y_pred.ndim == 0 or y_pred.size == 0:
        raise Unfit("a scalar prediction")
    x = y_pred[:, None] if y_pred.ndim == 1 else y_pred
    symbol = keras.Input(x.shape[1:], name="in0")
    out = keras.layers.Dense(x.shape[-1], use_bias=False, kernel_initializer="identity", name="pass")(symbol)
    model = keras.Model(symbol, keras.layers.Reshape(())(out) if y_pred.ndim == 1 else out)
    y, weight = numbers_of(record["y_true"]), record["weight"]
    if y.ndim == 0 or len(y) != len(x):
        raise Unfit("targets of another batch")
    if weight is not None:
        weight = np.asarray(weight, "float32")
        if weight.ndim == 0 or len(weight) != len(x):
            raise Unfit("weights that are not of the batch")
        weight = weight[:, 0] if weight.ndim == 2 and weight.shape[1] == 1 else weight
    return model, x, y, weight


def of_loss(record):
    import keras

    model, x, y, weight = passing(record)
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=made(record))
    return model, x, y, weight, None


def of_metric(record):
    import keras

    model, x, y, weight = passing(record)
    shape = model.output_shape[1:]
    loss = "mse" if tuple(y.shape[1:]) == tuple(shape) else None
    if loss is None and y.shape[1:] in ((), (1,)) and len(shape) == 1 and shape[0] > 1:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if loss is None:
        raise Unfit("no loss for it")
    metric = made(record)
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss,
                  **{"metrics" if weight is None else "weighted_metrics": [metric]})
    return model, x, y, weight, metric.name


def dense_model(optimizer=None, **options):
    import keras

    keras.utils.set_random_seed(5)
    symbol = keras.Input((4,), name="in0")
    hidden = keras.layers.Dense(6, activation="tanh", name="hidden", **options)(symbol)
    model = keras.Model(symbol, keras.layers.Dense(2, name="out")(hidden))
    model.compile(optimizer=optimizer or keras.optimizers.SGD(0.1), loss="mse")
    return model, array((8, 4), "float32", 1), array((8, 2), "float32", 2), None, None


MAKERS = {"layers": of_layer, "losses": of_loss, "metrics": of_metric,
          "optimizers": lambda r: dense_model(made(r)),
          "regularizers": lambda r: dense_model(kernel_regularizer=made(r)),
          "constraints": lambda r: dense_model(kernel_constraint=made(r))}


def keras_says(model, x, y, weight, metric, kind):
    """Start, predictions, logs of each step, weights after them, and whether it draws random numbers."""
    import keras

    start = model.get_weights()
    model.optimizer.build(model.trainable_variables)
    slots = [np.array(v) for v in model.optimizer.variables]
    out = [np.asarray(o, "float32") for o in keras.tree.flatten(model.predict_on_batch(x))] if kind == "layers" else []
    draws = any(getattr(layer, "_seed_generators", None) for layer in model._flatten_layers())
    if draws:
        twice = [np.asarray(keras.tree.flatten(model(x, training=True))[0], "float32") for _ in range(2)]
        draws = not np.array_equal(*twice, equal_nan=True)
    rows = len(keras.tree.flatten(x)[0])
    logs = []
    if metric:
        logs.append(model.evaluate(x, y, sample_weight=weight, batch_size=rows, verbose=0, return_dict=True))
    for _ in range(0 if metric else 3 if kind == "optimizers" else 1):
        model.reset_metrics()
        logs.append(model.train_on_batch(x, y, sample_weight=weight, return_dict=True))
    after = model.get_weights()
    model.set_weights(start)
    for variable, value in zip(model.optimizer.variables, slots):
        variable.assign(value)
    return start, out, logs, after, draws


def compare(model, x, y, weight, metric, kind, way, wanted, keras):
    import mtc
    from mtc import _live

    start, out, logs, after, draws = wanted
    policies = {layer.dtype_policy.compute_dtype for layer in model._flatten_layers() if hasattr(layer, "dtype_policy")}
    half, problems = bool(policies & {"float16", "bfloat16"}), []
    settings = {**SETTINGS, "by": way}
    if metric:
        found = mtc.evaluate(model, x, y, sample_weight=weight, return_dict=True, allow_nan=True, verbose=0,
                             batch_size=len(keras.tree.flatten(x)[0]), **settings)
        return [f"{name}: found {found.get(name)}, expected {value}" for name, value in logs[0].items()
                if name not in found or not np.allclose(found[name], value, rtol=1e-4, atol=1e-6, equal_nan=True)]
    losses = [_live.train_on_batch(model, x, y, sample_weight=weight, return_dict=True, **settings)["loss"]
              for _ in logs]
    found = model.get_weights()
    if not draws:
        for a, b in zip(losses, (float(log["loss"]) for log in logs)):
            if not np.isclose(a, b, rtol=3e-2 if half else 1e-4, atol=1e-6, equal_nan=True):
                problems.append(f"loss: found {a:.7g}, expected {b:.7g}")
        for variable, a, b, s in zip(model.weights, found, after, start):
            a, b, s = (np.asarray(v, "f8") for v in (a, b, s))
            error, slack = np.linalg.norm(a - b), (5e-2 if half else 1e-3) * np.linalg.norm(b - s)
            if not error <= slack + 3e-7 * np.linalg.norm(s) + 1e-9 and (
                    np.isfinite(b).all() or not np.array_equal(np.isnan(a), np.isnan(b))):
                problems.append(f"{variable.path}: a change of norm {np.linalg.norm(b - s):.2e} differs by {error:.2e}")
    if kind == "layers":
        model.set_weights(start)
        found_out = keras.tree.flatten(_live.predict_on_batch(model, x, **settings))
        for k, (a, b) in enumerate(zip(found_out, out)):
            scale = np.nanmax(np.abs(b[np.isfinite(b)]), initial=0)
            floor = (2e-2 if half else 5e-5) * scale
            if not np.allclose(a, b, rtol=3e-2 if half else 1e-4, atol=floor, equal_nan=True):
                problems.append(f"prediction {k}: found {np.ravel(a)[:4]}, expected {np.ravel(b)[:4]}")
    return problems
