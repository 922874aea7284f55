# SPDX-License-Identifier: Apache-2.0
"""mtc.fit, evaluate and predict on live Keras models."""

import subprocess
import warnings

import keras
import models
import mtc
import numpy as np
import pytest
from mtc.keras._match import match_variables

QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}


def test_bits_of_mtrun(mnist, mtrun, tmp_path):
    """The same plan, seed and data: the same variables, bit for bit, shuffled, with dropout and a short last batch."""
    x, y = mnist
    model = models.mlp(dropout=0.2)
    plan = mtc.compile(model, batch_size=64)
    plan.save(tmp_path / "m.mtp")
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.save(tmp_path / "y.npy", y)
    for data, devices in [("npy:x.npy,y.npy", "cpu:1"), ("npz:d.npz", "cpu:4")]:
        subprocess.run([mtrun, "train", "m.mtp", "--data", data, "--epochs", "2", "--devices", devices, "--save",
                        "w.safetensors"], check=True, cwd=tmp_path, capture_output=True)
        model = models.mlp(dropout=0.2)
        mtc.fit(model, x, y, batch_size=64, epochs=2, verbose=0, devices="cpu:2")
        with plan.session("cpu:1") as session:
            session.load(tmp_path / "w.safetensors")
            pairs = match_variables(model, plan.variables)
            assert len(pairs) == len(plan.variables) == 14
            for variable, info in pairs:
                ours = keras.ops.convert_to_numpy(variable.value)
                assert np.array_equal(ours, session.variables[info.name]), info


def without_biases(optimizer):
    """Keras does not save this: mtc.fit asks the optimizer."""
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


OPTIMIZERS = {
    "sgd": lambda o: o.SGD(0.05, momentum=0.9, nesterov=True), "adam": lambda o: o.Adam(0.01, amsgrad=True),
    "adamw": lambda o: o.AdamW(0.01, weight_decay=0.1),
    "adamw without biases": lambda o: without_biases(o.AdamW(0.1, weight_decay=0.5)),
    "rmsprop": lambda o: o.RMSprop(0.003, momentum=0.5, centered=True), "adagrad": lambda o: o.Adagrad(0.03),
    "adadelta": lambda o: o.Adadelta(1.0), "adamax": lambda o: o.Adamax(0.01),
    "nadam": lambda o: o.Nadam(0.01), "lion": lambda o: o.Lion(0.001), "lamb": lambda o: o.Lamb(0.01, name="mine"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_of_optimizers(name):
    """One epoch here and one in Keras are two in Keras, and the other way round."""
    x, y = models.points(40)
    options = {"batch_size": 16, "shuffle": False, "verbose": 0}

    def model():
        return models.line(OPTIMIZERS[name](keras.optimizers))

    theirs, first, second = model(), model(), model()
    for _ in range(2):
        theirs.fit(x, y, **options)
    mtc.fit(first, x, y, devices="cpu:2", **options)
    first.fit(x, y, **options)
    second.fit(x, y, **options)
    mtc.fit(second, x, y, devices="cpu:2", **options)
    assert int(theirs.optimizer.iterations) == 6
    for ours in (first, second):
        for mine, wanted in models.pairs(models.values(ours), models.values(theirs)):
            np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stops", [False, True])
def test_averages(stops):
    """With use_ema the variables become their averages at the end, also where a callback ends the training."""
    x, y = models.points(40)
    theirs, ours = (models.line(keras.optimizers.AdamW(0.01, use_ema=True)) for _ in range(2))
    options = {"epochs": 3, "batch_size": 16, "shuffle": False, "verbose": 0}

    def callbacks():
        return [keras.callbacks.EarlyStopping("loss", min_delta=9.0, patience=1)] if stops else []

    theirs.fit(x, y, callbacks=callbacks(), **options)
    mtc.fit(ours, x, y, callbacks=callbacks(), devices="cpu:2", **options)
    for mine, wanted in models.pairs(models.values(ours), models.values(theirs)):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-5)
    ours.fit(x, y, **options)  # which Keras' own fit leaves impossible on JAX


def test_results_of_keras(mnist):
    """Losses, metrics, weights, evaluation and prediction are those of Keras."""
    x, y = mnist
    ours, theirs = models.mlp(), models.mlp()
    options = {"batch_size": 64, "epochs": 2, "shuffle": False, "validation_split": 0.1, "verbose": 0}
    mine, wanted = mtc.fit(ours, x, y, devices="cpu:2", **options), theirs.fit(x, y, **options)
    assert isinstance(mine, keras.callbacks.History) and mine.epoch == wanted.epoch
    assert mine.history.keys() == wanted.history.keys()
    for name, series in wanted.history.items():
        np.testing.assert_allclose(mine.history[name], series, rtol=1e-3, err_msg=name)
    for a, b in models.pairs(models.values(ours), models.values(theirs)):
        np.testing.assert_allclose(a, b, atol=1e-3)
    np.testing.assert_allclose(mtc.evaluate(ours, x, y, **QUIET), ours.evaluate(x, y, verbose=0), rtol=1e-4)
    assert set(mtc.evaluate(ours, x, y, return_dict=True, **QUIET)) == {"loss", "accuracy"}
    np.testing.assert_allclose(mtc.predict(ours, x[:70], **QUIET), ours.predict(x[:70], verbose=0), atol=1e-4)
    assert ours.history is mine and "<svg" in mine._repr_html_()


def test_devices_do_not_matter(mnist):
    x, y = mnist
    trained = []
    for devices in ("cpu:1", "cpu:3", "cpu:1x2"):
        trained.append(models.mlp(dropout=0.3))
        mtc.fit(trained[-1], x, y, epochs=2, verbose=0, devices=devices)
    assert models.same(trained[0], trained[1]) and models.same(trained[0], trained[2])


def test_second_fit_has_another_order(mnist):
    """As in Keras two fits of an epoch are not the same one twice; they are repeatable, though."""
    x, y = mnist
    once, twice, again = models.mlp(), models.mlp(), models.mlp()
    for model in (twice, again):
        mtc.fit(model, x, y, **QUIET)
        mtc.fit(model, x, y, **QUIET)
    mtc.fit(once, x, y, **QUIET)
    mtc.fit(once, x, y, seed=1, **QUIET)
    assert models.same(twice, again) and not models.same(once, twice)


def test_inputs_and_outputs():
    """Lists and dicts, by the names of Keras."""
    generator = np.random.default_rng(1)
    a, b = generator.random((50, 3), dtype="float32"), generator.random((50, 2))
    total, kind = a.sum(1), generator.integers(0, 3, 50)
    trained = []
    for x, y in [([a, b], [total, kind]), ({"b": b, "a": a}, {"kind": kind, "sum": total}), ((a, b), (total, kind))]:
        trained.append(models.two_inputs())
        history = mtc.fit(trained[-1], x, y, epochs=2, **QUIET).history
        assert set(history) == {"loss", "sum_loss", "kind_loss", "kind_accuracy"}
    assert models.same(trained[0], trained[1]) and models.same(trained[0], trained[2])
    outputs = mtc.predict(trained[0], [a, b], **QUIET)
    theirs = trained[0].predict([a, b], verbose=0)
    assert [o.shape for o in outputs] == [(50, 1), (50, 3)]
    for ours, wanted in models.pairs(outputs, theirs):
        np.testing.assert_allclose(ours, wanted, atol=1e-5)
    with pytest.raises(mtc.DataError, match="expected inputs a, b, found a"):
        mtc.fit(trained[0], {"a": a}, [total, kind], **QUIET)
    with pytest.raises(mtc.DataError, match="expected 2 inputs: a, b; found one ndarray"):
        mtc.fit(trained[0], a, [total, kind], **QUIET)
    with pytest.raises(mtc.DataError, match="expected targets of sum, kind, found top"):
        mtc.fit(trained[0], [a, b], {"top": total}, **QUIET)


@pytest.mark.parametrize("kind", ["list", "float64", "integers", "strided", "jax"])
def test_array_likes(kind):
    x, y = models.points()
    if kind == "integers":
        x = (x * 10).astype("int16")
    wide = np.zeros((len(x), 5), x.dtype)
    wide[:, 1:3] = x
    given = {"list": x.tolist, "float64": lambda: x.astype("f8"), "integers": lambda: x,
             "strided": lambda: wide[:, 1:3], "jax": lambda: keras.ops.convert_to_tensor(x)}[kind]()
    ours, wanted = models.line(), models.line()
    mtc.fit(ours, given, y, epochs=2, **QUIET)
    mtc.fit(wanted, x.astype("float32"), y, epochs=2, **QUIET)
    assert models.same(ours, wanted)


@pytest.mark.parametrize("weights", ["sample", "class", "both"])
def test_weights(mnist, weights):
    x, y = mnist[0][:200], mnist[1][:200]
    given = {"shuffle": False, "verbose": 0, "validation_data": (x[:50], y[:50], np.ones(50))}
    if weights != "class":
        given["sample_weight"] = np.linspace(0, 2, 200)
    if weights != "sample":
        given["class_weight"] = {3: 2.5, 7: 0.5}
    ours, theirs = (models.mlp(metrics=[], weighted_metrics=["accuracy"]) for _ in range(2))
    if weights == "both":
        with pytest.raises(mtc.DataError, match="expected class_weight or sample_weight, found both"):
            mtc.fit(ours, x, y, **given)
        return
    mine, wanted = mtc.fit(ours, x, y, **given).history, theirs.fit(x, y, **given).history
    assert set(mine) == set(wanted)
    for name, series in wanted.items():
        np.testing.assert_allclose(mine[name], series, rtol=2e-3, err_msg=name)


def test_epochs_and_steps(mnist):
    x, y = mnist
    history = mtc.fit(models.mlp(), x, y, epochs=5, initial_epoch=3, **QUIET)
    assert history.epoch == [3, 4]
    model = models.mlp()
    history = mtc.fit(model, x, y, epochs=3, steps_per_epoch=7, validation_data=(x, y), validation_freq=2,
                      validation_steps=2, **QUIET)
    assert int(model.optimizer.iterations) == 21
    assert [len(history.history[n]) for n in ("loss", "val_loss")] == [3, 1]
    history = mtc.fit(model, x, y, epochs=3, validation_data=(x, y), validation_freq=[1, 3], **QUIET)
    assert len(history.history["val_loss"]) == 2
    before = models.values(model)
    assert mtc.fit(model, x, y, epochs=2, initial_epoch=2, **QUIET).epoch == []
    assert all(np.array_equal(a, b) for a, b in models.pairs(before, models.values(model)))


def test_loaded_and_nested_models(mnist, tmp_path):
    """Keras leaves the names of Sequentials out of the paths of a model that it loads."""
    x, y = mnist
    L = keras.layers

    def tower(name):
        layers = [keras.Input((784,)), L.Dense(4, name="same"), L.BatchNormalization(name="norm")]
        return keras.Sequential(layers, name=name)

    i = keras.Input((784,))
    model = keras.Model(i, L.Dense(10)(L.Concatenate()([tower("t1")(i), tower("t2")(i)])))
    model.compile(keras.optimizers.Adam(0.01),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    assert [v.path for v in loaded.variables] != [v.path for v in model.variables]
    for m in (model, loaded):
        mtc.fit(m, x, y, epochs=2, **QUIET)
        np.testing.assert_allclose(mtc.predict(m, x[:9], **QUIET), m.predict(x[:9], verbose=0), atol=1e-4)
    assert models.same(model, loaded)


def test_predict_needs_no_compile(mnist):
    model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(3)])
    np.testing.assert_allclose(mtc.predict(model, mnist[0], **QUIET), model.predict(mnist[0], verbose=0), atol=1e-4)


def test_checkpoint_and_resume(mnist, tmp_path):
    x, y = mnist
    whole, parts = models.mlp(dropout=0.1), models.mlp(dropout=0.1)
    mtc.fit(whole, x, y, epochs=4, **QUIET)
    mtc.fit(parts, x, y, epochs=2, checkpoint=tmp_path / "saved", **QUIET)
    parts = models.mlp(dropout=0.1)  # as in another process
    history = mtc.fit(parts, x, y, epochs=4, checkpoint={"folder": tmp_path / "saved", "keep": 1}, resume="auto",
                      **{**QUIET, "devices": "cpu:2"})
    assert history.epoch == [2, 3] and models.same(whole, parts)
    with pytest.raises(mtc.DataError, match="holds the checkpoints of a run that came to step 128"):
        mtc.fit(parts, x, y, checkpoint=tmp_path / "saved", **QUIET)
    with pytest.raises(mtc.DataError, match="expected checkpoint options of every_epochs, .*found evry"):
        mtc.fit(parts, x, y, checkpoint={"folder": tmp_path, "evry": 1}, **QUIET)


def test_cache(cache, mnist, monkeypatch, tmp_path):
    """A plan is made once for a configuration; the folder keeps its size."""
    from mtc import _cache, _compile

    monkeypatch.setenv("MTC_CACHE", str(tmp_path))
    made = []
    real = _compile.compile_file
    monkeypatch.setattr(_compile, "compile_file", lambda *a, **k: made.append(1) or real(*a, **k))
    x, y = mnist
    _cache._recent.clear()
    for _ in range(2):
        mtc.fit(models.mlp(), x, y, **QUIET)  # other weights do not matter, and neither does a new process:
        _cache._recent.clear()
    assert len(made) == 1 and len(list(tmp_path.iterdir())) == 1
    mtc.fit(models.mlp(), x, y, batch_size=16, **QUIET)
    assert len(made) == 2
    next(tmp_path.iterdir()).write_bytes(b"damaged")
    _cache._recent.clear()
    mtc.fit(models.mlp(), x, y, **QUIET)
    mtc.fit(models.mlp(), x, y, batch_size=16, **QUIET)
    assert len(made) == 3
    monkeypatch.setenv("MTC_CACHE_SIZE", "200000")
    mtc.fit(models.mlp(), x, y, batch_size=8, **QUIET)
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 200000
    monkeypatch.setenv("MTC_CACHE", "off")
    assert _cache.folder() is None


def test_compile_keeps_the_weights(mnist, tmp_path):
    """A plan of mtc.compile starts with the model's weights and its optimizer's state."""
    x, y = mnist
    model = models.mlp()
    mtc.fit(model, x, y, **QUIET)
    plan = mtc.compile(model, batch_size=16)
    with plan.session("cpu:1") as session:
        for variable, info in match_variables(model, plan.variables):
            assert np.array_equal(session.variables[info.name], keras.ops.convert_to_numpy(variable.value)), info
        session.train_on_batch(x[:16], y[:16])
        session.save(tmp_path / "m.keras")
    assert int(keras.saving.load_model(tmp_path / "m.keras").optimizer.iterations) == 33
    assert "<table" in plan._repr_html_() and "784" in plan._repr_html_()


def test_mixed_precision(mnist):
    x, y = mnist
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = models.mlp()
        history = mtc.fit(model, x, y, epochs=3, **QUIET).history
    finally:
        keras.config.set_dtype_policy("float32")
    assert history["loss"][-1] < history["loss"][0]
    assert history["accuracy"][-1] - 0.05 < model.evaluate(x, y, verbose=0)[1]


def test_no_warnings(mnist):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # of Keras, with a new NumPy
        mtc.fit(models.mlp(), *mnist, **QUIET)
