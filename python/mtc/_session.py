# SPDX-License-Identifier: Apache-2.0
"""Sessions: a plan bound to devices, with memory and variables."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from mtc import _headers, _library, _loop, _process, _structs
from mtc._checks import integer
from mtc._dataset import Dataset, with_lines
from mtc._devices import default_devices
from mtc._errors import ClosedError, DataError, check
from mtc._loop import Checkpoint, FitResult, Progress
from mtc._options import in_python
from mtc._owner import Owner
from mtc._profile import Logs as Logs
from mtc._profile import Profile, StepResult, Timing, benchmark, profile
from mtc._structure import Structure
from mtc._tensors import OUTPUT, SAMPLE_WEIGHT, Array, TensorInfo, address, as_array, as_entry, as_type
from mtc._variables import Variables

if TYPE_CHECKING:
    from mtc._plan import Path, Plan

_MATCHES = ("all", "model", "any")  # mtrun_match
Tensors = Union[Mapping[str, Any], Sequence[Any]]


def _doubles(array: Array) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


class Session:
    """A plan bound to devices.

    A session is used by one thread at a time, and in the process that made it. It is freed by `close`, at the end of a
    `with` block, or when nothing refers to it any more.

    Where mpirun, mpiexec or srun started the script in several processes, a session of CPU devices is one of all of
    them. Every process makes the same calls with the same whole arrays, computes its share of the rows, and has the
    same results. Only process 0 prints and writes files.
    """

    @_headers.documented("mtrun_options", without=("struct_size", "devices", "seed"))
    def __init__(self, plan: Plan, devices: Optional[str] = None, *, seed: int = 0, **options: Any) -> None:
        """Allocates all memory, starts the threads, and sets the variables to their initial values.

        Args:
            plan: the plan.
            devices: "cpu:2" (two devices), "cpu:1x4" (one of four threads), "cuda:0-3". None: the GPUs that the plan
                has code for, else one CPU device with a thread for each CPU that this process may use.
            seed: of initial values and random numbers; 0: the plan's.
            options: other fields of `mtrun_options`.
        """
        self.plan, library = plan, _library.runtime()
        integer("seed", seed, 0)
        self.devices = devices if devices is not None else default_devices(plan)
        for name in set(options) - {name for name, *_ in _structs.Options._fields_}:
            raise TypeError(f"expected an option of mtrun_options, found {name}")
        if "processes" not in options:
            options = {"compare_tensors": 1, **_process.options_for(self.devices), **options}
        given = {k: v.encode() if isinstance(v, str) else v for k, v in {"devices": self.devices, **options}.items()}
        settings, handle = _structs.sized(_structs.Options, seed=seed, **given), ctypes.c_void_p()
        check(library, library.mtrun_session_create(plan._handle, ctypes.byref(settings), ctypes.byref(handle)),
              spell=in_python)
        self._owner = Owner(library, handle, plan)
        self._use = self._owner.use
        self._process = settings.process if settings.processes > 1 else 0
        self._processes = max(settings.processes, 1)
        self._divides = self._processes > 1 and bool(settings.shard_optimizer)

    def close(self) -> None:
        """Ends the session's threads and frees its memory. A second call does nothing.

        Raises:
            ClosedError: another thread uses it, or the caller is a callback of its own `fit`.
        """
        self._owner.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        try:
            self.close()
        except ClosedError:
            if error is None:  # else that is what the caller should know; freed when nobody uses it any more
                raise

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise TypeError("expected what can be pickled or copied, found a session, which has threads and memory of its "
                        "own: take session.plan, and session.save() or dict(session.variables)")

    def __repr__(self) -> str:
        state = "closed" if self._owner.closed else self.devices
        return f"<mtc.Session of {self.plan.model}: {state}>"

    @functools.cached_property
    def _structure(self) -> Structure:
        return Structure.of(self.plan)

    # Steps

    def train_step(self, tensors: Tensors) -> Logs:
        """One training step: forward, backward, update.

        Args:
            tensors: arrays of n samples, [n, ...], by their names in `plan.signature()`, or in its order;
                1 <= n <= `plan.batch_size`. Sample weights may be left out.

        Returns:
            The losses and metrics of this step, by name.
        """
        return self._step("train_step", tensors).logs

    def eval_step(self, tensors: Tensors) -> Logs:
        """The losses and metrics of n samples, as `train_step`, without an update."""
        return self._step("eval_step", tensors).logs

    def step(self, program: str, tensors: Tensors) -> StepResult:
        """`train_step` or `eval_step`, with what `mtc.Totals` adds up over steps, and the learning rate.

        Args:
            program: "train_step" or "eval_step".
            tensors: as of `train_step`.
        """
        if program not in ("train_step", "eval_step"):
            raise DataError(f"expected the program train_step or eval_step, found {program}")
        return self._step(program, tensors)

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> Logs:
        """One training step on inputs and targets as Keras takes them: an array, or a list or dict of arrays."""
        return self.train_step(self._structure.bind(x, y, sample_weight))

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> Logs:
        """The losses and metrics of a batch, as `train_on_batch`, without an update."""
        return self.eval_step(self._structure.bind(x, y, sample_weight))

    def predict(self, x: Any) -> Any:
        """The outputs for any number of samples.

        Args:
            x: an array [n, ...] for the only input, or a list or dict of arrays.

        Returns:
            An array [n, ...] of the only output, or a dict of them by name.
        """
        outputs = self._predict(self._structure.bind(x, None, None))
        return outputs if len(outputs) != 1 else next(iter(outputs.values()))

    def _predict(self, given: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs for any number of samples, by name."""
        entries = self.plan.signature("predict")
        inputs = {e.name: as_array(given[e.name], e.name) for e in entries if e.role != OUTPUT}
        first = next(iter(inputs.values()))
        rows = len(first) if first.ndim else 0
        outputs = {e.name: np.empty((rows, *e.shape[1:]), e.dtype) for e in entries if e.role == OUTPUT}
        batch = self.plan.batch_size
        with self._use():
            for begin in range(0, rows, batch):
                part = {name: array[begin : begin + batch] for name, array in inputs.items()}
                self.predict_into(part, {name: array[begin : begin + batch] for name, array in outputs.items()})
        return outputs

    def predict_into(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        """Writes the outputs of n <= `plan.batch_size` samples into dense arrays [n, ...] of the outputs' types."""
        library = _library.runtime()
        entries = self.plan.signature("predict")
        rows = min(len(a) for a in outputs.values())
        arrays = [outputs[e.name] if e.role == OUTPUT else as_entry(inputs[e.name], e, rows) for e in entries]
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        with self._use() as handle:
            check(library, library.mtrun_predict(handle, pointers, rows))

    def _step(self, program: str, tensors: Tensors) -> StepResult:
        entries = self.plan.signature(program)
        if not isinstance(tensors, Mapping):
            tensors = {e.name: t for e, t in zip(entries, tensors)}
        arrays: list[Optional[Array]] = []
        rows: Optional[int] = None
        for entry in entries:
            value = tensors.get(entry.name)
            if value is None:
                if not (entry.role == SAMPLE_WEIGHT and entry.optional):
                    raise DataError(f"expected {entry}, found none")
                arrays.append(None)
                continue
            array = as_entry(value, entry, rows)
            rows = len(array)
            arrays.append(array)
        library = _library.runtime()
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data if a is not None else None for a in arrays))
        names = self.plan.metrics(program)
        count, sums = len(names), np.empty(self.plan._sum_count(program))
        values, weights = np.empty(count), np.empty(count)
        rate = ctypes.c_double(math.nan)
        results = _structs.Results(values=_doubles(values), weights=_doubles(weights), sums=_doubles(sums),
                                   learning_rate=ctypes.pointer(rate))
        trains = program == "train_step"
        with self._use(program if trains else "") as handle:
            run = library.mtrun_train_step if trains else library.mtrun_eval_step
            check(library, run(handle, pointers, rows or 0, ctypes.byref(results)))
        return StepResult(dict(zip(names, values.tolist())), weights, sums,
                          None if math.isnan(rate.value) else rate.value)

    # Loops

    @_headers.documented("mtrun_loop_options", without=("struct_size", "epochs", "no_shuffle", "in_flight"))
    def fit(self, data: Any, *, epochs: int = 1, validation: Any = None, shuffle: bool = True,
            checkpoint: Optional[Checkpoint] = None, resume: Union[None, bool, str] = None,
            callback: Optional[Callable[[Progress], Any]] = None, **options: Any) -> FitResult:
        """Trains for whole epochs, as `mtrun train` does.

        Args:
            data: a `Dataset`, or what `plan.open` takes: "mnist:DIR", (x, y), arrays by name, batches.
            epochs: in total, those before a resume included.
            validation: what to validate on after each epoch, likewise.
            shuffle: permutes the samples by seed and epoch.
            checkpoint: as of `mtc.fit`.
            resume: as of `mtc.fit`.
            callback: called after each step with a `Progress`. It may read and set variables; what it gives that is
                true ends the training.
            options: other fields of `mtrun_loop_options`.

        Returns:
            A `FitResult`. After Ctrl-C, which saves where there is a folder of checkpoints, KeyboardInterrupt is
            raised.
        """
        saving = _loop.checkpoint_options(checkpoint, resume)
        with contextlib.ExitStack() as stack:
            training = self._opened(data, stack)
            held = self._opened(validation, stack) if validation is not None else None
            return _loop.fit(self, training, held, epochs, shuffle, saving, callback, options)

    def evaluate(self, data: Any, *, steps: Optional[int] = None, allow_nan: bool = False) -> Logs:
        """The losses and metrics over all samples, by name.

        Args:
            data: as of `fit`.
            steps: batches to take; None: all.
            allow_nan: takes values that are not finite.
        """
        with contextlib.ExitStack() as stack:
            return _loop.evaluate(self, self._opened(data, stack), steps, allow_nan)

    def predict_file(self, data: Any, path: Path, output: Optional[str] = None) -> None:
        """Predicts every sample, and writes a `.npy`, `.npz` or `.csv` file, as `mtrun predict` does.

        Args:
            data: as of `fit`.
            path: appears only when it is complete.
            output: of several the one to write; None: all, or in `.npy` the first.
        """
        names = [t.name for t in self.plan.outputs]
        if output is not None and output not in names:
            raise DataError(f"expected an output of {', '.join(names)}, found {output}")
        library = _library.runtime()
        with contextlib.ExitStack() as stack:
            samples = self._opened(data, stack)
            with self._use() as handle:
                check(library, library.mtrun_predict_file(
                    handle, samples.handle, -1 if output is None else names.index(output), os.fsencode(path)))

    def _opened(self, data: Any, stack: contextlib.ExitStack) -> Dataset:
        if isinstance(data, Dataset):
            return data
        return stack.enter_context(self.plan.open(data))

    # Times

    def benchmark(self, rows: Optional[int] = None, *, warmup: int = 10, steps: int = 100) -> Timing:
        """Times training steps on random inputs. The variables change: use a session of its own.

        Args:
            rows: samples of a step; None: `plan.batch_size`.
            warmup: untimed steps before.
            steps: timed ones.
        """
        with self._use("benchmark") as handle:
            return benchmark(handle, self.plan.batch_size if rows is None else rows, warmup, steps)

    def start_trace(self, first: int = 0, last: int = 0) -> None:
        """Records from now on what every thread does in training steps, for `profile` and `write_trace`.

        Args:
            first: the first step whose spans are kept for `write_trace`, counted from here, from 1.
            last: the last one. 0 and 0: none are kept.
        """
        library = _library.runtime()
        options = _structs.sized(_structs.TraceOptions, first=first, last=last, profile=1)
        with self._use() as handle:
            check(library, library.mtrun_trace_start(handle, ctypes.byref(options)))

    def write_trace(self, path: Path) -> None:
        """Writes the steps whose spans were kept in Chrome's JSON format, for ui.perfetto.dev."""
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_trace_write(handle, os.fsencode(path)))

    def profile(self) -> Profile:
        """Means over the training steps since `start_trace`: each launch and all-reduce, by layer."""
        with self._use() as handle:
            return profile(handle)

    def tune(self, path: Path, repeats: int = 20) -> list[str]:
        """Measures on the first GPU what runs each kernel fastest, and writes a tuning file, for `tuning`.

        The session must have been made with `libraries="tune"`; its variables are meaningless afterwards.
        """
        library = _library.runtime()
        lines: list[str] = []
        with self._use("tune") as handle:
            check(library, with_lines(library.mtrun_tune, handle, os.fsencode(path), repeats, into=lines))
        return lines

    # Variables

    @property
    def variables(self) -> Variables:
        """The variables by name: reading copies one out, assigning copies it in, on all devices."""
        return Variables(self)

    def get_variable(self, info: TensorInfo) -> Array:
        """A copy of a variable's elements, in its shape."""
        library = _library.runtime()
        array = np.empty(info.shape, info.dtype)
        with self._use() as handle:
            check(library, library.mtrun_get_variable(handle, info.name.encode(), address(array), array.nbytes))
        return array

    def collect_variables(self, everywhere: bool = False) -> None:
        """Collects the parts of the optimizer's variables that several processes have (`shard_optimizer`).

        All processes must call it. `variables` and `save` then find whole ones in process 0, until the next training
        step. `fit` ends with it.

        Args:
            everywhere: in all processes, not only in process 0.
        """
        library = _library.runtime()
        with self._use("collect_variables") as handle:
            check(library, library.mtrun_collect_variables(handle, int(everywhere)))

    def set_variable(self, info: TensorInfo, value: Any) -> None:
        """Copies elements into a variable. `value`: an array, or anything with the buffer protocol or DLPack."""
        library = _library.runtime()
        array = as_array(value, info.name)
        if array.shape != info.shape:
            raise DataError(f"expected {info}, found {array.dtype} {list(array.shape)}")
        array = np.ascontiguousarray(as_type(array, info))
        with self._use() as handle:
            check(library, library.mtrun_set_variable(handle, info.name.encode(), address(array), array.nbytes))

    def init(self, seed: int = 0) -> None:
        """Sets every variable to its initial value again, and the step counter to 0. 0: the session's seed."""
        library = _library.runtime()
        with self._use("init") as handle:
            check(library, library.mtrun_session_init(handle, seed))

    def save(self, path: Path) -> None:
        """Writes the variables: `.safetensors`, or for a Keras model `.keras` and `.weights.h5`.

        Of several processes only process 0 writes.
        """
        if self._process > 0:
            return
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_save(handle, os.fsencode(path)))

    def load(self, path: Path, match: str = "") -> list[str]:
        """Reads the variables of a `.safetensors`, `.keras` or `.weights.h5` file that MTC wrote, or of a checkpoint.

        Args:
            path: the file, a checkpoint, or a folder of checkpoints, whose newest is read.
            match: what must be the same: "all": every variable of either; "model": every variable of the model, and
                the optimizer's where they fit; "any": at least one. Without it "all", for files of Keras "model".

        Returns:
            Lines that say what was loaded and what was not; none without `match`.
        """
        library = _library.runtime()
        lines: list[str] = []
        with self._use("load") as handle:
            if not match:
                check(library, library.mtrun_load(handle, os.fsencode(path)))
                return lines
            if match not in _MATCHES:
                raise DataError(f"expected match to be {', '.join(_MATCHES[:2])} or {_MATCHES[2]}, found {match}")
            check(library, with_lines(library.mtrun_load_matching, handle, os.fsencode(path), _MATCHES.index(match),
                                      into=lines))
        return lines

    @property
    def class_names(self) -> list[str]:
        """Names of the labels: the plan's, else those of a file that was loaded or of the data; may be empty."""
        library = _library.runtime()
        names: list[str] = []
        with self._use() as handle:
            while (name := library.mtrun_session_class_name(handle, len(names))) is not None:
                names.append(name.decode())
        return names

    def shards(self, device: int) -> int:
        """Number of shards that a device computes; all of them where the devices share variables."""
        with self._use() as handle:
            return int(_library.runtime().mtrun_session_shards(handle, device))

    def length_steps(self) -> dict[int, int]:
        """Number of steps so far, of all programs, by the length of the plan that they took."""
        with self._use() as handle:
            return {length: int(_library.runtime().mtrun_session_length_steps(handle, i))
                    for i, length in enumerate(self.plan.lengths)}

    def activities(self) -> list[dict[str, int]]:
        """What each process has done since the session was made: shards, rows, received_bytes, read_bytes, pictures.

        All processes call it after the same steps. Process 0 gets a dict of each process, the others zeros.
        """
        found = (_structs.Activity * self._processes)()
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_session_activities(handle, ctypes.cast(found, ctypes.POINTER(
                _structs.Activity))))
        return [{name: getattr(each, name) for name, *_ in each._fields_} for each in found]

    def info(self) -> dict[str, Any]:
        """Facts: devices, threads_per_device, variables_bytes, peak_bytes, collective_bytes, target, seed."""
        info = _structs.SessionInfo()
        with self._use() as handle:
            _library.runtime().mtrun_session_get_info(handle, ctypes.byref(info))
        facts = {name: getattr(info, name) for name, *_ in info._fields_}
        facts["target"] = facts["target"].decode() if facts["target"] else ""
        return facts
