# SPDX-License-Identifier: Apache-2.0
"""Keras' callbacks and users' own, in the loop of the library."""

import os
import signal
import threading

import interrupts
import keras
import models
import mtc
import numpy as np
import pytest

C = keras.callbacks
QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}


def fit(model, callbacks, epochs=4, **options):
    x, y = models.points()
    return mtc.fit(model, x, y, epochs=epochs, callbacks=callbacks, **{**QUIET, **options})


class Recorder(C.Callback):
    """What is called, in order."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def on_train_begin(self, logs=None):
        self.calls.append("train begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(f"epoch {epoch} begin")

    def on_train_batch_begin(self, batch, logs=None):
        self.calls.append(f"batch {batch} begin")

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append(f"batch {batch} end {' '.join(logs)}")

    def on_test_begin(self, logs=None):
        self.calls.append("test begin")

    def on_test_batch_begin(self, batch, logs=None):
        self.calls.append(f"test batch {batch} begin")

    def on_test_batch_end(self, batch, logs=None):
        self.calls.append(f"test batch {batch} end {' '.join(logs)}")

    def on_test_end(self, logs=None):
        self.calls.append(f"test end {' '.join(logs)}")

    def on_predict_batch_end(self, batch, logs=None):
        self.calls.append(f"predict batch {batch} end")

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(f"epoch {epoch} end {' '.join(logs)}")

    def on_train_end(self, logs=None):
        self.calls.append(f"train end {' '.join(logs)}")


def test_the_order_of_calls_is_keras_own():
    x, y = models.points()
    ours, theirs = Recorder(), Recorder()
    options = {"epochs": 2, "validation_split": 0.5, "verbose": 0}
    model = models.line(metrics=["mae"])
    mtc.fit(model, x, y, callbacks=[ours], devices="cpu:1", **options)
    mtc.evaluate(model, x, y, callbacks=[ours], **QUIET)
    mtc.predict(model, x, callbacks=ours, **QUIET)
    model = models.line(metrics=["mae"])
    model.fit(x, y, callbacks=[theirs], **options)
    model.evaluate(x, y, callbacks=[theirs], verbose=0)
    model.predict(x, callbacks=[theirs], verbose=0)
    assert ours.calls == theirs.calls


def test_early_stopping():
    model = models.line()
    stop = C.EarlyStopping("loss", patience=1, min_delta=100.0, restore_best_weights=True)
    history = fit(model, [stop])
    assert history.epoch == [0, 1] and stop.stopped_epoch == 1
    one = models.line()
    fit(one, [], epochs=1)
    assert all(np.array_equal(a, b) for a, b in models.pairs(model.get_weights(), one.get_weights()))


def test_which_way_is_better(mnist):
    """Keras asks the model's metrics, which it builds in its own fit."""
    x, y = mnist
    stop = C.EarlyStopping("val_accuracy", patience=1, min_delta=0.5)
    history = mtc.fit(models.mlp(), x, y, epochs=4, validation_data=(x, y), callbacks=[stop], **QUIET)
    assert stop.monitor_op is keras.ops.greater and history.epoch == [0, 1]


def test_model_checkpoint(tmp_path):
    model = models.line()
    fit(model, [C.ModelCheckpoint(str(tmp_path / "{epoch}.keras")),
                C.ModelCheckpoint(str(tmp_path / "best.weights.h5"), "loss", save_best_only=True,
                                  save_weights_only=True)])
    assert models.same(model, keras.saving.load_model(tmp_path / "4.keras"))
    second = keras.saving.load_model(tmp_path / "2.keras")
    assert int(second.optimizer.iterations) == 6
    model.load_weights(tmp_path / "best.weights.h5")


def test_the_learning_rate():
    x, y = models.points()
    seen = []
    watch = C.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(float(model.optimizer.learning_rate)))
    model = models.line()
    fit(model, [C.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1)), watch], shuffle=False)
    assert np.allclose(seen, [0.1, 0.05, 0.1 / 3, 0.025])
    theirs = models.line()
    theirs.fit(x, y, epochs=4, shuffle=False, verbose=0,
               callbacks=[C.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1))])
    for ours, wanted in models.pairs(models.values(model), models.values(theirs)):
        np.testing.assert_allclose(ours, wanted, atol=1e-6)
    model = models.line()
    history = fit(model, [C.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=100.0)])
    assert np.allclose(history.history["learning_rate"], [0.1, 0.1, 0.05, 0.025])
    assert float(model.optimizer.learning_rate) == np.float32(0.0125)


def test_csv_logger(tmp_path):
    history = fit(models.line(), [C.CSVLogger(str(tmp_path / "log.csv"))])
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0].startswith("epoch,loss") and len(lines) == 5
    assert float(lines[4].split(",")[1]) == history.history["loss"][3]


def test_backup_and_restore(tmp_path):
    class Stop(C.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise RuntimeError("killed")

    whole, model = models.line(), models.line()
    with pytest.raises(RuntimeError, match="killed"):
        fit(model, [C.BackupAndRestore(str(tmp_path)), Stop()], shuffle=False)
    model = models.line()
    assert fit(model, [C.BackupAndRestore(str(tmp_path))], shuffle=False).epoch == [2, 3]
    fit(whole, [], shuffle=False)
    assert models.same(model, whole)


def test_variables_are_a_window():
    """A closure over the model reads what the last step left, and what it assigns is trained on."""
    model, steps, kernels = models.line(), [], []

    def after(batch, logs):
        steps.append(int(model.optimizer.iterations))
        kernels.append(keras.ops.convert_to_numpy(model.layers[-1].kernel.value))
        if steps[-1] == 4:
            model.layers[-1].kernel.assign(np.zeros((2, 1), "f4"))

    fit(model, [C.LambdaCallback(on_train_batch_end=after)], epochs=2)
    assert steps == [1, 2, 3, 4, 5, 6]
    assert all(not np.array_equal(a, b) for a, b in zip(kernels, kernels[1:]))
    assert abs(kernels[4]).max() < abs(kernels[3]).max()
    assert type(model.layers[-1].kernel) is type(models.line().layers[-1].kernel)
    assert "_mtc_window" not in model.layers[-1].kernel.__dict__


def test_evaluation_inside_a_callback():
    x, y = models.points()
    model, found = models.line(), []

    class Look(C.Callback):
        def on_epoch_end(self, epoch, logs=None):
            assert self.model is model
            found.append((self.model.evaluate(x, y, verbose=0), mtc.evaluate(self.model, x, y, **QUIET)))

    watched = fit(model, [Look()], shuffle=False)
    plain = fit(models.line(), [], shuffle=False)
    assert watched.history == plain.history
    assert all(abs(a - b) < 1e-5 for a, b in found) and found[-1][0] < found[0][0]


@pytest.mark.parametrize("event", ["on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end",
                                   "on_test_begin", "on_test_batch_end", "on_epoch_end"])
def test_a_callback_that_raises(event):
    """Training stops, what it raised comes out, and the weights are those of the last step."""
    def raises(self, *arguments, logs=None):
        raise ZeroDivisionError("in " + event)

    model = models.line()
    with pytest.raises(ZeroDivisionError, match="in " + event):
        fit(model, [type("Raises", (C.Callback,), {event: raises})()], validation_data=models.points())
    steps = {"on_train_begin": 0, "on_epoch_begin": 0, "on_train_batch_begin": 0, "on_train_batch_end": 1}.get(event, 3)
    assert int(model.optimizer.iterations) == steps
    fit(model, [])
    with pytest.raises(TypeError, match="expected callbacks of keras.callbacks.Callback, found int"):
        fit(model, [3])


def test_stop_training_in_an_epoch():
    x, y = models.points()

    class Stop(C.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                self.model.stop_training = True

    ours, theirs = models.line(), models.line()
    mine = fit(ours, [Stop()], shuffle=False, validation_data=(x, y))
    wanted = theirs.fit(x, y, epochs=4, callbacks=[Stop()], shuffle=False, verbose=0, validation_data=(x, y))
    assert mine.epoch == wanted.epoch == [0] and int(ours.optimizer.iterations) == 2
    np.testing.assert_allclose(mine.history["val_loss"], wanted.history["val_loss"], rtol=1e-5)


@pytest.mark.parametrize("event", ["on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_train_batch_end",
                                   "on_epoch_end"])
def test_the_step_that_has_begun_is_made(event):
    """Wherever a callback sets stop_training."""
    x, y = models.points()

    def stop(at):
        callback, calls = C.Callback(), []

        def called(*_, **__):
            calls.append(1)
            if len(calls) == at:
                callback.model.stop_training = True

        setattr(callback, event, called)
        return callback

    for at in (1, 2):
        ours, theirs = models.line(), models.line()
        mine = fit(ours, [stop(at)], shuffle=False, validation_data=(x, y))
        wanted = theirs.fit(x, y, epochs=4, callbacks=[stop(at)], shuffle=False, verbose=0, validation_data=(x, y))
        assert mine.epoch == wanted.epoch, at
        assert int(ours.optimizer.iterations) == int(theirs.optimizer.iterations), at
        np.testing.assert_allclose(mine.history["val_loss"], wanted.history["val_loss"], rtol=1e-5)


@pytest.mark.parametrize("event", ["on_train_batch_end", "on_epoch_begin", "on_epoch_end"])
def test_a_fit_in_a_callback(event):
    """Of the same model: its steps are kept, as in Keras."""
    x, y = models.points()

    def nested(run):
        callback, calls = C.Callback(), []

        def called(*_, **__):
            calls.append(1)
            if len(calls) in (2, 4):
                run(callback.model)

        setattr(callback, event, called)
        return callback

    ours, theirs = models.line(), models.line()
    fit(ours, [nested(lambda m: mtc.fit(m, x[:32], y[:32], shuffle=False, **QUIET))], shuffle=False)
    theirs.fit(x, y, epochs=4, shuffle=False, verbose=0,
               callbacks=[nested(lambda m: m.fit(x[:32], y[:32], shuffle=False, verbose=0))])
    assert int(ours.optimizer.iterations) == int(theirs.optimizer.iterations) == 14
    for mine, wanted in models.pairs(models.values(ours), models.values(theirs)):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_the_weights_of_one_step(times):
    """Whenever it comes: while variables are copied, too. interrupts.py does it a thousand times."""
    rounds = interrupts.Rounds("array", seed=times)
    for _ in range(12):
        rounds.play(times)
    assert rounds.bad == []


def test_progress_is_keras_own(capsys, mnist):
    import re

    x, y = mnist
    lines = []
    for run in (lambda m: mtc.fit(m, x, y, epochs=2, verbose=2, devices="cpu:1"),
                lambda m: m.fit(x, y, epochs=2, verbose=2)):
        run(models.mlp())
        lines.append(re.sub(r"[\d.]+(e-\d+)?[mu]?s?", "N", capsys.readouterr().out))
    assert lines[0] == lines[1]
    mtc.fit(models.mlp(), x, y, devices="cpu:1")
    assert "32/32" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["training", "validation"])
def test_ctrl_c(how, tmp_path):
    """The step is finished, the checkpoint saved, the weights kept, and KeyboardInterrupt raised."""
    x, y = models.points(64)
    model = models.line()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))  # once: a second one interrupts pytest

    def later(*_):
        if timer.ident is None:
            timer.start()

    once = C.Callback()
    if how == "training":
        once.on_epoch_begin = lambda epoch, logs=None: later() if epoch == 2 else None
    else:
        once.on_test_begin = later
    options = {"checkpoint": tmp_path / "saved"} if how == "training" else {
        "validation_data": (np.repeat(x, 5000, 0), np.repeat(y, 5000, 0))}
    with pytest.raises(KeyboardInterrupt):
        mtc.fit(model, x, y, epochs=10**7, callbacks=[once], **QUIET, **options)
    steps = int(model.optimizer.iterations)
    assert steps > 0 and not np.array_equal(model.get_weights()[0], models.line().get_weights()[0])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if how == "training":
        assert f"step-{steps:012d}" in os.listdir(tmp_path / "saved")
        other = models.line()
        assert mtc.fit(other, x, y, epochs=steps // 2 + 1, checkpoint=tmp_path / "saved", resume=True, **QUIET).epoch


def test_what_a_callback_assigns_is_validated():
    """SwapEMAWeights does so for the time of a validation."""
    x, y = models.points()
    average = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9)
    model = models.line(average, metrics=["mse"])
    history = mtc.fit(model, x, y, epochs=2, validation_data=(x, y), callbacks=[C.SwapEMAWeights()], **QUIET)
    # The averages are the model's weights in the end.
    assert history.history["val_mse"][-1] == mtc.evaluate(model, x, y, return_dict=True, **QUIET)["mse"]
    zero = C.LambdaCallback()
    zero.on_test_begin = lambda logs=None: model.set_weights([w * 0 for w in model.get_weights()])
    assert mtc.evaluate(model, x, y, return_dict=True, callbacks=[zero], **QUIET)["mse"] == pytest.approx(
        float((y**2).mean()))


def test_fit_in_a_thread():
    """Two trainings at once, neither in the main thread."""
    trained = [models.line(), models.line()]
    threads = [threading.Thread(target=fit, args=(m, [])) for m in trained]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert models.same(*trained)


def test_many_fits_leave_nothing(pytestconfig):
    """200 here; `--fits 1000` makes it a thousand."""
    model = models.line()
    x, y = models.points()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some(count):
        for _ in range(count):
            mtc.fit(model, x, y, validation_data=(x, y), **QUIET)

    some(60)
    before = resident()
    some(pytestconfig.getoption("--fits"))
    assert resident() - before < 1 << 20
    assert threading.active_count() < 5
