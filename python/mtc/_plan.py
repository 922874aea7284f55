# SPDX-License-Identifier: Apache-2.0
"""Plans: a compiled model in memory."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
import pathlib
import weakref
from typing import Any, Optional, Union

from mtc import _files, _library, _structs
from mtc._data import open_dataset
from mtc._dataset import Dataset
from mtc._errors import DataError, FileError, check
from mtc._html import plan_table
from mtc._session import Session
from mtc._tensors import INPUT, OUTPUT, SAMPLE_WEIGHT, TARGET, TensorInfo, tensor_of

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of a program's data flow.

    Attributes:
        name: of a variable or tensor, or LAYER/KERNEL; no other node has it.
        kind: "input", "target", "sample_weight", "variable", "output", "all_reduce", or the kind of the kernel.
        inputs: names of nodes that came before.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]


class Plan:
    """A compiled model: training, evaluation and prediction for one batch size, on 1 to `shards` devices.

    `mtc.compile` and `mtc.load` make plans. A plan does not change, and any number of threads and sessions may use it.
    """

    def __init__(self, data: bytes, any_label: bool = False) -> None:
        """Verifies the bytes of a plan file: every hash, every index, every size.

        `any_label`: integer targets are what the model makes of them, and need not be classes of its output.
        """
        library = _library.runtime()
        handle = ctypes.c_void_p()
        check(library, library.mtrun_plan_load_memory(data, len(data), ctypes.byref(handle)))
        self._data = data
        self._any_label = any_label
        self._handle = handle
        self._signatures: dict[str, tuple[TensorInfo, ...]] = {}
        self._metrics: dict[str, tuple[str, ...]] = {}
        self._sums: dict[str, int] = {}
        self._free = weakref.finalize(self, library.mtrun_plan_free, handle)

    @property
    def model(self) -> str:
        """The model's name."""
        return str(_library.runtime().mtrun_plan_model(self._handle).decode())

    @property
    def batch_size(self) -> int:
        """The global batch: the largest number of samples in a step, on all devices together."""
        return int(_library.runtime().mtrun_plan_batch(self._handle))

    @property
    def shards(self) -> int:
        """The slices of the batch: the largest number of devices."""
        return int(_library.runtime().mtrun_plan_shards(self._handle))

    @property
    def has_weights(self) -> bool:
        """Whether variables start with values of a file or of a live model, and not with random ones."""
        return bool(_library.runtime().mtrun_plan_has_weights(self._handle))

    @functools.cached_property
    def tokens(self) -> tuple[str, ...]:
        """The vocabulary that the model was compiled with: the character of each token. Empty: it has none."""
        library = _library.runtime()
        return tuple(library.mtrun_plan_token(self._handle, i).decode()
                     for i in range(library.mtrun_plan_token_count(self._handle)))

    @functools.cached_property
    def lengths(self) -> tuple[int, ...]:
        """The sequence lengths that the plan has programs for, rising. Empty: all steps have one size."""
        library = _library.runtime()
        return tuple(int(library.mtrun_plan_length(self._handle, i))
                     for i in range(library.mtrun_plan_length_count(self._handle)))

    def has_program(self, program: str) -> bool:
        """Whether the plan has the program "init", "train_step", "eval_step" or "predict"."""
        return bool(_library.runtime().mtrun_plan_has_program(self._handle, program.encode()))

    def has_code(self, kind: str) -> bool:
        """Whether the plan has machine code for devices of this kind, "cpu" or "cuda"."""
        return bool(_library.runtime().mtrun_plan_has_code(self._handle, kind.encode()))

    def signature(self, program: str = "train_step") -> tuple[TensorInfo, ...]:
        """The tensors of a program ("train_step", "eval_step" or "predict"), in the order of the step calls."""
        if program not in self._signatures:
            self._signatures[program] = self._tensors("mtrun_plan_signature", program.encode())
        return self._signatures[program]

    @functools.cached_property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the model."""
        return tuple(t for t in self.signature("predict") if t.role == INPUT)

    @functools.cached_property
    def targets(self) -> tuple[TensorInfo, ...]:
        """What losses and metrics compare with."""
        return tuple(t for t in self.signature() if t.role == TARGET)

    @functools.cached_property
    def sample_weights(self) -> tuple[TensorInfo, ...]:
        """Weights of samples; none, unless the model was compiled with `sample_weights=True`."""
        return tuple(t for t in self.signature() if t.role == SAMPLE_WEIGHT)

    @functools.cached_property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs of the model."""
        return tuple(t for t in self.signature("predict") if t.role == OUTPUT)

    @functools.cached_property
    def variables(self) -> tuple[TensorInfo, ...]:
        """All variables: weights, state, and the optimizer's."""
        return self._tensors("mtrun_plan_variable")

    @functools.cached_property
    def _variables_by_name(self) -> dict[str, TensorInfo]:
        return {v.name: v for v in self.variables}

    def metrics(self, program: str = "train_step") -> tuple[str, ...]:
        """Names of the losses and metrics that a program reports, the losses first."""
        if program not in self._metrics:
            library, name = _library.runtime(), program.encode()
            count = library.mtrun_plan_metric_count(self._handle, name)
            self._metrics[program] = tuple(library.mtrun_plan_metric_name(self._handle, name, i).decode()
                                           for i in range(count))
        return self._metrics[program]

    def higher_is_better(self, metric: str, program: str = "train_step") -> bool:
        """Whether the higher of two values of a metric is better (accuracy), or the lower (losses, errors)."""
        names = self.metrics(program)
        if metric not in names:
            raise DataError(f"expected a metric of {', '.join(names)}, found {metric}")
        return bool(_library.runtime().mtrun_plan_metric_higher_is_better(self._handle, program.encode(),
                                                                          names.index(metric)))

    def _sum_count(self, program: str) -> int:
        if program not in self._sums:
            self._sums[program] = int(_library.runtime().mtrun_plan_sum_count(self._handle, program.encode()))
        return self._sums[program]

    def graph(self, program: str = "train_step") -> list[Node]:
        """The data flow of a program: its tensors, variables, kernels and all-reduces, each after its inputs."""
        library = _library.runtime()
        nodes: list[Node] = []

        def node(_user: Optional[int], pointer: Any) -> None:
            n = pointer.contents
            nodes.append(Node(n.name.decode(), n.kind.decode(),
                              tuple(n.input_names[i].decode() for i in range(n.inputs))))

        check(library, library.mtrun_plan_graph(self._handle, program.encode(), _structs.NodeCallback(node), None))
        return nodes

    def open(self, data: Any) -> Dataset:
        """Opens data for sessions of this plan.

        Args:
            data: a source as `mtrun train --data` takes it ("mnist:DIR", "npz:d.npz,shuffle=8"); a tuple (x, y) or
                (x, y, sample_weight) of arrays [n, ...]; a dict of arrays by the names of `signature()`; or an iterable
                of batches.
        """
        return open_dataset(self, data)

    def check_save(self, path: Path) -> None:
        """DataError where sessions of this plan cannot `save` to a file of this name. Nothing is written."""
        library = _library.runtime()
        check(library, library.mtrun_check_save(self._handle, os.fsencode(path)))

    def save(self, path: Path) -> None:
        """Writes the plan file, which `mtrun` and `mtc.load` read. It appears only when it is complete."""
        write_atomically(path, self._data)

    def memory(self, devices: int = 1) -> int:
        """Bytes that each of `devices` devices needs at its peak: variables, arena, shared results, scratch.

        Where devices share the shards unevenly, this is the one with the most.
        """
        if not 1 <= devices <= self.shards:
            raise DataError(f"expected 1 to {self.shards} devices, as the plan has shards, found {devices}")
        held = 1
        while held * devices < self.shards:
            held *= 2
        return self._peaks[held]

    @functools.cached_property
    def _peaks(self) -> dict[int, int]:
        """Bytes of a device at its peak, by the number of shards that it holds."""
        return {entry["shards"]: int(entry["peak_bytes"]) for entry in self.inspect()["devices"]}

    def inspect(self) -> dict[str, Any]:
        """Programs, variables, kernels, collectives and the memory map, as `mtc inspect --json` prints them."""
        return dict(json.loads(self._describe(1)))

    def to_text(self, devices: Optional[int] = None, gpu: Optional[str] = None, *, hosts: Optional[str] = None,
                cpu: Optional[str] = None, network: Optional[str] = None, trace: Optional[Path] = None,
                against: Optional[Plan] = None) -> str:
        """The same for people, as `mtc inspect` prints it.

        Args:
            devices: draws which of so many devices works on which rows and holds which variables instead.
            gpu: models a step on 1, 2, 4 ... GPUs of this model, such as "h100", instead.
            hosts: models a step on 1, 2, 4 ... hosts instead: "8x8" with eight GPUs each, "8" with the CPUs of `cpu`.
            cpu: the CPUs of each host: "32x40GF" are 32 cores of 40 GFLOP/s.
            network: bits per second of each device between hosts, such as "25Gb".
            trace: a file of `Session.write_trace`: shows the measured times.
            against: another plan, to compare with.
        """
        if devices is not None:
            return _take(_library.compiler().mtc_inspect_devices, self._data, len(self._data), devices, 0)
        if trace is not None or against is not None:
            return self._inspect_with(0, trace, against)
        if hosts is not None:
            given = {"gpu": gpu, "hosts": hosts, "cpu": cpu, "network": network}
            fields = {name: value.encode() for name, value in given.items() if value is not None}
            options = _structs.sized(_structs.InspectOptions, **fields)
            return _take(_library.compiler().mtc_inspect_with, self._data, len(self._data), ctypes.byref(options))
        if gpu is not None:
            return _take(_library.compiler().mtc_inspect_gpus, self._data, len(self._data), gpu.encode())
        return self._describe(0)

    def to_html(self, devices: Optional[int] = None, *, trace: Optional[Path] = None,
                against: Optional[Plan] = None) -> str:
        """A page with the layers, the graph, the memory map and the kernels, which needs no other file.

        Args:
            devices: a page of what each of so many devices does instead.
            trace: as of `to_text`.
            against: as of `to_text`.
        """
        if devices is not None:
            return _take(_library.compiler().mtc_inspect_devices, self._data, len(self._data), devices, 1)
        if trace is not None or against is not None:
            return self._inspect_with(1, trace, against)
        return _take(_library.compiler().mtc_inspect_html, self._data, len(self._data))

    def _inspect_with(self, html: int, trace: Optional[Path], against: Optional[Plan]) -> str:
        fields: dict[str, Any] = {"html": html}
        if trace is not None:
            fields["trace"] = _read(trace)
            fields["trace_size"] = len(fields["trace"])
        if against is not None:
            fields.update(against=against._data, against_size=len(against._data))
        options = _structs.sized(_structs.InspectOptions, **fields)
        return _take(_library.compiler().mtc_inspect_with, self._data, len(self._data), ctypes.byref(options))

    def session(self, devices: Optional[str] = None, *, seed: int = 0, **options: Any) -> Session:
        """Binds the plan to devices. The arguments are those of `mtc.Session`."""
        return Session(self, devices, seed=seed, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        """Its bytes, for pickle: what is unpickled is verified again."""
        return Plan, (self._data, self._any_label)

    def __copy__(self) -> Plan:
        """Itself, which does not change."""
        return self

    def __deepcopy__(self, _memo: Any) -> Plan:
        return self

    def __repr__(self) -> str:
        return f"<mtc.Plan {self.model}: batch {self.batch_size}, {self.shards} shards, {len(self._data)} bytes>"

    def _repr_html_(self) -> str:
        return plan_table(self)

    def _tensors(self, function: str, *arguments: Any) -> tuple[TensorInfo, ...]:
        library = _library.runtime()
        tensors = []
        for i in range(getattr(library, function + "_count")(self._handle, *arguments)):
            info = _structs.TensorInfo()
            check(library, getattr(library, function)(self._handle, *arguments, i, ctypes.byref(info)))
            tensors.append(tensor_of(info))
        return tuple(tensors)

    def _describe(self, as_json: int) -> str:
        return _take(_library.compiler().mtc_inspect, self._data, len(self._data), as_json)


def _take(function: Any, *arguments: Any) -> str:
    return take_result(function, *arguments).decode()


def take_result(function: Any, *arguments: Any, **options: Any) -> bytes:
    """Calls a function of mtc.h that makes a result, and gives its bytes."""
    library = _library.compiler()
    result = ctypes.c_void_p()
    check(library, function(*arguments, ctypes.byref(result)), **options)
    try:
        return ctypes.string_at(library.mtc_result_data(result), library.mtc_result_size(result))
    finally:
        library.mtc_result_free(result)


def write_atomically(path: Path, data: bytes) -> None:
    """A file that is there as a whole or not at all."""
    path = pathlib.Path(path)
    try:
        holder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # With the permissions that new files have: to ask for the umask would be to change it, for all threads.
            _files.write(holder, path.name, data, 0o666)
        finally:
            os.close(holder)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None


def load(path: Path) -> Plan:
    """Reads a plan file, which `plan.save` or `mtc compile` wrote, and verifies it.

    Raises:
        FileError: it cannot be read.
        CorruptError: it is damaged, or of another version.
    """
    return Plan(_read(path))


def _read(path: Path) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot open {os.fspath(path)}: {error.strerror}") from None
