# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at random instants of mtc.fit: the model has the weights and the optimizer's state of one of its steps.

    python test/python/interrupts.py [--times 1000] [--seed 1] [KIND...]

KIND: of data: array, generator, pydataset, loader (which needs PyTorch); all of them by default. Each gets its share of
the times; half of them are Ctrl-C twice. Prints what was not so, and exits with 1 if there is anything.
test_callbacks.py runs a few.
"""

import argparse
import hashlib
import os
import random
import signal
import sys
import threading
import time

if __name__ == "__main__":
    import conftest  # noqa: F401 - where the package and the libraries are

import keras
import mtc
import numpy as np

BATCH, EPOCHS, SAMPLES = 32, 3, 640
STEPS = EPOCHS * SAMPLES // BATCH
KINDS = ("array", "generator", "pydataset", "loader")
X = np.random.default_rng(0).standard_normal((SAMPLES, 20)).astype("f4")
Y = np.random.default_rng(1).integers(0, 5, SAMPLES).astype("i4")


class Dataset(keras.utils.PyDataset):
    def __len__(self):
        return SAMPLES // BATCH

    def __getitem__(self, index):
        return X[index * BATCH:(index + 1) * BATCH], Y[index * BATCH:(index + 1) * BATCH]


def generator():
    while True:
        yield from (Dataset()[i] for i in range(SAMPLES // BATCH))


def data(kind):
    """x, y and options of a fit."""
    if kind == "array":
        return (X, Y), {"batch_size": BATCH}
    if kind == "generator":
        return (generator(), None), {"steps_per_epoch": SAMPLES // BATCH}
    if kind == "pydataset":
        return (Dataset(), None), {"shuffle": False}
    import torch

    pairs = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    return (torch.utils.data.DataLoader(pairs, BATCH), None), {}


class Rounds:
    """Fits of one model on one kind of data, which begin from the same state.

    Attributes:
        bad: what was not as it must be, a line each.
    """

    def __init__(self, kind, seed):
        L = keras.layers
        keras.utils.set_random_seed(1)
        self.kind, self.random, self.bad, self.played = kind, random.Random(seed), [], 0
        self.model = keras.Sequential([keras.Input((20,)), L.Dense(32, activation="relu"), L.BatchNormalization(),
                                       L.Dropout(0.2, seed=3), L.Dense(5)])
        self.model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        self.model.optimizer.build(self.model.trainable_variables)
        self.variables = [v for v in (*self.model.variables, *self.model.optimizer.variables) if "seed" not in v.path]
        self.start = [np.array(v) for v in self.variables]
        self.steps = {self.hash(): 0}
        record = keras.callbacks.Callback()
        record.on_train_batch_end = lambda *_, **__: self.steps.setdefault(self.hash(), len(self.steps))
        self.fit(callbacks=[record])
        self.final = self.hash()
        assert len(self.steps) == STEPS + 1 and self.steps[self.final] == STEPS
        self.restore()
        begin = time.monotonic()
        self.fit()
        self.seconds = time.monotonic() - begin
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def hash(self):
        return hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in self.variables)).hexdigest()

    def restore(self):
        for variable, value in zip(self.variables, self.start):
            variable.assign(value)

    def fit(self, **options):
        (x, y), how = data(self.kind)
        mtc.fit(self.model, x, y, epochs=EPOCHS, verbose=0, seed=7, devices="cpu:2", cpu="native", **how, **options)

    def play(self, times):
        """A fit, and Ctrl-C so many times."""
        self.played += 1
        self.restore()
        delay, gap = self.random.uniform(0, 1.3 * self.seconds), self.random.uniform(0, 0.02)
        over, outcome = threading.Event(), "cut short"

        def press():
            time.sleep(delay)
            for _ in range(times):
                if not over.is_set():
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(gap)

        thread = threading.Thread(target=press)
        validation = {"validation_data": (X[:64], Y[:64])} if self.random.random() < 0.5 else {}
        try:
            try:
                thread.start()
                self.fit(**validation)
                outcome = "finished"
            except KeyboardInterrupt:
                outcome = "interrupted"
            over.set()
            thread.join()
        except KeyboardInterrupt:  # the second one, or one behind the end
            over.set()
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                pass
        where = f"{self.kind} {self.played}: {times} x Ctrl-C at {delay / self.seconds:.3f}, {outcome}"
        step, counted = self.steps.get(self.hash()), int(self.model.optimizer.iterations)
        if step != counted:
            self.bad.append(f"{where}: expected the state after one of the steps, found step {step}, counted {counted}")
        if outcome == "finished" and step != STEPS:
            self.bad.append(f"{where}: expected the state after {STEPS} steps, found that after {step}")
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            self.bad.append(f"{where}: expected Python's handler of SIGINT, found {signal.getsignal(signal.SIGINT)}")
            signal.signal(signal.SIGINT, signal.default_int_handler)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    options = parser.parse_args()
    kinds = options.kinds or KINDS
    bad = []
    for kind in kinds:
        rounds = Rounds(kind, options.seed)
        for i in range(options.times // len(kinds)):
            rounds.play(1 + i % 2)
        bad += rounds.bad
        print(f"{kind}: {rounds.played} fits of {rounds.seconds:.2f} s, {len(rounds.bad)} of no step", flush=True)
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
