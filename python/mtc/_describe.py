# SPDX-License-Identifier: Apache-2.0
"""What the compiler tells besides plans: summaries, `mt` text, stages, versions."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import tempfile
from typing import Any, Iterator, Optional

from mtc import _library, _options, _structs
from mtc._errors import Error, ModelError
from mtc._options import in_python
from mtc._plan import take_result
from mtc.keras import _model, _saved


@contextlib.contextmanager
def _file(model: Any) -> Iterator[tuple[bytes, str]]:
    """The path of a model's file, and what is left out of messages: a Keras model is saved for that time."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fsencode(model), ""
        return
    _model.check_model(model, compiled=False)
    with tempfile.TemporaryDirectory(prefix="mtc-") as folder:
        path = pathlib.Path(folder) / f"{_saved.file_name(model)}.keras"
        _saved.save(model, str(path))
        yield os.fsencode(path), folder + "/"


def _fields(batch_size: int, options: dict[str, Any]) -> Any:
    return _structs.sized(_structs.CompileOptions, **_options.encoded(_options.fields(batch_size, options)))


def summary(model: Any, *, batch_size: int = 32, **options: Any) -> str:
    """A table of a model's layers: output shapes, parameters, FLOPs and bytes of a sample's forward pass, totals.

    Args:
        model: as of `mtc.compile`. A Keras model need not be compiled if `loss` and `optimizer` are given.
        batch_size: as of `mtc.compile`.
        options: as of `mtc.compile`.
    """
    with _file(model) as (path, strip):
        return take_result(_library.compiler().mtc_summary_file, path, _fields(batch_size, options),
                           invalid=ModelError, strip=strip, spell=in_python).decode(errors="replace")


def import_model(model: Any, *, batch_size: int = 32, **options: Any) -> tuple[str, Optional[bytes]]:
    """A model as `mt` text, and its weights as the bytes of a `.safetensors` file; None: it has none.

    `mtc.compile_text` takes the text, and a file of these bytes as its option `weights`.

    Args:
        model: as of `mtc.compile`.
        batch_size: as of `mtc.compile`.
        options: as of `mtc.compile`.
    """
    library = _library.compiler()
    weights = ctypes.c_void_p()
    with _file(model) as (path, strip):
        text = take_result(lambda *given: library.mtc_import_file(*given, ctypes.byref(weights)), path,
                           _fields(batch_size, options), invalid=ModelError, strip=strip,
                           spell=in_python).decode(errors="replace")
    if not weights:
        return text, None
    try:
        return text, ctypes.string_at(library.mtc_result_data(weights), library.mtc_result_size(weights))
    finally:
        library.mtc_result_free(weights)


def stages() -> dict[str, str]:
    """The stages of the compiler in their order, and what each does."""
    library = _library.compiler()
    found: dict[str, str] = {}
    while (name := library.mtc_stage_name(len(found))) is not None:
        found[name.decode()] = library.mtc_stage_help(len(found)).decode()
    return found


def lower(model: Any, stage: str, *, batch_size: int = 32, **options: Any) -> str:
    """The MLIR text of a model after a stage of the compiler, as `mtc compile --stop-after` prints it.

    Args:
        model: as of `mtc.compile`.
        stage: one of `mtc.stages()`.
        batch_size: as of `mtc.compile`.
        options: as of `mtc.compile`.
    """
    settings = _fields(batch_size, options)
    settings.stop_after = stage.encode()
    with _file(model) as (path, strip):
        return take_result(_library.compiler().mtc_compile_file, path, settings, invalid=ModelError,
                           strip=strip, spell=in_python).decode(errors="replace")


def versions() -> dict[str, str]:
    """The versions of the libraries that are loaded: "mtrun", and "mtc" where the compiler is installed."""
    found = {"mtrun": _library.runtime().mtrun_version().decode()}
    with contextlib.suppress(Error):
        found["mtc"] = _library.compiler().mtc_version().decode()
    return found
