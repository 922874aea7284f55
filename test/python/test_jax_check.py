# SPDX-License-Identifier: Apache-2.0
"""The check of mtc.jax: faults that it has to find, and what it allows."""

import jax
import jax.numpy as jnp
import jax_models
import numpy as np
import pytest

import mtc
import mtc.jax
from mtc._trace import Graph, guard
from mtc._trace import elementwise as e
from mtc.jax import _check, _reader, _reference, _state

X = np.random.default_rng(0).standard_normal((4, 3)).astype("f4")
PARAMS = {"w": np.random.default_rng(1).standard_normal((3, 2)).astype("f4")}
WORDS = {"w": np.random.default_rng(1).standard_normal((9, 2)).astype("f4")}
IDS = np.array([[1, 2], [3, 4], [5, 6]], "i4")


def compiled(loss, params=None, batch=None, **options):
    return mtc.jax.compile(loss, PARAMS if params is None else params, {"x": X} if batch is None else batch,
                           **{"optimizer": "sgd", "batch_size": 8, "devices": "cpu:1", "verbose": 0, **options})


def planted(monkeypatch, name, change):
    """Changes what the primitive `name` becomes."""
    right = _reader.RULES[name]
    monkeypatch.setitem(_reader.RULES, name, lambda r, equation, inputs: change(
        right(r, equation, inputs), r.value(inputs[0])))


def more_where(made, x, bound, compare):
    return e.binary("add", made, e.binary("mul", e.cast(e.compare(compare, x, bound), "f32"), 0.1))


def tanh(p, b):
    return jnp.mean(jnp.tanh(b["x"]) @ p["w"])


def of_words(p, b):
    return jnp.mean(jnp.tanh(p["w"][b["x"]]) ** 2)


FAULTS = {
    "row of zeros": (lambda made, x: more_where(made, x, 0.0, "eq"), tanh, PARAMS, X, "a row of zeros"),
    "large numbers": (lambda made, x: more_where(made, x, 10.0, "gt"), tanh, PARAMS, X, "inputs times 100"),
    "large numbers in place of ones": (lambda made, x: more_where(made, x, 10.0, "gt"), tanh, PARAMS,
                                       np.array([[1, 0, 1], [0, 1, 1]], "f4"), "inputs times 100"),
    "a row of zeros in place of ones": (lambda made, x: more_where(made, x, 0.0, "eq"), tanh, PARAMS,
                                        np.ones((2, 3), "f4"), "a row of zeros"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_a_planted_fault(fault, monkeypatch):
    change, loss, params, x, case = FAULTS[fault]
    compiled(loss, params, {"x": x}).close()
    planted(monkeypatch, "tanh", change)
    with pytest.raises(mtc.ModelError, match=f"differs from JAX for {case}: "):
        compiled(loss, params, {"x": x})
    compiled(loss, params, {"x": x}, check=False).close()


def test_check_finds_a_fault_of_the_last_row_of_a_table(monkeypatch):
    compiled(of_words, WORDS, {"x": IDS}).close()
    right = _check._Mine.of

    def wrong(self, arrays, numbers):
        values = right(self, arrays, numbers)
        return {**values, guard.LOSS: values[guard.LOSS] + np.float32(0.1 * (arrays["x"] == 8).any())}

    monkeypatch.setattr(_check._Mine, "of", wrong)
    with pytest.raises(mtc.ModelError, match="for whole numbers and masks at their ends: .*\n  the loss: "):
        compiled(of_words, WORDS, {"x": IDS})


def test_check_finds_a_wrong_gradient(monkeypatch):
    m = jax_models.mlp()
    right = _check._Mine.of

    def wrong(*given):
        values = right(*given)
        values['the gradient of "dense/bias"'] = values['the gradient of "dense/bias"'] * np.float32(1.01)
        return values

    monkeypatch.setattr(_check._Mine, "of", wrong)
    with pytest.raises(mtc.ModelError, match='the model differs from JAX: .*\n  the gradient of "dense/bias": 1.0e-02'):
        compiled(m.loss, m.params, m.some(4))


def test_check_finds_a_wrong_prediction(monkeypatch):
    """The prediction takes columns that the array does not have; the loss has none of it."""
    def predict(p, b):
        return jnp.tanh(b["x"] @ p["w"])

    right = Graph.output
    compiled(tanh, predict=predict).close()
    monkeypatch.setattr(Graph, "output", lambda graph, name, node: right(
        graph, name, e.binary("mul", node, 1.01)))
    with pytest.raises(mtc.ModelError, match="the model differs from JAX: .*\n  the prediction output: 1.0e-02"):
        compiled(tanh, predict=predict)


def test_check_finds_a_wrong_metric(monkeypatch):
    def loss(p, b, training):
        value = jnp.mean(b["x"] @ p["w"])
        return value, {"size": jnp.mean(jnp.abs(b["x"])) if training else 2 * jnp.mean(jnp.abs(b["x"]))}

    compiled(loss).close()
    planted(monkeypatch, "abs", lambda made, _x: e.binary("mul", made, 1.01))
    with pytest.raises(mtc.ModelError, match="\n  the metric size.*\n  the metric size"):
        compiled(loss)


def test_check_finds_a_wrong_state(monkeypatch):
    m = jax_models.resnet()
    right = _state._say
    monkeypatch.setattr(_state, "_say", lambda *given: right(*given[:4], given[4] * 0.9))
    with pytest.raises(mtc.ModelError, match="the model differs from JAX: .*\n  the buffer "):
        compiled(m.loss, m.params, m.some(6), state=m.state)


def test_check_finds_a_gradient_where_all_are_zero(monkeypatch):
    def loss(p, b):
        return jnp.mean(jnp.tanh(b["x"] @ p["w"]) * 0) + jnp.mean(b["x"] ** 2)

    class Wrong(_check._Mine):
        def of(self, arrays, numbers):
            values = super().of(arrays, numbers)
            return {**values, 'the gradient of "w"': np.full((3, 2), 0.01, "f4")}

    compiled(loss).close()
    monkeypatch.setattr(_check, "_Mine", Wrong)
    with pytest.raises(mtc.ModelError, match='the gradient of "w"'):
        compiled(loss)


def test_check_asks_jax_again_where_the_quick_program_differs(monkeypatch):
    """The settings with which JAX compiles it are rarely used."""
    m = jax_models.mlp()
    right, asked = _reference.Reference.of, []

    def of(change):
        def changed(self, arrays, bits, quickly, double=False, noise=0):
            if not quickly:
                asked.append(1)
            return change(right(self, arrays, bits, False, double, noise)) if quickly else right(
                self, arrays, bits, quickly, double, noise)

        return changed

    def wrong(values):
        return {key: 1.01 * value for key, value in values.items()}

    def refused(_values):
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED")

    for change, count in ((lambda values: values, 0), (wrong, 5), (refused, 5)):
        asked.clear()
        monkeypatch.setattr(_reference.Reference, "of", of(change))
        compiled(m.loss, m.params, m.some(4)).close()
        assert len(asked) == count


# What else is compared


def masked(p, b):
    return jnp.sum(jnp.mean((b["x"] @ p["w"]) ** 2, 1) * b["mask"]) / jnp.maximum(jnp.sum(b["mask"]), 1)


@pytest.mark.parametrize("loss, batch", [
    (masked, {"x": X, "mask": np.array([1, 1, 0, 1], "f4")}),
    (lambda p, b: jnp.sum(jnp.where(b["y"] >= 0, jnp.tanh(b["x"] @ p["w"])[:, 0] * b["y"], 0)),
     {"x": X, "y": np.array([1, 2, -1, 0], "i4")})], ids=["mask", "labels"])
def test_a_batch_without_a_label_that_counts_is_compared(loss, batch, capsys, monkeypatch):
    compiled(loss, batch=batch, verbose=1).close()
    assert "; a sample whose labels are ignored; all labels ignored; " in capsys.readouterr().err
    right = _check._Mine.of

    def wrong(self, arrays, numbers):
        values = right(self, arrays, numbers)
        empty = (arrays["mask"] == 0 if "mask" in arrays else arrays["y"] < 0).all()
        return {**values, guard.LOSS: values[guard.LOSS] + np.float32(0.1 * empty)}

    monkeypatch.setattr(_check._Mine, "of", wrong)
    with pytest.raises(mtc.ModelError, match="for all labels ignored: .*\n  the loss: "):
        compiled(loss, batch=batch)


def test_a_loss_that_does_not_repeat_itself_is_no_reference(monkeypatch):
    right, count = _reference.Reference.of, iter(range(100))

    def of(*given):
        values = right(*given)
        return {**values, guard.LOSS: values[guard.LOSS] * np.float32(1 + 1e-6 * next(count))}

    monkeypatch.setattr(_reference.Reference, "of", of)
    with pytest.raises(mtc.ModelError, match="expected a loss function that computes the same twice"):
        compiled(tanh)


def test_a_full_check_takes_all_samples_and_batches(capsys, monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", -1.0)
    rows = []
    right = _check._Mine.of
    monkeypatch.setattr(_check._Mine, "of", lambda self, arrays, numbers: (
        rows.append(len(arrays["x"])), right(self, arrays, numbers))[1])
    compiled(tanh, verbose=1).close()
    assert rows == [2, 2] and "of 1 batch made of it" in capsys.readouterr().err
    rows.clear()
    compiled(tanh, verbose=1, check="full").close()
    assert rows == [4, 4, 4, 1] and "of 3 batches made of it" in capsys.readouterr().err
