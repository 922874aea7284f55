# SPDX-License-Identifier: Apache-2.0
"""Evaluation and prediction of live Keras models."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from typing import Any, Mapping, Optional, Union

import numpy as np

from mtc import _cache, _library, _options, _structs
from mtc._checks import optional
from mtc._data import Arrays, Batches, is_stream
from mtc._dataset import Dataset
from mtc._errors import Error, ModelError, check
from mtc._interrupt import guarded
from mtc._plan import Plan
from mtc._process import own_verbosity
from mtc._session import Session
from mtc._structure import Structure
from mtc.keras import _model, _plans, _saved
from mtc.keras._callbacks import Caller, Logs, call_each
from mtc.keras._example import Example, build, weighs_parts
from mtc.keras._left_out import LeftOut
from mtc.keras._names import Names
from mtc.keras._request import Request
from mtc.keras._window import Window

# The last plan of a configuration: evaluation takes it, whatever its batch is.
_last: dict[str, tuple[str, Plan, Structure]] = {}


def plan_for(model: Any, batch_size: Optional[int], sample_weights: bool, verbose: Union[int, str],
             example: tuple[Any, ...], by: Optional[str] = None, check: bool = True,
             of_file: Optional[Mapping[str, Any]] = None, drop: bool = True,
             **options: Any) -> tuple[Plan, Structure]:
    """The plan to train, evaluate or predict a model with, whose variables are to be set; and the data's structure.

    `example`: the caller's x, or x and y, or x, y and sample_weight. `drop`: metrics that MTC does not have are left
    out, with a warning.
    """
    _model.check_model(model, compiled=not of_file)
    wide = len(example) > 2 and weighs_parts(example[2])
    by = by or ("trace" if wide else None)
    options = {name: value for name, value in options.items() if value not in (None, 0)}
    description = _description(model)
    kind = _cache.key(description or id(model), sample_weights, wide, by, options, of_file, drop)
    if batch_size is None:  # any will do
        known = _last.get("plan")
        if known is not None and known[0] == kind:
            if description is not None and known[2].pack is None:
                return known[1], known[2]
            batch_size = known[1].batch_size
    settings = _options.for_this_cpu(_options.fields(batch_size or 32, {**options, "sample_weights": sample_weights}))
    request = Request(functools.partial(Example.like_last, model, *example, weighted=sample_weights), sample_weights,
                      check)
    plan, structure = _plans.compile_live(model, settings, verbose, request, with_weights=False, by=by,
                                          of_file=of_file, description=description, drop=drop)
    _last["plan"] = (kind, plan, structure)
    return plan, structure


def _description(model: Any) -> Optional[str]:
    try:
        return _saved.describe(model)
    except ModelError:  # it cannot be saved, but perhaps be traced
        return None


def run_evaluation(session: Session, data: Dataset, caller: Caller, steps: Optional[int], allow_nan: bool,
                   stop: Any = None) -> Logs:
    """Losses and metrics over a dataset; tells callbacks of batches, and raises what they raise."""
    library = _library.runtime()
    given = session.plan.metrics("eval_step")
    names = Names(list(given))
    errors: list[BaseException] = []

    def progress(_user: Optional[int], pointer: Any) -> int:
        p = pointer.contents
        if caller.test or caller.draws() or p.epoch_end:
            logs = names.logs(p.values)
            call_each(caller.test, "on_test_batch_end", p.step - 1, logs)
            caller.draw("on_test_batch_end", p.step - 1, logs)
        ends = bool(p.epoch_end) or (steps is not None and p.step >= steps)
        if not ends:
            call_each(caller.test, "on_test_batch_begin", p.step)
        # Several processes evaluate the same number of steps: an interrupt waits for the end.
        return int(ends or bool(session._processes == 1 and stop and stop()))

    callback = _structs.ProgressCallback(guarded(progress, errors))
    options = _structs.sized(_structs.LoopOptions, progress=callback, allow_nan=int(allow_nan),
                             in_flight=int(not caller.test))
    values = (ctypes.c_double * max(len(given), 1))()
    call_each(caller.test, "on_test_batch_begin", 0)
    with session._use() as handle:
        check(library, library.mtrun_evaluate(handle, data.handle, ctypes.byref(options), values))
    if errors:
        raise errors[0]
    return names.logs(values)


def steps_of(data: Union[Arrays, Batches], batch: int, asked: Optional[int]) -> Optional[int]:
    """Steps of a pass; None: unknown."""
    if asked is not None:
        return int(asked)
    return math.ceil(data.count / batch) if isinstance(data, Arrays) else data.count


def evaluate(model: Any, x: Any = None, y: Any = None, batch_size: Optional[int] = None,
             verbose: Union[int, str] = "auto", sample_weight: Any = None, steps: Optional[int] = None,
             callbacks: Any = None, return_dict: bool = False, *, devices: Optional[str] = None,
             allow_nan: bool = False, **options: Any) -> Any:
    """The losses and metrics of a compiled Keras model, as `model.evaluate`.

    Args:
        model: a compiled Keras model.
        x: inputs [n, ...]: an array, a list or dict of arrays, or an iterable of batches (x, y, sample_weight).
        y: targets [n, ...], likewise.
        batch_size: samples of a step. None: that of the model's last plan, else 32; the result does not depend on it.
        verbose: 0, 1, 2 or "auto".
        sample_weight: weights [n].
        steps: batches to take; None: all.
        callbacks: of Keras.
        return_dict: a dict of the values by name, in place of a list.
        devices: as of `mtc.Session`.
        allow_nan: takes values that are not finite.
        options: as of `mtc.compile`.

    Returns:
        The loss, or a list of the loss and the metrics, or a dict.
    """
    optional("batch_size", batch_size, 1)
    optional("steps", steps, 1)
    _model.refuse_own(model, "test_step")
    batches = Batches(x) if is_stream(x) else None
    build(model, batches.first_inputs() if batches else x)
    weighted = sample_weight is not None or (batches is not None and batches.has_weights)
    example = batches.first() if batches else (x, y, sample_weight)
    plan, structure = plan_for(model, batch_size or (batches.batch_size if batches else None), weighted, verbose,
                               example, **options)
    data = batches or Arrays(structure.bind(x, y, sample_weight))
    caller = Caller(model, callbacks, own_verbosity(verbose), 1, steps_of(data, plan.batch_size, steps))
    with Session(plan, devices) as session:
        dataset = data.open(plan, structure)
        try:
            caller.list.on_test_begin()
            Window(model, session).push()
            logs = run_evaluation(session, dataset, caller, steps, allow_nan)
            logs.update(LeftOut(model, plan, structure).values(session, data, steps))
            caller.list.on_test_end(logs)
        except Error:
            raise_own(data)
            raise
        finally:
            dataset.close()
    return _model.returned(model, plan, logs, return_dict)


def raise_own(*sources: Any) -> None:
    """What the caller's generator raised goes before the library's account of it."""
    for source in sources:
        if isinstance(source, Batches) and source.error is not None:
            raise source.error from None


def predict(model: Any, x: Any, batch_size: Optional[int] = None, verbose: Union[int, str] = "auto",
            steps: Optional[int] = None, callbacks: Any = None, *, devices: Optional[str] = None,
            **options: Any) -> Any:
    """The outputs of a Keras model, as `model.predict`. The model need not be compiled.

    Args:
        model: a Keras model.
        x: inputs [n, ...]: an array, a list or dict of arrays, or an iterable of batches.
        batch_size: samples of a step. None: that of the model's last plan, else 32.
        verbose: 0, 1, 2 or "auto".
        steps: batches to take; None: all.
        callbacks: of Keras.
        devices: as of `mtc.Session`.
        options: as of `mtc.compile`.

    Returns:
        Arrays [n, ...] in the structure of the model's outputs.
    """
    optional("batch_size", batch_size, 1)
    optional("steps", steps, 1)
    _model.refuse_own(model, "predict_step")
    build(model, x)
    _model.check_model(model, compiled=False)
    # A plan has a loss.
    of_file = {} if model.compiled else {"loss": "mean_squared_error", "optimizer": "sgd"}
    stream = is_stream(x)
    parts = list(itertools.islice(Batches(x).inputs(), steps)) if stream else [x]
    plan, structure = plan_for(model, batch_size, False, verbose, (parts[0],), of_file=of_file, **options)
    bound = [structure.bind(part, None, None) for part in parts]
    names = [t.name for t in plan.inputs]
    data = Arrays({name: np.concatenate([np.asarray(b[name]) for b in bound]) if len(bound) > 1 else bound[0][name]
                   for name in names})
    rows = data.count if steps is None or stream else min(data.count, steps * plan.batch_size)
    caller = Caller(model, callbacks, own_verbosity(verbose), 1, math.ceil(rows / plan.batch_size))
    outputs = {t.name: np.empty((rows, *t.shape[1:]), t.dtype) for t in plan.outputs}
    with Session(plan, devices) as session:
        caller.list.on_predict_begin()
        Window(model, session).push()
        for step, begin in enumerate(range(0, rows, plan.batch_size)):
            call_each(caller.predict, "on_predict_batch_begin", step)
            part = slice(begin, min(begin + plan.batch_size, rows))
            session.predict_into({n: a[part] for n, a in data.arrays.items()},
                                 {n: a[part] for n, a in outputs.items()})
            if caller.predict:
                logs = {"outputs": {n: a[part] for n, a in outputs.items()}}
                call_each(caller.predict, "on_predict_batch_end", step, logs)  # type: ignore[arg-type]
            if caller.draws() or part.stop == rows:
                caller.draw("on_predict_batch_end", step, None)
        caller.list.on_predict_end()
    return _model.output_like(model, outputs, structure)

