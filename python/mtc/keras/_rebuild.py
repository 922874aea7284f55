# SPDX-License-Identifier: Apache-2.0
"""A model of another back end than JAX: a process of its own loads the saved model on JAX, and traces it."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
from typing import Any, Union

from mtc._errors import ModelError
from mtc.keras import _model, _saved
from mtc.keras._example import Example
from mtc.keras._request import Result

SECONDS = 600
_known: dict[str, Result] = {}  # what the process found, by what it was given


def trace(model: Any, example: Example, check: Union[bool, str], rate: bool, drop: bool) -> Result:
    """The text of a model, made and checked by another process."""
    description = _saved.describe(model)
    options = {"check": check, "rate": rate, "drop": drop}
    key = "\n".join([description, repr(example), repr(options)])
    if key not in _known:
        _known[key] = _run(model, example, options)
    return _known[key]


def _run(model: Any, example: Example, options: dict[str, Any]) -> Result:
    if not model.built:
        raise ModelError(f"{model.name}: expected a built model: call it on a batch, or model.build()")
    with tempfile.TemporaryDirectory(prefix="mtc-") as name:
        folder = pathlib.Path(name)
        try:
            model.save(folder / "model.keras")
        except (NotImplementedError, TypeError, ValueError) as error:
            raise ModelError(f"{model.name}: cannot be saved, as it must be to go to JAX: {error}") from None
        paths = _model.unique_paths(model.variables)
        given = {"example": example, "paths": paths, "modules": _modules(model), **options,
                 "backend": _model.keras().backend.backend()}
        (folder / "given").write_bytes(pickle.dumps(given))
        environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-m", "mtc.keras._rebuilt", name], env=environment, text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        if not (folder / "result").exists():
            raise ModelError(f"{model.name}: the process that traces it on JAX failed: {done.stderr.strip()[-2000:]}")
        result: Union[Result, str] = pickle.loads((folder / "result").read_bytes())
    if isinstance(result, str):
        raise ModelError(result.replace(name + "/", ""))
    return result


def _modules(model: Any) -> list[str]:
    """Modules whose import registers the model's own classes."""
    found = {type(layer).__module__ for layer in [model, *model._flatten_layers()]}
    return sorted(name for name in found if name.split(".")[0] != "keras")
