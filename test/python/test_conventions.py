# SPDX-License-Identifier: Apache-2.0
"""Where frameworks differ, a Keras model follows its back end, read as a file and traced: gradients where a function
has a kink, such as |x| at 0; what becomes of NaN."""

import keras
import mtc
import numpy as np
import pytest

L = keras.layers
BACKEND = keras.backend.backend()
QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}
# At these every function below has its kinks.
AT = np.float32([-3, -1, -0.5, 0, 0.5, 1, 3, 6])
FUNCTIONS = {
    "leaky_relu": lambda: L.Activation("leaky_relu"), "relu": lambda: L.Activation("relu"),
    "relu6": lambda: L.Activation("relu6"), "hard_tanh": lambda: L.Activation("hard_tanh"),
    "hard_sigmoid": lambda: L.Activation("hard_sigmoid"), "hard_silu": lambda: L.Activation("hard_silu"),
    "hard_shrink": lambda: L.Activation("hard_shrink"), "soft_shrink": lambda: L.Activation("soft_shrink"),
    "celu": lambda: L.Activation("celu"), "elu": lambda: L.ELU(alpha=2.0), "slope": lambda: L.LeakyReLU(0.1),
    "prelu": lambda: L.PReLU(alpha_initializer="ones"), "six": lambda: L.ReLU(6.0),
    "relu_slope": lambda: L.ReLU(negative_slope=0.1), "threshold": lambda: L.ReLU(threshold=1.0),
    "most": lambda: L.ReLU(max_value=3.0, threshold=0.5),
    "all": lambda: L.ReLU(max_value=3.0, negative_slope=0.25, threshold=0.5),
    "clip": lambda: lambda x: keras.ops.clip(x, -1.0, 1.0), "abs": lambda: keras.ops.abs,
    "maximum": lambda: lambda x: keras.ops.maximum(x, 0.5), "minimum": lambda: lambda x: keras.ops.minimum(x, 0.5),
    "pool": lambda: lambda x: L.Flatten()(L.MaxPooling1D(2)(keras.ops.stack([x, x], 1))),
}
# What a file does not have.
TRACED = {"selu": lambda: L.Activation("selu"), "sparse_sigmoid": lambda: L.Activation("sparse_sigmoid"),
          "sparse_plus": lambda: L.Activation("sparse_plus"),
          "std": lambda: lambda x: keras.ops.std(keras.ops.stack([x, x], -1), axis=-1)}
if BACKEND != "torch":
    del TRACED["std"]  # is not a number
if BACKEND == "tensorflow":
    TRACED["celu"] = FUNCTIONS.pop("celu")  # as selu: in a file its gradient at 0 is that of the other back ends


def functions(by):
    """Each function of elements that are at its kinks, and of a gradient that is another one for each."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    x = keras.Input((3,))
    parts = []
    for name, make in {**FUNCTIONS, **(TRACED if by == "trace" else {})}.items():
        parts.append(make()(L.Dense(len(AT), kernel_initializer="zeros", name=f"at_{name}")(x)))
    y = L.Concatenate()(parts)
    model = keras.Model(x, y, name="functions")
    for layer in model.layers:
        if layer.name.startswith("at_"):
            layer.bias.assign(AT)
    model.compile(keras.optimizers.SGD(float(y.shape[1])), "mse")
    return model


@pytest.mark.parametrize("by", ["file", "trace"])
def test_gradients_of_functions_at_kinks(by):
    x = np.arange(12, dtype="float32").reshape(4, 3) / 8
    changed = []
    for fit, options in ((keras.Model.fit, {"verbose": 0}), (mtc.fit, {**QUIET, "by": by})):
        model = functions(by)
        away = np.random.default_rng(4).uniform(0.3, 0.9, model.output_shape[1:])
        y = np.asarray(keras.ops.convert_to_numpy(model(x))) + away.astype("float32")
        fit(model, x, y, batch_size=4, **options)
        changed.append({layer.name: keras.ops.convert_to_numpy(layer.bias) - AT for layer in model.layers
                        if layer.name.startswith("at_")})
    for name, wanted in changed[0].items():
        np.testing.assert_allclose(changed[1][name], wanted, rtol=1e-4, atol=1e-5, err_msg=name)


def test_what_is_at_a_threshold():
    """The layer gives 0 there."""
    for made in (L.ReLU(threshold=1.0), L.ReLU(negative_slope=0.5, threshold=1.0), L.ReLU(3.0, 0.5, 1.0)):
        keras.backend.clear_session()
        given = keras.Input((len(AT),))
        model = keras.Model(given, made(given))
        found = mtc.predict(model, AT[None], by="file", **QUIET)
        np.testing.assert_array_equal(found, keras.ops.convert_to_numpy(model(AT[None])))


def kinks():
    """All values before the last layer are at kinks, and the error is 0; L1 is of zeros too. Gradients are exact."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(3)
    x = keras.Input((3,))
    a, b = (L.Dense(4, kernel_initializer="zeros", bias_regularizer=keras.regularizers.L1(0.25))(x) for _ in range(2))
    parts = [L.Maximum()([a, b]), L.Minimum()([a, b])]
    bound = {"hard_tanh": (1.0, 1.0), "hard_sigmoid": (-3.0, 0.0)}  # and its value there
    for name in ("leaky_relu", "relu6", "hard_tanh", "hard_sigmoid"):
        at, value = bound.get(name, (0.0, 0.0))
        shifted = L.Dense(4, kernel_initializer="zeros", bias_initializer=keras.initializers.Constant(at))(x)
        parts.append(L.Activation(name)(shifted) - value)
    y = L.Dense(2, kernel_initializer="ones")(L.Concatenate()(parts))
    model = keras.Model(x, y, name="kinks")
    model.compile(keras.optimizers.SGD(0.5), "mae")
    return model


def step(fit, **options):
    """The model's variables after a step."""
    model = kinks()
    x = np.arange(24, dtype="float32").reshape(8, 3) / 8
    fit(model, x, np.zeros((8, 2), "float32"), batch_size=8, **options)
    return [np.asarray(v) for v in model.get_weights()]


def test_gradients_at_kinks():
    wanted = step(keras.Model.fit, verbose=0)
    file, trace = (step(mtc.fit, by=by, **QUIET) for by in ("file", "trace"))
    for mine, traced, other in zip(file, trace, wanted):
        assert mine.tobytes() == traced.tobytes()
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)


NANS = ["relu", "relu6", "hard_tanh", "hard_sigmoid", "hard_silu", "leaky_relu", "elu", "softplus"]


def specials(name):
    """A layer, or a function of layers, between two that keep what they are given."""
    keras.backend.clear_session()
    x = keras.Input((4, 4, 2))
    made = {"max_pool": lambda: L.MaxPooling2D()(x), "global": lambda: L.GlobalMaxPooling2D()(x),
            "maximum": lambda: L.Maximum()([x, L.Permute((2, 1, 3))(x)]),
            "minimum": lambda: L.Minimum()([L.Permute((2, 1, 3))(x), x]),
            "max": lambda: keras.ops.max(x, axis=-1), "max_relu": lambda: L.ReLU(max_value=1.5)(x),
            "softmax": lambda: L.Softmax()(x)}
    y = made[name]() if name in made else L.Activation(name)(x)
    return keras.Model(x, y, name=name)


@pytest.mark.parametrize("name", [*NANS, "max_pool", "global", "maximum", "minimum", "max", "max_relu", "softmax"])
def test_nan_goes_through(name):
    if BACKEND == "tensorflow" and name in ("max_pool", "softmax"):
        pytest.skip("TensorFlow's kernels for CPUs lose a NaN in a pool, and place those of a softmax otherwise")
    x = np.random.default_rng(1).normal(size=(6, 4, 4, 2)).astype("float32") * 3
    x[1, 2, 3, 0] = x[2, 0, 0, 1] = x[4, 3, 3, 0] = np.nan
    if name != "hard_silu":  # which is 0 at -inf in MTC, and NaN in JAX
        x[3, 1, 1, 1], x[3, 2, 2, 0] = np.inf, -np.inf
    model = specials(name)
    wanted = np.asarray(model(x))
    assert np.isnan(wanted).any()
    model.compile("sgd", "mse")
    for by in ("file", "trace") if BACKEND == "jax" else ("file",):
        plan = mtc.compile(model, batch_size=6, by=by, check=False, verbose=0)
        with plan.session("cpu:1") as session:
            out = np.asarray(session.predict(x))
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
