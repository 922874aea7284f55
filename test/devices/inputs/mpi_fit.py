# SPDX-License-Identifier: Apache-2.0
"""mpi_fit.py WHAT [FOLDER]

Trains a Keras model, which mpirun may do in several processes. Each prints a hash of all results. Process 0 also prints
what each process computed. WHAT: "fit" is the run that all processes can make; others make one process differ."""
import hashlib
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras  # noqa: E402
import numpy as np  # noqa: E402

import mtc  # noqa: E402
import mtc._session  # noqa: E402
import mtc.keras._live as live  # noqa: E402

what = sys.argv[1]
folder = sys.argv[2] if len(sys.argv) > 2 else "."
differs = mtc.process()  # 0 in process 0
sessions = []
close = mtc._session.Session.__exit__


def closing(self, *how):
    if how[0] is None and mtc.processes() > 1:
        sessions.append([(each["rows"], min(each["received_bytes"], 1)) for each in self.activities()])
    close(self, *how)


mtc._session.Session.__exit__ = closing
keras.utils.set_random_seed(1 + differs * (what == "weights"))
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.2),
                          keras.layers.Dense(3)])
model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=["accuracy"])
numbers = np.random.default_rng(0)
x, y = numbers.normal(size=(203, 12)).astype("float32"), numbers.integers(0, 3, 203)
x[202, 3] += differs * (what == "data")


class Rate(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if what == "rate" and differs:
            self.model.optimizer.learning_rate.assign(0.5)


class Slots(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        np.asarray(self.model.optimizer.variables[2])


class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.model.stop_training |= batch == 3


def batches():
    drawn = np.random.default_rng(differs * (what == "generator"))
    while True:
        yield drawn.normal(size=(16, 12)).astype("float32"), drawn.integers(0, 3, 16)


def run():
    """The results, as anything with a repr()."""
    common = {"verbose": 2, "devices": "cpu:1"}
    if what == "sharded":
        first = mtc.fit(model, x, y, batch_size=16, epochs=2, shard_optimizer=True, **common)
        return [first.history, mtc.fit(model, x, y, batch_size=16, epochs=1, **common).history]
    if what == "slots":
        return mtc.fit(model, x, y, batch_size=16, epochs=2, shard_optimizer=True, callbacks=[Slots()], **common)
    if what == "fit":
        callbacks = [keras.callbacks.EarlyStopping(monitor="val_loss", patience=1),
                     keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
                     keras.callbacks.CSVLogger(os.path.join(folder, "log.csv"))]
        first = mtc.fit(model, x, y, batch_size=16, epochs=6, validation_split=0.2, callbacks=callbacks,
                        checkpoint=os.path.join(folder, "checkpoints"), **common)
        second = mtc.fit(model, x, y, batch_size=16, epochs=2, callbacks=[Stop()], **common)
        third = mtc.fit(model, batches(), steps_per_epoch=5, epochs=2, **common)
        return [first.history, second.history, third.history, mtc.evaluate(model, x, y, **common),
                mtc.predict(model, x, **common).tobytes(),
                live.train_on_batch(model, x[:11], y[:11], devices="cpu:1"),
                live.predict_on_batch(model, x[:5], devices="cpu:1").tobytes()]
    if what == "steps":
        return [live.train_on_batch(model, x[:16] + differs * i, y[:16], devices="cpu:1") for i in range(3)]
    if what == "generator":
        return mtc.fit(model, batches(), steps_per_epoch=40, epochs=3, **common).history
    epochs = 3 + differs * (what == "epochs")
    callbacks = [keras.callbacks.BackupAndRestore(folder)] if what == "backup" else [Rate()]
    return mtc.fit(model, x, y, batch_size=16, epochs=epochs, callbacks=callbacks, **common).history


try:
    results = run()
except mtc.Error as error:
    sys.stdout.write(f"process {mtc.process()}: {type(error).__name__}: {error}\n")
    sys.exit(1)
variables = b"".join(np.asarray(value).tobytes() for value in model.weights + model.optimizer.variables)
digest = hashlib.sha256(repr(results).encode() + variables).hexdigest()
sys.stdout.write(f"process {mtc.process()}: results {digest}\n" +
                 (f"computed {sessions[:2]}\n" if sessions and not differs else ""))
