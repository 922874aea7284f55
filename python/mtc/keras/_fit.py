# SPDX-License-Identifier: Apache-2.0
"""`mtc.fit`: training of live Keras models by the loop of the library."""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import warnings
from typing import Any, Mapping, Optional, Union

from mtc import _library, _structs
from mtc._checks import integer, optional
from mtc._data import Batches
from mtc._dataset import Dataset
from mtc._errors import Error, check
from mtc._interrupt import Interrupt, deferred, guarded
from mtc._loop import Checkpoint, checkpoint_options
from mtc._process import own_verbosity
from mtc._session import Session
from mtc.keras import _model
from mtc.keras._callbacks import Caller, Logs, call_each
from mtc.keras._evaluate import raise_own, run_evaluation, steps_of
from mtc.keras._left_out import LeftOut
from mtc.keras._names import Names
from mtc.keras._training import Training
from mtc.keras._window import Window


def fit(model: Any, x: Any = None, y: Any = None, batch_size: Optional[int] = None, epochs: int = 1,
        verbose: Union[int, str] = "auto", callbacks: Any = None, validation_split: float = 0.0,
        validation_data: Any = None, shuffle: bool = True, class_weight: Optional[Mapping[int, float]] = None,
        sample_weight: Any = None, initial_epoch: int = 0, steps_per_epoch: Optional[int] = None,
        validation_steps: Optional[int] = None, validation_batch_size: Optional[int] = None,
        validation_freq: Any = 1, *, devices: Optional[str] = None, checkpoint: Optional[Checkpoint] = None,
        resume: Union[None, bool, str] = None, precision: Optional[str] = None, shards: int = 0,
        seed: Optional[int] = None, allow_nan: bool = False, shard_optimizer: bool = False, **options: Any) -> Any:
    """Trains a compiled Keras model, as `model.fit`.

    When it returns, raises or is interrupted, the model has the weights and the optimizer's state of the last step.

    Args:
        model: a compiled Keras model.
        x: inputs [n, ...]: an array, a list or dict of arrays; or batches (x, y, sample_weight) from a generator, a
            `keras.utils.PyDataset`, a `tf.data.Dataset` or a PyTorch `DataLoader`.
        y: targets [n, ...], likewise; none beside batches.
        batch_size: samples of a step, on all devices together; 32 without it. Batches have their own.
        epochs: the number of the last epoch, from 1.
        verbose: 0: silent; 1: a progress bar; 2: a line an epoch; "auto": 1.
        callbacks: of Keras.
        validation_split: share of the samples, the last ones, to validate on.
        validation_data: (x, y), (x, y, sample_weight), or batches.
        shuffle: permutes the samples of arrays by seed and epoch, and the order of a `PyDataset`'s batches.
        class_weight: weights of samples by label.
        sample_weight: weights [n].
        initial_epoch: epochs that count as done.
        steps_per_epoch: an epoch is so many steps; None: a pass over the data.
        validation_steps: batches of a validation; None: all.
        validation_batch_size: has no effect: validation takes the batch of the plan, and its result does not depend
            on it.
        validation_freq: validates after each so many epochs, or after the epochs of a list, from 1.
        devices: "cpu:2", "cuda:0-3"; None: as of `mtc.Session`. The result does not depend on it.
        checkpoint: a folder for checkpoints, or a dict of `folder`, `every_steps`, `every_epochs`, `every_seconds`,
            `keep`, `force`, `rescue`. Without any of the `every_`: after each epoch.
        resume: "auto" or True: goes on from the newest checkpoint of the folder, if there is one; or the path of one.
        precision: as of `mtc.compile`.
        shards: as of `mtc.compile`.
        seed: of the order of the data and of random layers. None: the plan's for a new optimizer; for one that has
            made steps a function of their number, so that a second `fit` has another order.
        allow_nan: goes on after a loss, or with data, that is not finite; else that is a DataError at its step.
        shard_optimizer: in several processes, each keeps only its part of the optimizer's state, which callbacks then
            cannot read. When `fit` returns, every process has all of it; after an error it is that of the begin.
        options: as of `mtc.compile`: target, freeze, trainable, no_weight_decay, by, check, ...

    Returns:
        A `keras.callbacks.History`.

    Raises:
        ModelError: the model cannot be compiled.
        DataError: data or arguments do not fit it.
        Error: other problems have other classes, in `mtc`.
    """
    check_numbers(epochs, initial_epoch, steps_per_epoch, validation_steps, validation_freq)
    optional("seed", seed, 0)
    given = Training(x, y, sample_weight, class_weight, validation_data, validation_split, bool(shuffle), seed or 0)
    given.compile(model, batch_size, verbose, precision=precision, shards=shards, **options)
    return run(model, given, epochs=epochs, verbose=verbose, callbacks=callbacks, shuffle=shuffle,
               initial_epoch=initial_epoch, steps_per_epoch=steps_per_epoch, validation_steps=validation_steps,
               validation_freq=validation_freq, devices=devices, checkpoint=checkpoint, resume=resume, seed=seed,
               allow_nan=allow_nan, shard_optimizer=shard_optimizer)


def run(model: Any, given: Training, *, epochs: int = 1, verbose: Union[int, str] = "auto", callbacks: Any = None,
        shuffle: bool = True, initial_epoch: int = 0, steps_per_epoch: Optional[int] = None,
        validation_steps: Optional[int] = None, validation_freq: Any = 1, devices: Optional[str] = None,
        checkpoint: Optional[Checkpoint] = None, resume: Union[None, bool, str] = None, seed: Optional[int] = None,
        allow_nan: bool = False, metrics: bool = False, shard_optimizer: bool = False) -> Any:
    """`fit` of what is compiled. The arguments are those of `fit`; `metrics`: builds the model's metrics, as Keras."""
    saving, verbose = checkpoint_options(checkpoint, resume), own_verbosity(verbose)
    validates = check_numbers(epochs, initial_epoch, steps_per_epoch, validation_steps, validation_freq)
    steps = steps_of(given.data, given.plan.batch_size, steps_per_epoch)
    caller = Caller(model, callbacks, verbose, epochs, steps, history=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(strategy_scope(model))
        model.optimizer.build(model.trainable_variables)
        if metrics or caller.asks_metrics():
            _model.build_metrics(model, given.plan)
        session = stack.enter_context(Session(given.plan, devices, seed=seed_for(model, seed),
                                              shard_optimizer=int(shard_optimizer)))
        training = given.data.open(given.plan, given.structure)
        stack.callback(training.close)
        loop = Run(model, session, caller, given, verbose)
        if given.validation is not None:
            loop.validation = given.validation.open(given.plan, given.structure)
            stack.callback(loop.validation.close)
        loop.allow_nan = allow_nan
        loop.steps_per_epoch = steps_per_epoch
        loop.validation_steps = validation_steps
        loop.validates = validates
        for note in training.notes if verbose != 0 else ():
            warnings.warn(note, stacklevel=3)
        loop.train(training, epochs, initial_epoch, bool(shuffle), saving)
    return caller.list._history


def check_numbers(epochs: Any, initial_epoch: Any = 0, steps_per_epoch: Any = None, validation_steps: Any = None,
                  validation_freq: Any = 1) -> Any:
    """DataError for numbers that a fit cannot have; gives whether to validate after epoch number `epoch`, from 1."""
    integer("epochs", epochs, 0)
    integer("initial_epoch", initial_epoch, 0)
    optional("steps_per_epoch", steps_per_epoch, 1)
    optional("validation_steps", validation_steps, 1)
    return _when(validation_freq)


def _when(freq: Any) -> Any:
    if isinstance(freq, str) or not isinstance(freq, collections.abc.Iterable):
        integer("validation_freq", freq, 1)
        return lambda epoch: epoch % freq == 0
    chosen = {integer("the epochs of validation_freq", epoch, 0) for epoch in freq}
    return lambda epoch: epoch in chosen


def strategy_scope(model: Any) -> Any:
    """Where variables of a model are made and set: the scope of its strategy of TensorFlow, if it has one."""
    strategy = getattr(model, "distribute_strategy", None)
    return strategy.scope() if strategy is not None else contextlib.nullcontext()


def seed_for(model: Any, seed: Optional[int]) -> int:
    """The seed of a session that goes on with a model's training; `seed`: what the caller asked for."""
    if seed is not None:
        return seed
    done = int(_model.value_of(_model.inner_optimizer(model).iterations))
    # Another one for another number of steps; of none the plan's, as `mtrun train` has.
    return 0 if done == 0 else (done * 0x9E3779B97F4A7C15 >> 2) & (2**62 - 1)


class Run:
    """A training run: what the library calls back, and what becomes of it."""

    def __init__(self, model: Any, session: Session, caller: Caller, given: Training,
                 verbose: Union[int, str]) -> None:
        self.model = model
        self.session = session
        self.caller = caller
        self.data = given.data
        self.generator = given.data if isinstance(given.data, Batches) and given.data.once else None
        self.validation_source = given.validation
        self.left_out = LeftOut(model, session.plan, given.structure)
        self.verbose = verbose
        self.window = Window(model, session)
        self.names = Names(list(session.plan.metrics()))
        self.allow_nan = False
        self.steps_per_epoch: Optional[int] = None
        self.validation: Optional[Dataset] = None
        self.validation_steps: Optional[int] = None
        self.validates: Any = None
        self.errors: list[BaseException] = []
        self.epochs = 1
        self.epoch = 0  # under way
        self.under_way: Optional[Logs] = None  # of the epoch, where they are known
        self.last_logs: Logs = {}  # of the last epoch that ended
        self.interrupt = Interrupt()

    def train(self, training: Dataset, epochs: int, initial_epoch: int, shuffle: bool, checkpoint: Any) -> None:
        """From on_train_begin to on_train_end."""
        self.epochs = epochs
        self.model.stop_training = False
        self.caller.list.on_train_begin()
        initial_epoch = getattr(self.model, "_initial_epoch", None) or initial_epoch  # of BackupAndRestore
        with self.interrupt.caught():  # while variables are copied, too: else they would be of two steps
            try:
                with deferred():
                    self.window.push()
                    self.window.watch()
                if epochs > initial_epoch and not self.interrupt.asked:
                    self._loop(training, initial_epoch, shuffle, checkpoint)
            finally:
                with deferred():
                    self._end()
        self.caller.list.on_train_end(self.last_logs)

    def _end(self) -> None:
        if not self.window.pushed:
            return
        self.window.stepped()
        try:
            self.window.pull()
        finally:
            self.window.unwatch()
        if _model.inner_optimizer(self.model).use_ema:
            variables = self.model.trainable_variables
            self.model.optimizer.finalize_variable_values(variables)
            for variable in variables:  # not in the buffers of the averages: Keras' fit on JAX takes none twice
                variable.assign(_model.value_of(variable))

    def _loop(self, training: Dataset, initial_epoch: int, shuffle: bool, checkpoint: Any) -> None:
        library = _library.runtime()
        begin = _structs.EpochCallback(guarded(self._begin_epoch, self.errors))
        progress = _structs.ProgressCallback(guarded(self._after_step, self.errors))
        note = _structs.LineCallback(self._note)
        options = _structs.sized(
            _structs.LoopOptions, epochs=self.epochs, initial_epoch=initial_epoch, no_shuffle=int(not shuffle),
            progress=progress, epoch_begin=begin, note=note, steps_per_epoch=self.steps_per_epoch or 0,
            allow_nan=int(self.allow_nan), in_flight=int(not self.caller.train),
            checkpoint=ctypes.pointer(checkpoint) if checkpoint is not None else None)
        try:
            with self.session._use("fit") as handle, self.interrupt.breaking():
                self.window.closed()
                check(library, library.mtrun_fit(handle, training.handle, ctypes.byref(options)))
        except Error:
            raise_own(self.data, self.validation_source)
            if self.generator is None or not self.generator.ended or self.errors:
                raise
            self._ran_out()
        if self.errors:
            raise self.errors[0]
        if self.window.divided:
            self.session.collect_variables(everywhere=True)
            self.window.divided.clear()
        if self.under_way is not None and self.model.stop_training and not self.interrupt.asked:
            self.window.opened()  # a callback stopped the epoch between two steps: Keras ends it
            self._end_epoch(self.epoch, self.under_way)

    def _note(self, _user: Optional[int], text: bytes) -> None:
        if self.verbose != 0:
            print(f"mtc: {text.decode(errors='replace')}")

    def _begin_epoch(self, _user: Optional[int], epoch: int) -> int:
        self.window.stepped()  # a checkpoint may have been resumed
        self.window.opened()
        self.epoch = epoch
        self.under_way = None
        self.caller.list.on_epoch_begin(epoch)
        call_each(self.caller.train, "on_train_batch_begin", 0)
        self.window.closed()
        return int(self.interrupt.asked)

    def _after_step(self, _user: Optional[int], pointer: Any) -> int:
        p = pointer.contents
        self.window.stepped()
        ends = p.epoch_end
        stops = self.model.stop_training  # what is set at the beginning of a step ends the training after it
        if not (ends or stops or self.caller.train or self.generator is not None or self.caller.draws()):
            return int(self.interrupt.asked)
        logs = self.names.logs(p.values)
        step = p.step - 1
        self.under_way = logs
        self.window.opened(callbacks=bool(ends or self.caller.users))
        call_each(self.caller.train, "on_train_batch_end", step, logs)
        if ends or not self.caller.train or self.caller.draws():
            self.caller.draw("on_train_batch_end", step, logs)
        if ends and not self.interrupt.asked:
            self._end_epoch(p.epoch, logs)
            self._check_once(p.epoch)
        stops = self.model.stop_training
        if not ends and not stops:
            call_each(self.caller.train, "on_train_batch_begin", step + 1)
        self.window.closed()
        return int(self.interrupt.asked or stops)

    def _end_epoch(self, epoch: int, logs: Logs) -> None:
        self.under_way = None
        if self.validation is not None and self.validates(epoch + 1):
            self.caller.list.on_test_begin()
            self.window.flush()  # what a callback assigned is validated
            values = run_evaluation(self.session, self.validation, self.caller, self.validation_steps, self.allow_nan,
                                    lambda: self.interrupt.asked)
            if self.interrupt.asked:
                return
            values.update(self.left_out.values(self.session, self.validation_source, self.validation_steps))
            self.caller.list.on_test_end(values)
            logs = {**logs, **{f"val_{name}": value for name, value in values.items()}}
        self.caller.list.on_epoch_end(epoch, logs)
        self.last_logs = logs

    def _check_once(self, epoch: int) -> None:
        """A generator gives one pass."""
        once = self.generator is not None and self.steps_per_epoch is None
        if once and epoch + 1 < self.epochs and not self.model.stop_training:
            warnings.warn(f"the generator gave one pass, and {self.epochs} epochs were asked for: training ends "
                          f"after epoch {epoch + 1}", stacklevel=2)
            self.model.stop_training = True

    def _ran_out(self) -> None:
        warnings.warn(f"the generator ended in epoch {self.epoch + 1}, before its {self.steps_per_epoch} steps: "
                      "training ends", stacklevel=2)
        if self.under_way is not None:
            self.window.opened()
            self._end_epoch(self.epoch, self.under_way)
            self.window.closed()
