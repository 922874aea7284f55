# SPDX-License-Identifier: Apache-2.0
"""The plan that the importer of files makes of a live model, which is saved for it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import sys
from typing import Any, Iterable, Iterator, Optional, Union

import numpy as np

from mtc import _cache, _compile, _library, _options, _private
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc.keras._match import canonical, sequentials
from mtc.keras._model import check_model, inner_optimizer, keras, value_of

_refused: dict[str, str] = {}  # why models of a description are not read as files


def plan_of(model: Any, settings: dict[str, Any], verbose: Union[int, str], cache: bool, with_weights: bool,
            description: Optional[str]) -> Plan:
    """The plan that the importer of files makes."""
    check_model(model, compiled=not settings.get("loss"))
    settings = {"kinks": keras().backend.backend(), **_undecayed(model), **settings}
    kind = _cache.key(description or describe(model), settings)
    if kind in _refused:
        raise ModelError(_refused[kind])
    try:
        return _saved(model, settings, verbose, cache, with_weights, description)
    except ModelError as error:
        _refused[kind] = str(error)
        raise


def _saved(model: Any, settings: dict[str, Any], verbose: Union[int, str], cache: bool, with_weights: bool,
           description: Optional[str]) -> Plan:
    parts: list[Any] = [description or describe(model), _options.identity(settings), _library.compiler_identity(),
                        bool(with_weights)]
    if with_weights:
        digest = hashlib.blake2b()
        for variable in [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", [])]:
            digest.update(np.ascontiguousarray(value_of(variable)).data)
        parts.append(digest.hexdigest())
    name = file_name(model)
    return _compile.cached(_cache.key(*parts),
                           lambda: _compile.compile_saved(functools.partial(save, model), name, settings,
                                                          verbose), cache)


def _undecayed(model: Any) -> dict[str, Any]:
    """What `exclude_from_weight_decay` said of the optimizer, which Keras does not save."""
    optimizer = inner_optimizer(model) if getattr(model, "optimizer", None) is not None else None
    if optimizer is None or not getattr(optimizer, "weight_decay", None) or not hasattr(optimizer, "_use_weight_decay"):
        return {}
    names = {name for variable, name in _named(model, sequentials(model), "")
             if not optimizer._use_weight_decay(variable)}
    return {"no_weight_decay": ",".join(sorted(names))} if names else {}


def _named(model: Any, left_out: set[str], scope: str) -> Iterable[tuple[Any, str]]:
    """Trainable variables with their names in a saved model: a Sequential's begin with its name."""
    scope += model.name + "/" if isinstance(model, keras().Sequential) else ""
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _named(layer, left_out, scope)
        else:
            for variable in layer.trainable_variables:
                yield variable, scope + canonical(variable.path, left_out)


@contextlib.contextmanager
def _without_tensorflow() -> Iterator[None]:
    """Keras does not import TensorFlow meanwhile, which takes seconds.

    It asks for the types of TensorFlow when it writes a model. Where nobody has imported it, nothing has such a type.
    """
    lazy = _private.keras_tensorflow()
    unknown = "tensorflow" not in sys.modules and getattr(lazy, "_available", False) is None
    try:
        if unknown:
            lazy._available = False
        yield
    finally:
        if unknown:
            lazy._available = None


def file_name(model: Any) -> str:
    """What the file of a model is called, without its extension."""
    return re.sub(r"[^\w.-]", "_", str(model.name)) or "model"


def save(model: Any, path: str) -> None:
    """Saves a model; ModelError where Keras cannot."""
    try:
        with _without_tensorflow():
            model.save(path)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise _not_saved(model, error) from None


def _not_saved(model: Any, error: Exception) -> ModelError:
    return ModelError(f"{model.name}: expected a model that can be saved, found one that cannot: "
                      f"{' '.join(str(error).split()) or type(error).__name__}")


def describe(model: Any) -> str:
    """The model's configuration, with that of its training: what its plan depends on besides variables.

    The learning rate is one of these, unless a schedule gives it.
    """
    try:
        with _without_tensorflow():
            config = json.loads(model.to_json())
    except (NotImplementedError, TypeError, ValueError) as error:
        raise _not_saved(model, error) from None
    optimizer = (config.get("compile_config") or {}).get("optimizer")
    while isinstance(optimizer, dict) and isinstance(optimizer.get("config"), dict):
        settings = optimizer["config"]
        if isinstance(settings.get("learning_rate"), (int, float)):
            settings["learning_rate"] = None
        optimizer = settings.get("inner_optimizer")
    return json.dumps(config)
