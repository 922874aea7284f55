# SPDX-License-Identifier: Apache-2.0
"""`mtc.compile` and `mtc.compile_text`."""

from __future__ import annotations

import functools
import os
import pathlib
from typing import Any, Mapping, Optional, Union

from mtc import _compile, _headers, _options
from mtc._plan import Plan
from mtc.keras import _model, _plans
from mtc.keras._example import Example, build
from mtc.keras._request import Request


@_headers.documented("mtc_options", without=_options.OWN)
def compile(model: Any, *, batch_size: int = 32, target: Optional[str] = None, precision: Optional[str] = None,
            shards: int = 0, seed: int = 0, mode: str = "exact", verbose: Union[int, str] = "auto",
            cache: bool = True, by: Optional[str] = None, example: Any = None, check: Union[bool, str] = True,
            **options: Any) -> Plan:
    """Compiles a model into a plan.

    Args:
        model: a Keras model, compiled and built; or the path of a `.keras`, `.json`, `.onnx` or `.mlir` file. The
            plan of a Keras model starts with its weights and the state of its optimizer.
        batch_size: the global batch: samples of a training step, on all devices together.
        target: "cpu" (None), "cpu,cuda", "cuda:sm_90": for which devices.
        precision: "f32", "tf32", "bf16", "f16", or one of Keras' names. None: as the model's dtype policies say.
        shards: slices of the batch, a power of two, and the largest number of devices. 0: 8, or the largest power of
            two that is at most `batch_size`.
        seed: of the initial values and of random numbers; 0: 1.
        mode: "exact": the same bits on any number of devices. "fast": without that promise.
        verbose: 0: silent; else a line on standard error if it takes more than a second.
        cache: False: compiles again, and keeps nothing.
        by: "file": a Keras model is read as its file; "trace": it is traced on Keras' JAX back end; None: the file, and
            a trace where that is refused.
        example: x, (x, y) or (x, y, sample_weight), a few samples, for the trace of a model that does not know its
            inputs or targets.
        check: compares what Keras and MTC make of the example, and of batches that are made of it, while the plan of a
            trace is compiled. "full": of all of them, however long it takes. False: compares nothing.
        options: other fields of `mtc_options`.

    Returns:
        The plan, from the cache if the same was compiled before.

    Raises:
        ModelError: the model cannot be compiled; the text has a line for each problem.
        OutOfMemoryError: it fits on no number of devices with `device_memory`.
    """
    settings = _options.fields(batch_size, {"target": target, "precision": precision, "shards": shards, "seed": seed,
                                            "mode": mode, **options})
    if isinstance(model, (str, os.PathLike)):
        path = pathlib.Path(model)
        # Files are compiled each time: what they refer to, such as weights, may have changed.
        return Plan(_compile.compile_file(path, settings, verbose))

    given = example if isinstance(example, tuple) else () if example is None else (example,)
    weighted = bool(settings.get("sample_weights"))
    if given:
        build(model, given[0])
    _model.check_model(model, compiled=not settings.get("loss"))
    request = Request(functools.partial(Example.of, *given, weighted=weighted) if given else None, weighted, check)
    return _plans.compile_live(model, settings, verbose, request, cache=cache, with_weights=True, by=by)[0]


def compile_text(text: str, *, name: str = "model", weights: Optional[Mapping[str, Any]] = None, batch_size: int = 32,
                 verbose: Union[int, str] = "auto", **options: Any) -> Plan:
    """Compiles a model that is written as `mt` text (docs/ir.md).

    Args:
        text: the text.
        name: what messages call it.
        weights: arrays that variables start with, by name; the others start as the text says.
        batch_size: this and the others as of `mtc.compile`.
    """
    return Plan(_compile.plan_of_text(text, name, _options.fields(batch_size, options), verbose, weights))
