# SPDX-License-Identifier: Apache-2.0
"""The loops of the library for a session: whole epochs, and means over a dataset."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

from mtc import _library, _structs
from mtc._dataset import Dataset
from mtc._errors import DataError, check
from mtc._html import history_curves
from mtc._interrupt import Interrupt, guarded
from mtc._profile import Logs

if TYPE_CHECKING:
    from mtc._session import Session

Checkpoint = Union[str, "os.PathLike[str]", Mapping[str, Any]]

# What `Session.fit` sets itself.
_OURS = {"struct_size", "progress", "progress_user", "stop", "stop_user", "note", "note_user", "result", "epoch_begin",
         "validation", "checkpoint", "no_shuffle", "epochs", "in_flight"}


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a loop is.

    Attributes:
        epoch: the epoch, from 0.
        epochs: number of epochs.
        step: steps done in this epoch.
        steps: number of steps in it; 0: unknown.
        seconds: since the epoch began.
        logs: means of the losses and metrics over the epoch so far.
        step_logs: what this step alone computed; empty after a validation.
        learning_rate: of this step; None: the plan does not tell.
        total_step: steps since the run began, those before a resume included.
        input_wait: seconds of `seconds` in which the devices waited for data.
        epoch_end: the last call of an epoch.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    seconds: float
    logs: Logs
    step_logs: Logs
    learning_rate: Optional[float]
    total_step: int
    input_wait: float
    epoch_end: bool


@dataclasses.dataclass
class FitResult:
    """How a fit ended.

    Attributes:
        history: the losses and metrics of each epoch of this call, by name; those of a validation begin with `val_`.
        stopped: by the callback or Ctrl-C, before the end of the last epoch.
        saved: the last step is in a checkpoint.
        epochs: complete epochs, those before a resume included.
        total_step: steps since the run began.
        input_wait: part of the training time in which the devices waited for data, 0 to 1.
        seconds: of training, in this call.
        stopped_early: early stopping ended the run, now or before it was resumed.
        notes: what was resumed, changed or stopped.
    """

    history: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    stopped: bool = False
    saved: bool = False
    epochs: int = 0
    total_step: int = 0
    input_wait: float = 0.0
    seconds: float = 0.0
    stopped_early: bool = False
    notes: list[str] = dataclasses.field(default_factory=list)

    def _repr_html_(self) -> str:
        longest = max((len(values) for values in self.history.values()), default=0)
        return history_curves(list(range(longest)), self.history)


def checkpoint_options(given: Optional[Checkpoint], resume: Union[None, bool, str]) -> Any:
    """mtrun_checkpoint_options, or None without any."""
    if resume is True:
        resume = "auto"
    if given is None and not resume:
        return None
    if isinstance(given, (str, os.PathLike)) and not os.fspath(given):
        raise DataError("expected a folder for checkpoints, found an empty name")
    fields = dict(given) if isinstance(given, Mapping) else {"folder": given}
    known = {name for name, *_ in _structs.CheckpointOptions._fields_} - {"struct_size", "resume"}
    if set(fields) - known:
        raise DataError(f"expected checkpoint options of {', '.join(sorted(known))}, "
                        f"found {', '.join(sorted(set(fields) - known))}")
    folder = fields.pop("folder", None)
    return _structs.sized(_structs.CheckpointOptions, folder=os.fsencode(folder) if folder is not None else None,
                          resume=os.fsencode(resume) if resume else None, **fields)


def fit(session: Session, data: Dataset, validation: Optional[Dataset], epochs: int, shuffle: bool,
        checkpoint: Any, callback: Optional[Callable[[Progress], Any]], options: Mapping[str, Any],
        on_epoch: Optional[Callable[[Progress], None]] = None) -> FitResult:
    """`Session.fit` of opened data. `on_epoch` is called at the end of each epoch, and costs nothing in between."""
    library = _library.runtime()
    result, ended = FitResult(), _structs.FitResult()
    errors: list[BaseException] = []
    interrupt = Interrupt()

    def progress(_user: Optional[int], pointer: Any) -> int:
        p = pointer.contents
        if callback is None and not p.epoch_end:
            return int(interrupt.asked)
        seen = _progress(p)
        if seen.epoch_end:
            for name, value in seen.logs.items():
                result.history.setdefault(name, []).append(value)
            if on_epoch is not None:
                on_epoch(seen)
        stop = callback is not None and callback(seen)
        return int(bool(stop) or interrupt.asked)

    def note(_user: Optional[int], text: bytes) -> None:
        result.notes.append(text.decode(errors="replace"))

    kept = [_structs.ProgressCallback(guarded(progress, errors)), _structs.LineCallback(note),
            _structs.StopCallback(lambda _user: int(interrupt.asked))]
    settings = _structs.sized(
        _structs.LoopOptions, epochs=epochs, no_shuffle=int(not shuffle), progress=kept[0], note=kept[1], stop=kept[2],
        validation=validation.handle if validation is not None else None, in_flight=int(callback is None),
        checkpoint=ctypes.pointer(checkpoint) if checkpoint is not None else None, result=ctypes.pointer(ended),
        **_fields(options))
    with interrupt.caught():
        with session._use("fit") as handle, interrupt.breaking():
            check(library, library.mtrun_fit(handle, data.handle, ctypes.byref(settings)))
        if errors:
            raise errors[0]
    for name, *_ in ended._fields_:
        if name in ("stopped", "saved", "stopped_early"):
            setattr(result, name, bool(getattr(ended, name)))
        elif hasattr(result, name):
            setattr(result, name, getattr(ended, name))
    return result


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Other fields of mtrun_loop_options by their names."""
    kinds = {name: kind for name, kind, *_ in _structs.LoopOptions._fields_ if name not in _OURS}
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name not in kinds:
            raise TypeError(f"expected an option of Session.fit ({', '.join(sorted(kinds))}), found {name}")
        if value is None:
            continue
        if kinds[name] is ctypes.c_char_p:
            if not isinstance(value, (str, os.PathLike)):
                raise TypeError(f"expected {name} to be a text, found {value!r}")
            fields[name] = os.fsencode(value)
        elif not isinstance(value, (int, float)):
            raise TypeError(f"expected {name} to be a number, found {value!r}")
        elif issubclass(kinds[name], ctypes._Pointer):
            fields[name] = ctypes.pointer(ctypes.c_double(value))
        else:
            fields[name] = float(value) if kinds[name] is ctypes.c_double else int(value)
    return fields


def _progress(p: Any) -> Progress:
    names = [p.names[i].decode() for i in range(p.metrics)]
    step = dict(zip(names, p.step_values[: len(names)])) if p.step_values else {}
    return Progress(p.epoch, p.epochs, p.step, p.steps, p.seconds, dict(zip(names, p.values[: len(names)])), step,
                    None if math.isnan(p.learning_rate) else p.learning_rate, p.total_step, p.input_wait,
                    bool(p.epoch_end))


def evaluate(session: Session, data: Dataset, steps: Optional[int], allow_nan: bool) -> Logs:
    """Means over a dataset, by name; `steps`: of its first batches."""
    library = _library.runtime()
    names = session.plan.metrics("eval_step")
    values = (ctypes.c_double * max(len(names), 1))()
    interrupt = Interrupt()

    def progress(_user: Optional[int], pointer: Any) -> int:
        # Several processes evaluate the same number of steps: an interrupt waits for the end.
        stop = interrupt.asked and session._processes == 1
        return int(stop or (steps is not None and pointer.contents.step >= steps))

    callback = _structs.ProgressCallback(progress)
    options = _structs.sized(_structs.LoopOptions, progress=callback, allow_nan=int(allow_nan), in_flight=1)
    with interrupt.caught(), session._use() as handle:
        check(library, library.mtrun_evaluate(handle, data.handle, ctypes.byref(options), values))
    return dict(zip(names, values))
