# SPDX-License-Identifier: Apache-2.0
"""Sessions: a plan bound to devices, with memory and variables."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
import weakref
from typing import Any, Iterator, Mapping, MutableMapping, Optional, Sequence, Union

import numpy as np

from mtc import _library, _structs
from mtc._errors import ClosedError, DataError, check
from mtc._plan import Path, Plan
from mtc._structure import Structure
from mtc._tensors import OUTPUT, SAMPLE_WEIGHT, Array, TensorInfo, address, as_array, as_entry

Logs = dict[str, float]


def _free(library: Any, handle: ctypes.c_void_p, pid: int, _plan: Plan) -> None:
    if os.getpid() == pid:  # its threads are not in a child of fork()
        library.mtrun_session_free(handle)


class Session:
    """A plan bound to devices.

    A session is used by one thread at a time, and in the process that made it. It is freed by `close`, at the end of a
    `with` block, or when nothing refers to it any more.
    """

    def __init__(self, plan: Plan, devices: Optional[str] = None, *, seed: int = 0, **options: Any) -> None:
        """Allocates all memory, starts the threads, and sets the variables to their initial values.

        Args:
            plan: the plan.
            devices: "cpu:2" (two devices), "cpu:1x4" (one of four threads), "cuda:0-3". None: the GPUs that the plan
                has code for, else one CPU device with a thread for each CPU that this process may use.
            seed: of initial values and random numbers; 0: the plan's.
            options: other fields of `mtrun_options`, such as `private_variables` or `tuning`.
        """
        library = _library.runtime()
        self.plan = plan
        self.devices = devices if devices is not None else default_devices(plan)
        known = {name for name, *_ in _structs.Options._fields_}
        for name in options:
            if name not in known:
                raise TypeError(f"expected an option of mtrun_options, found {name}")
        given = {k: v.encode() if isinstance(v, str) else v for k, v in options.items()}
        settings = _structs.sized(_structs.Options, devices=self.devices.encode(), seed=seed, **given)
        handle = ctypes.c_void_p()
        check(library, library.mtrun_session_create(plan._handle, ctypes.byref(settings), ctypes.byref(handle)))
        self._handle: Optional[ctypes.c_void_p] = handle
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._free = weakref.finalize(self, _free, library, handle, self._pid, plan)

    def close(self) -> None:
        """Ends the session's threads and frees its memory. A second call does nothing."""
        self._handle = None
        self._free()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else self.devices
        return f"<mtc.Session of {self.plan.model}: {state}>"

    @contextlib.contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        """The handle, for this thread alone."""
        if self._handle is None:
            raise ClosedError("expected an open session, found one that is closed")
        if os.getpid() != self._pid:
            raise ClosedError(f"expected a session of this process, {os.getpid()}, found one of process {self._pid}: "
                              "make a session after fork()")
        if not self._lock.acquire(blocking=False):
            raise ClosedError("expected a session that is idle, found one that another thread uses")
        try:
            yield self._handle
        finally:
            self._lock.release()

    @functools.cached_property
    def _structure(self) -> Structure:
        return Structure.of(self.plan)

    # Steps

    def train_step(self, tensors: Union[Mapping[str, Any], Sequence[Any]]) -> Logs:
        """One training step: forward, backward, update.

        Args:
            tensors: arrays of n samples, [n, ...], by their names in `plan.signature()`, or in its order;
                1 <= n <= `plan.batch_size`. Sample weights may be left out.

        Returns:
            The losses and metrics of this step, by name.
        """
        return self._step("train_step", tensors)

    def eval_step(self, tensors: Union[Mapping[str, Any], Sequence[Any]]) -> Logs:
        """The losses and metrics of n samples, as `train_step`, without an update."""
        return self._step("eval_step", tensors)

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
        entries = self.plan.signature("predict")
        given = self._structure.bind(x, None, None)
        inputs = {e.name: as_array(given[e.name], e.name) for e in entries if e.role != OUTPUT}
        first = next(iter(inputs.values()))
        rows = len(first) if first.ndim else 0
        outputs = {e.name: np.empty((rows, *e.shape[1:]), e.dtype) for e in entries if e.role == OUTPUT}
        batch = self.plan.batch_size
        with self._use():
            for begin in range(0, rows, batch):
                part = {name: array[begin : begin + batch] for name, array in inputs.items()}
                self.predict_into(part, {name: array[begin : begin + batch] for name, array in outputs.items()})
        return outputs if len(outputs) != 1 else next(iter(outputs.values()))

    def predict_into(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        """Writes the outputs of n <= `plan.batch_size` samples into dense arrays [n, ...] of the outputs' types."""
        library = _library.runtime()
        entries = self.plan.signature("predict")
        rows = min(len(a) for a in outputs.values())
        arrays = [outputs[e.name] if e.role == OUTPUT else as_entry(inputs[e.name], e, rows) for e in entries]
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        with self._use() as handle:
            check(library, library.mtrun_predict(handle, pointers, rows))

    def _step(self, program: str, tensors: Union[Mapping[str, Any], Sequence[Any]]) -> Logs:
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
        values = (ctypes.c_double * max(len(names), 1))()
        results = _structs.Results(values=values)
        with self._use() as handle:
            run = library.mtrun_train_step if program == "train_step" else library.mtrun_eval_step
            check(library, run(handle, pointers, rows or 0, ctypes.byref(results)))
        return dict(zip(names, values))

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

    def set_variable(self, info: TensorInfo, value: Any) -> None:
        """Copies elements into a variable. `value`: an array, or anything with the buffer protocol or DLPack."""
        library = _library.runtime()
        array = as_array(value, info.name)
        if array.shape != info.shape:
            raise DataError(f"expected {info}, found {array.dtype} {list(array.shape)}")
        array = np.ascontiguousarray(array, dtype=info.dtype)
        with self._use() as handle:
            check(library, library.mtrun_set_variable(handle, info.name.encode(), address(array), array.nbytes))

    def init(self, seed: int = 0) -> None:
        """Sets every variable to its initial value again, and the step counter to 0. 0: the session's seed."""
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_session_init(handle, seed))

    def save(self, path: Path) -> None:
        """Writes the variables: `.safetensors`, or for a Keras model `.keras` and `.weights.h5`."""
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_save(handle, os.fsencode(path)))

    def load(self, path: Path) -> None:
        """Reads the variables of a `.safetensors` or `.keras` file that MTC wrote, or of a checkpoint."""
        library = _library.runtime()
        with self._use() as handle:
            check(library, library.mtrun_load(handle, os.fsencode(path)))

    def info(self) -> dict[str, Any]:
        """Facts: devices, threads_per_device, variables_bytes, peak_bytes, collective_bytes, target, seed."""
        info = _structs.SessionInfo()
        with self._use() as handle:
            _library.runtime().mtrun_session_get_info(handle, ctypes.byref(info))
        facts = {name: getattr(info, name) for name, *_ in info._fields_}
        facts["target"] = facts["target"].decode() if facts["target"] else ""
        return facts


class Variables(MutableMapping[str, Array]):
    """A session's variables by name, as NumPy arrays. Each read is a copy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._infos = session.plan._variables_by_name

    def _info(self, name: str) -> TensorInfo:
        if name not in self._infos:
            raise KeyError(f"expected one of {', '.join(self._infos)}, found {name}")
        return self._infos[name]

    def __getitem__(self, name: str) -> Array:
        return self._session.get_variable(self._info(name))

    def __setitem__(self, name: str, value: Any) -> None:
        self._session.set_variable(self._info(name), value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("the variables of a plan cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)


def default_devices(plan: Plan) -> str:
    """The GPUs that the plan has code for, at most one a shard; else a CPU device of all CPUs of this process."""
    if plan.has_code("cuda"):
        count = 0

        def line(_user: Optional[int], _text: bytes) -> None:
            nonlocal count
            count += 1

        library = _library.runtime()
        status = library.mtrun_list_devices(_structs.LineCallback(line), None)
        if status:
            library.mt_status_free(status)
        elif count:
            return f"cuda:0-{min(count, plan.shards) - 1}"
    return f"cpu:1x{len(os.sched_getaffinity(0))}"
