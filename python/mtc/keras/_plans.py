# SPDX-License-Identifier: Apache-2.0
"""The plan of a live model: of its file, or of a trace where the importer of files refuses it."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, Mapping, Optional, Union

from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._structure import Structure
from mtc.keras import _compile, _saved
from mtc.keras._example import flat
from mtc.keras._model import keras, own_methods, structure
from mtc.keras._request import Request

_PAGE = "docs/keras-traces.md"


def compile_live(model: Any, settings: dict[str, Any], verbose: Union[int, str], request: Request, *,
                 cache: bool = True, with_weights: bool, by: Optional[str] = None,
                 of_file: Optional[Mapping[str, Any]] = None, description: Optional[str] = None,
                 drop: bool = False) -> tuple[Plan, Structure]:
    """The plan of a model, and how the caller's data becomes that of the plan.

    Without its weights the plan's are anybody's: whoever uses it sets them. `by`: "file" or "trace"; None: the file,
    and a trace where that is refused. `of_file`: settings that a trace does not need. `drop`: leaves out metrics,
    with a warning each, where the model cannot be compiled with all of them.

    Raises:
        ModelError: neither way is possible.
    """
    def compiled(more: Mapping[str, Any]) -> tuple[Plan, Structure]:
        return _compile_either(model, {**settings, **more}, verbose, request, cache, with_weights, by, of_file,
                               description)

    try:
        return compiled({})
    except ModelError:
        if not drop or settings.get("drop_unsupported_metrics") or getattr(model, "_compile_metrics", None) is None:
            raise
        with contextlib.suppress(ModelError):
            return compiled({"drop_unsupported_metrics": 1})
        raise


def _compile_either(model: Any, settings: dict[str, Any], verbose: Union[int, str], request: Request, cache: bool,
                    with_weights: bool, by: Optional[str], of_file: Optional[Mapping[str, Any]],
                    description: Optional[str]) -> tuple[Plan, Structure]:
    if by not in (None, "file", "trace"):
        raise ModelError(f"expected by of file or trace, found {by}")
    own = own_methods(model, ("train_step", "compute_loss", "compute_metrics"))
    if "train_step" in own and keras().backend.backend() != "jax":
        raise ModelError(f"{model.name}: expected Keras' own train_step, found one of {type(model).__name__}, which "
                         "can be traced on the JAX back end alone")
    reason = f"{model.name}: {type(model).__name__} has its own {' and '.join(own)}" if own else ""
    reason = reason or _own_function(model, settings)
    if reason and by == "file":
        raise ModelError(f"{reason}: a trace takes Python code ({_PAGE})")
    if by != "trace" and not reason:
        try:
            plan = _saved.plan_of(model, {**settings, **(of_file or {})}, verbose, cache, with_weights, description)
            return plan, structure(model, plan)
        except ModelError as error:
            if by == "file":
                raise
            reason = str(error)
    try:
        return _compile.compile(model, request, settings, verbose, cache, with_weights)
    except ModelError as error:
        if not reason or by or str(error) == reason:  # which then is about the options
            raise
        lines = [line for line in reason.splitlines() if not (": note: a trace supports " in line and _PAGE in line)]
        raise ModelError("\n".join([f"{error}\nnor is it read as a file: {lines[0]}", *lines[1:]])) from None


def _own_function(model: Any, settings: Mapping[str, Any]) -> str:
    """That a loss or metric is a function of the caller's: a file has its name alone, which may be one of Keras'."""
    compiled = getattr(model, "_compile_metrics", None)
    given = [] if settings.get("loss") else [getattr(model, "loss", None)]
    if not settings.get("metrics"):
        given += [getattr(compiled, name, None) for name in ("_user_metrics", "_user_weighted_metrics")]
    for _, function in (part for each in given for part in flat(each)):
        module = str(getattr(function, "__module__", ""))
        if inspect.isfunction(function) and module.split(".")[0] != "keras":
            return (f"{model.name}: expected losses and metrics of Keras, found the function {function.__name__} of "
                    f"{module}")
    return ""
