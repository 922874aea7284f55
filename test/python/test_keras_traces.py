# SPDX-License-Identifier: Apache-2.0
"""Keras models that are traced: the same losses, metrics, weights and outputs as Keras' own fit has, and in float64 the
same gradients."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import interpreter
import jax
import keras
import keras_float64
import keras_layers
import keras_models
import models
import mtc
import numpy as np
import pytest
from mtc import _compile
from mtc.keras import _on_jax

HERE = {"devices": "cpu:1", "cpu": "native"}
# A model takes about five seconds in each test, of two compilers or of the interpreter: every fourth one, or all with
# MTC_ALL_MODELS=1.
EVERY = bool(os.environ.get("MTC_ALL_MODELS"))
MODELS, OTHERS = (keras_models.ALL if EVERY else keras_models.ALL[start::4] for start in (0, 2))


def trained(function, **options):
    """Three epochs in MTC and in Keras, of the same model."""
    ours = keras_models.make(function)
    settings = {"batch_size": 16, "epochs": 3, "shuffle": False, "verbose": 0}
    found = mtc.fit(ours.model, ours.x, ours.y, sample_weight=ours.sample_weight, **{**settings, **HERE, **options})
    theirs = keras_models.make(function)
    wanted = theirs.model.fit(theirs.x, theirs.y, sample_weight=theirs.sample_weight, **settings)
    return ours, theirs, found.history, wanted.history


@pytest.mark.parametrize("function", MODELS, ids=lambda f: f.__name__)
def test_fit_is_that_of_keras(function, capsys):
    """The loss and all gradients are compared with Keras': within 1e-5 at the first step."""
    case = keras_models.make(function)
    ours, theirs, found, wanted = trained(function, by="trace" if case.file else None, verbose=2)
    line = r"checked against JAX: loss (\S+) \(JAX (\S+)\), worst gradient (\S+) (\S+),"
    figures = re.search(line, capsys.readouterr().err)
    # The bias of a convolution before batch normalisation has the gradient 0, but for roundings.
    assert figures and (float(figures[4]) <= 1e-5 or figures[3] == '"cnn/conv2d/bias"')
    assert float(figures[1]) == pytest.approx(float(figures[2]), rel=1e-5)
    assert set(found) == set(wanted)
    if case.random:  # other random numbers
        assert all(np.isfinite(v) for v in found["loss"])
        return
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-3, atol=1e-3)
    for mine, other in zip(ours.model.variables, theirs.model.variables, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=2e-3, atol=2e-3, err_msg=mine.path)
    assert int(ours.model.optimizer.iterations) == int(theirs.model.optimizer.iterations) > 0
    options = {"sample_weight": ours.sample_weight, "verbose": 0, "return_dict": True}
    mine = mtc.evaluate(ours.model, ours.x, ours.y, **options, **HERE)
    other = ours.model.evaluate(ours.x, ours.y, **options)
    assert mine == pytest.approx(other, rel=1e-3, abs=1e-4)
    outputs = keras.tree.flatten(mtc.predict(ours.model, ours.x, verbose=0, **HERE))
    for a, b in zip(outputs, keras.tree.flatten(ours.model.predict(ours.x, verbose=0)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("function", OTHERS, ids=lambda f: f.__name__)
def test_a_step_in_float64(function, tmp_path):
    """The loss, all gradients and the state after a step in the interpreter are those of Keras in float64."""
    def make():
        case = keras_models.make(function)
        return case.model, case.x, case.y, case.sample_weight

    errors = keras_float64.errors(make, tmp_path / "model.mlir")
    assert not {n: e for n, e in errors.items() if not e <= interpreter.TOLERANCE}


@pytest.mark.parametrize("function", [keras_models.mlp, keras_models.cnn, keras_models.transformer],
                         ids=lambda f: f.__name__)
def test_the_same_gradients_both_ways(function):
    """With gradient descent and momentum the slots after one step are the gradients."""
    slots = []
    for by in ("file", "trace"):
        case = keras_models.make(function)
        case.model.compile(keras.optimizers.SGD(0.1, momentum=0.5), keras_models.cross_entropy())
        mtc.fit(case.model, case.x[:8], case.y[:8], batch_size=8, shuffle=False, verbose=0, by=by, **HERE)
        slots.append([v.numpy() for v in [*case.model.optimizer.variables, *case.model.non_trainable_variables]])
    for a, b in zip(*slots, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_one_message_and_the_same_bits_on_any_devices(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("mtc.keras._compile._checked", set())  # of tests before this one, and so are plans
    monkeypatch.setenv("MTC_CACHE", str(tmp_path))
    found = []
    for devices in ("cpu:1", "cpu:3"):
        case = keras_models.make(keras_models.dropout)
        mtc.fit(case.model, case.x, case.y, epochs=2, batch_size=16, verbose=2, devices=devices, cpu="native")
        found.append([v.numpy() for v in case.model.trainable_variables])
        told = capsys.readouterr().err.count("net is traced on JAX; checked against JAX: loss")
        assert told == (devices == "cpu:1")
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_going_on_in_keras():
    """An epoch here and one there are two there, with the optimizer's state."""
    options = {"batch_size": 16, "shuffle": False, "verbose": 0}
    first = keras_models.make(keras_models.custom_layer)
    mtc.fit(first.model, first.x, first.y, **options, **HERE)
    first.model.fit(first.x, first.y, **options)
    second = keras_models.make(keras_models.custom_layer)
    second.model.fit(second.x, second.y, epochs=2, **options)
    for a, b in zip(first.model.variables, second.model.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_compile_and_save(tmp_path):
    case = keras_models.make(keras_models.custom_layer)
    with pytest.raises(mtc.ModelError, match="expected a built model"):
        mtc.compile(case.model, cpu="native")
    case.model.build((None, 6))
    with pytest.raises(mtc.ModelError, match="net: expected an example"):
        mtc.compile(case.model, cpu="native")
    case.model.fit(case.x, case.y, verbose=0)
    plan = mtc.compile(case.model, example=(case.x, case.y), batch_size=16, cpu="native", verbose=0)
    plan.save(tmp_path / "net.mtp")
    with mtc.load(tmp_path / "net.mtp").session("cpu:1") as session:  # starts with the weights and Adam's state
        for variable in [*case.model.variables, case.model.optimizer._momentums[0]]:
            name = variable.path if "adam" not in variable.path else "adam/net_hidden_w_momentum"
            assert np.array_equal(session.variables[name], variable.numpy()), name
        assert session.variables["adam/iteration"] == 2
    functional = keras_models.make(keras_models.lambda_layer)  # knows its inputs, and Keras' loss its targets
    plan = mtc.compile(functional.model, batch_size=16, cpu="native", verbose=0)
    assert [t.name for t in plan.targets] == ["target"] and plan.metrics() == ("loss", "accuracy")


def test_a_model_whose_optimizer_has_no_state_is_compiled_once(monkeypatch):
    names = []
    plan_of_text = _compile.plan_of_text

    def counted(text, name, *more):
        names.append(name)
        return plan_of_text(text, name, *more)

    monkeypatch.setattr(_compile, "plan_of_text", counted)
    model = keras_models.make(keras_models.lambda_layer).model
    plan = mtc.compile(model, batch_size=16, cpu="native", verbose=0, cache=False)
    assert names.count(model.name) == 1
    with plan.session("cpu:1") as session:
        for variable in model.trainable_variables:
            assert np.array_equal(session.variables[variable.path], variable.numpy()), variable.path


def test_generator_and_unbuilt_model():
    def batches():
        for i in range(0, 40, 8):
            yield keras_models.X[i:i + 8], keras_models.LABELS[i:i + 8]

    case = keras_models.make(keras_models.nested)
    history = mtc.fit(case.model, batches(), epochs=1, verbose=0, validation_data=(case.x, case.y), **HERE)
    assert set(history.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}


@keras.saving.register_keras_serializable("tests")
class Multiplied(keras.layers.Layer):
    def call(self, x):
        low = jax.lax.bessel_i0e(x)
        high = jax.lax.bessel_i1e(x)
        return keras.ops.concatenate([low, high], -1)


def test_refusals_have_lines_and_layers():
    model = keras.Sequential([keras.Input((6,)), Multiplied(name="multiplied"), keras.layers.Dense(1)], name="odd")
    model.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError) as found:
        mtc.fit(model, keras_models.X, keras_models.Y, verbose=0)
    first, second, third = str(found.value).splitlines()[:3]
    line = Multiplied.call.__code__.co_firstlineno
    assert first.startswith(f"{__file__}:{line + 1}:") and "bessel_i0e" in first and '(in "multiplied")' in first
    assert second.startswith(f"{__file__}:{line + 2}:") and "bessel_i1e" in second
    assert third.startswith("nor is it read as a file: odd.keras")


def test_a_file_that_is_refused_says_that_a_trace_takes_more():
    """Unless a trace was tried too."""
    advice = r"mtc\.compile\(model, by=\"trace\"\) in the program that builds it \(docs/keras-traces\.md\)$"
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1, kernel_constraint="non_neg")])
    model.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError, match=advice):
        mtc.compile(model, by="file", verbose=0)
    mtc.compile(model, by="trace", verbose=0)
    strange = keras.Sequential([keras.Input((6, 6)), keras.layers.Lambda(lambda x: keras.ops.real(keras.ops.eig(x)[0])),
                                keras.layers.Flatten(), keras.layers.Dense(1)])
    strange.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError, match="eig(.|\n)*nor is it read as a file") as found:
        mtc.compile(strange, verbose=0)
    assert "a trace supports more" not in str(found.value)
    given = keras.Input((6,))
    own = type("Own", (keras.Model,), {"compute_loss": lambda self, **_: 0.0})(given, keras.layers.Dense(1)(given))
    own.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError, match="has its own compute_loss: a trace takes Python code"):
        mtc.compile(own, by="file", verbose=0)


def small(metrics=(), **options):
    model = keras.Sequential([keras.Input((6,)), keras_layers.Linear(1)], name="small")
    model.compile(options.get("optimizer", "sgd"), "binary_crossentropy", metrics=list(metrics))
    return model


class Constant(keras.layers.Layer):
    def call(self, x):
        return x + keras.random.normal(keras.ops.shape(x), seed=3)


class Counting(keras.layers.Layer):
    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="calls")

    def call(self, x):
        self.calls.assign_add(1.0)
        return x * self.calls


def with_step(step):
    """A model with this `train_step`."""
    given = keras.Input((6,))
    return type("Steps", (keras.Model,), {"train_step": step})(given, keras.layers.Dense(1)(given))


def no_gradients(self, state, _data):
    return {"loss": 0.0}, state


def halved(self, state, data):
    trainable, others, optimizer, metrics = state

    def loss_of(trainable):
        return keras.ops.mean((data[1] - self.stateless_call(trainable, others, data[0])[0])**2)

    loss, gradients = jax.value_and_grad(loss_of)(trainable)
    halves = [0.5 * g for g in gradients]
    trainable, optimizer = self.optimizer.stateless_apply(optimizer, halves, trainable)
    return {"loss": loss}, (trainable, others, optimizer, metrics)


def test_steps_that_call_that_of_keras():
    """They are Keras' step, with what they do before and after it."""
    def step(self, state, data):
        logs, state = keras.Model.train_step(self, state, data)
        return {**logs, "double": 2 * logs["loss"]}, state

    model = with_step(step)
    model.compile("sgd", "mse", metrics=["mae"])
    history = mtc.fit(model, keras_models.X, keras_models.Y, epochs=2, verbose=0, **HERE).history
    assert set(history) == {"loss", "mae", "double"}
    assert np.allclose(history["double"], 2 * np.array(history["loss"]), rtol=1e-5)


def test_a_loss_that_only_the_step_of_the_model_calls():
    """Under the name of Keras' method, with fewer arguments, as Keras' guide on JAX has it."""
    class Net(keras.Model):
        def compute_loss_and_updates(self, trainable, others, metrics, x, y, sample_weight, training=False):
            y_pred, others = self.stateless_call(trainable, others, x, training=training)
            loss, (_, others, metrics) = self.stateless_compute_loss(
                trainable, others, metrics, x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
            return 2 * loss, (y_pred, others, metrics)

        def train_step(self, state, data):
            trainable, others, optimizer, metrics = state
            x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
            (loss, (_, others, metrics)), gradients = jax.value_and_grad(self.compute_loss_and_updates, has_aux=True)(
                trainable, others, metrics, x, y, weight, training=True)
            trainable, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trainable)
            tracked = self.metrics[0].stateless_update_state(metrics[:2], loss)
            return {"loss": self.metrics[0].stateless_result(tracked)}, (trainable, others, optimizer, [
                *tracked, *metrics[2:]])

    found = []
    for fit in (keras.Model.fit, mtc.fit):
        models.begin(4)
        given = keras.Input((6,))
        model = Net(given, keras.layers.Dense(1)(given))
        model.compile("adam", "mse")
        more = HERE if fit is mtc.fit else {}
        found.append(fit(model, keras_models.X[:32], keras_models.Y[:32], batch_size=16, epochs=2, shuffle=False,
                         verbose=0, **more).history["loss"])
    assert np.allclose(found[0], found[1], rtol=1e-4)


def test_a_step_without_a_loss_of_compile():
    """Trackers of the step's own parts of a loss."""
    class Net(keras.Model):
        def __init__(self, *parts):
            super().__init__(*parts)
            self.parts = [keras.metrics.Mean(name=name) for name in ("loss", "error", "penalty")]

        @property
        def metrics(self):
            return self.parts

        def train_step(self, state, data):
            trainable, others, optimizer, metrics = state

            def loss_of(trainable):
                error = keras.ops.mean((data[1] - self.stateless_call(trainable, others, data[0])[0])**2)
                penalty = 0.01 * sum(keras.ops.sum(v**2) for v in trainable)
                return error + penalty, (error, penalty)

            (loss, parts), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable)
            trainable, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trainable)
            logs, updated = {}, []
            for metric, value in zip(self.metrics, (loss, *parts)):
                n = len(updated)
                now = metric.stateless_update_state(metrics[n:n + len(metric.variables)], value)
                logs[metric.name] = metric.stateless_result(now)
                updated += now
            return logs, (trainable, others, optimizer, updated)

    found = []
    for fit in (keras.Model.fit, mtc.fit):
        models.begin(4)
        given = keras.Input((6,))
        model = Net(given, keras.layers.Dense(1)(given))
        model.compile("adam")
        more = HERE if fit is mtc.fit else {}
        found.append(fit(model, keras_models.X[:32], keras_models.Y[:32], batch_size=16, epochs=2, shuffle=False,
                         verbose=0, **more).history)
    assert set(found[0]) == set(found[1]) == {"loss", "error", "penalty"}
    for name, values in found[0].items():
        assert np.allclose(values, found[1][name], rtol=1e-4), name


def test_own_test_step():
    """Training does not need it; validation would."""
    def test_step(self, state, data):
        return keras.Model.test_step(self, state, data)

    given = keras.Input((6,))
    model = type("Tests", (keras.Model,), {"test_step": test_step})(given, keras.layers.Dense(1)(given))
    model.compile("sgd", "mse")
    mtc.fit(model, keras_models.X, keras_models.Y, verbose=0, **HERE)
    for call in (lambda: mtc.evaluate(model, keras_models.X, keras_models.Y, verbose=0, **HERE),
                 lambda: mtc.fit(model, keras_models.X, keras_models.Y, validation_split=0.5, verbose=0, **HERE)):
        with pytest.raises(mtc.ModelError, match="expected Keras' own test_step, found one of Tests"):
            call()


def test_metrics_of_sums():
    """What Keras knows by its classes, over batches of which the last is short."""
    M, names = keras.metrics, []
    model = small([M.AUC(name="area"), M.F1Score("macro", 0.5, name="f1"), M.F1Score(threshold=0.5, name="each"),
                   M.Precision([0.3, 0.5], name="precision"), M.TruePositives(name="hits"), M.R2Score(name="r2"),
                   M.PrecisionAtRecall(0.5, name="bound"), M.BinaryIoU(name="iou"), "mae"])
    x, y = keras_models.X, (keras_models.Y > 0).astype("f4")
    weights = np.linspace(0.5, 2, len(x), dtype="f4")
    for given in ({}, {"sample_weight": weights}):
        wanted = model.evaluate(x, y, batch_size=7, verbose=0, return_dict=True, **given)
        found = mtc.evaluate(model, x, y, batch_size=7, verbose=0, return_dict=True, by="trace", **given, **HERE)
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    with mtc.compile(model, example=(x, y), batch_size=8, by="trace", verbose=0).session("cpu:1") as session:
        names = list(session.plan.metrics("eval_step"))
    assert {"area", "each/0", "precision/1", "iou"} <= set(names)


class Geometric(keras.metrics.Mean):
    """A mean of logarithms, and no mean."""

    def update_state(self, y, p, sample_weight=None):
        return super().update_state(keras.ops.log(keras.ops.abs(p) + 1))

    def result(self):
        return keras.ops.exp(super().result())


@pytest.mark.parametrize("metric, text", [
    (lambda: Geometric(name="area"), "metric area: expected a mean over samples"),
    (lambda: keras.metrics.Precision([0.0, 0.5, 1.0], name="each"), "metric each: expected a number, found an array"),
], ids=["metric", "array"])
def test_metrics_are_left_out(metric, text):
    model = small([metric(), "mae"])
    with pytest.warns(mtc.ModelWarning, match=text + ".*left out"):
        history = mtc.fit(model, keras_models.X, (keras_models.Y > 0).astype("f4"), verbose=0, **HERE)
    assert set(history.history) == {"loss", "mae"}


@pytest.mark.parametrize("make, text", [
    (lambda: keras.Sequential([keras.Input((6,)), Constant(), keras.layers.Dense(1)]), "SeedGenerator"),
    (lambda: with_step(no_gradients), "train_step of Steps: expected it to call jax.value_and_grad"),
    (lambda: with_step(halved), "train_step of Steps: expected the gradients of the loss as they are"),
], ids=["seed", "no_gradients", "halved"])
def test_refused(make, text):
    model = make()
    if not model.compiled:
        model.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError, match=text):
        mtc.fit(model, keras_models.X, (keras_models.Y > 0).astype("f4"), verbose=0, **HERE)


def test_other_back_end(tmp_path):
    """A process on JAX loads the model, and the one that trains has another back end."""
    script = tmp_path / "train.py"
    script.write_text("""
import keras, keras_models, mtc, numpy as np
case = keras_models.make(keras_models.lines)
history = mtc.fit(case.model, case.x, case.y, epochs=2, batch_size=16, shuffle=False, verbose=2, devices="cpu:1",
                  cpu="native")
print(keras.backend.backend(), history.history["loss"][-1] < history.history["loss"][0])
""")
    environment = {**os.environ, "KERAS_BACKEND": "numpy", "PYTHONPATH": os.pathsep.join(
        [os.environ["PYTHONPATH"], str(pathlib.Path(__file__).parent)])}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          check=True)
    assert "numpy True" in done.stdout and "is traced on JAX; checked against JAX" in done.stderr


def test_the_example_of_the_page(tmp_path, monkeypatch):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "keras-traces.md"
    lines = page.read_text(encoding="utf-8").partition("\nWith `verbose`")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    exec("\n".join(line[4:] for line in lines if line.startswith("    ") or not line), {})  # noqa: S102
    assert (tmp_path / "autoencoder.mtp").exists()


@pytest.mark.parametrize("make, number", [
    (lambda: keras.optimizers.AdamW(keras.optimizers.schedules.ExponentialDecay(1e-2, 1, 0.5), weight_decay=0.1),
     "weight_decay"),
    (lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=0.01), "clipnorm")], ids=["adamw", "sgd"])
def test_the_updates_are_those_of_keras(make, number, capsys, monkeypatch):
    """And where a number of the optimizer or its rate is another, the check says so."""
    x = np.random.default_rng(0).standard_normal((8, 3)).astype("f4")

    def compiled(layers):  # a text that was checked is not checked again
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(layers, activation="tanh"),
                                  keras.layers.Dense(1)])
        optimizer = make()
        if number == "weight_decay":
            optimizer.exclude_from_weight_decay(var_names=["bias"])
        model.compile(optimizer, "mse")
        mtc.compile(model, batch_size=8, by="trace", example=(x, x[:, :1]), cache=False, verbose=1)

    compiled(4)
    assert f"; 3 updates of {type(make()).__name__} are those of Keras" in capsys.readouterr().err
    right = _on_jax.optimizer_of

    def rate(*given):
        made = right(*given)
        other = (lambda count: 1.01 * made.rate(count)) if callable(made.rate) else 1.01 * made.rate
        return dataclasses.replace(made, rate=other)

    def attribute(*given):
        made = right(*given)
        return made.with_(**{number: 0.9 * made.attributes[number]})

    for layers, wrong in enumerate((rate, attribute), 5):
        monkeypatch.setattr(_on_jax, "optimizer_of", wrong)
        with pytest.raises(mtc.ModelError, match="of Keras makes of the same gradients, found after [123]"):
            compiled(layers)


class Invented(keras.optimizers.Optimizer):
    """Of this test alone."""

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.seen = [self.add_variable_from_reference(v, "seen") for v in variables]

    def update_step(self, gradient, variable, learning_rate):
        seen = self.seen[self._get_variable_index(variable)]
        self.assign(seen, keras.ops.maximum(0.9 * seen, keras.ops.abs(gradient)))
        step = learning_rate / keras.ops.sqrt(keras.ops.cast(self.iterations + 1, "float32"))
        self.assign_sub(variable, step * gradient / (seen + 0.1))


TRACED = {
    "ftrl": lambda: keras.optimizers.Ftrl(0.05), "adafactor": lambda: keras.optimizers.Adafactor(0.01),
    "muon": lambda: keras.optimizers.Muon(0.01), "invented": lambda: Invented(0.05),
    "accumulation": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=3),
    "schedule": lambda: keras.optimizers.Ftrl(keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)),
    "constraint": lambda: keras.optimizers.Adam(0.05),
}


@pytest.mark.parametrize("name", TRACED)
def test_optimizers_are_traced(name):
    """Where MTC has no form of an optimizer, its own step is a part of the plan; Keras goes on from its state."""
    def make():
        keras.utils.set_random_seed(3)
        constraint = keras.constraints.MaxNorm(0.5) if name == "constraint" else None
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "tanh", kernel_constraint=constraint),
                                  keras.layers.Dense(3)])
        model.compile(TRACED[name](), "mse")
        return model

    random = np.random.default_rng(0)
    x, y = random.normal(size=(40, 4)).astype("f4"), random.normal(size=(40, 3)).astype("f4")
    options = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}
    ours, theirs = make(), make()
    found, wanted = mtc.fit(ours, x, y, **options, **HERE).history, theirs.fit(x, y, **options).history
    np.testing.assert_allclose(found["loss"], wanted["loss"], rtol=1e-4)
    both = ([*m.variables, *m.optimizer.variables] for m in (ours, theirs))
    for mine, other in zip(*both, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-3, atol=1e-4, err_msg=mine.path)
    ours.fit(x, y, **options)
    theirs.fit(x, y, **options)
    for mine, other in zip(ours.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)


def test_a_state_that_a_layer_changes():
    x = np.random.default_rng(0).normal(size=(32, 6)).astype("f4") / 10
    models = []
    for fit in (lambda model, **options: model.fit(x, x[:, :1], **options),
                lambda model, **options: mtc.fit(model, x, x[:, :1], **options)):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((6,)), Counting(), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        fit(model, batch_size=8, epochs=2, shuffle=False, verbose=0)
        models.append(model)
    for theirs, ours in zip(*(model.weights for model in models)):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-7, err_msg=ours.path)
    assert models[1].layers[0].calls.numpy() == 8
