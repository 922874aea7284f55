# SPDX-License-Identifier: Apache-2.0
"""What the process of `_rebuild` runs, on Keras' JAX back end."""

from __future__ import annotations

import functools
import importlib
import pathlib
import pickle
import sys
from typing import Any

from mtc._errors import ModelError
from mtc.keras import _kinks, _model, _on_jax
from mtc.keras._request import Result


def _main(folder: pathlib.Path) -> None:
    given = pickle.loads((folder / "given").read_bytes())
    result: Any
    try:
        for name in given["modules"]:
            if name != "__main__":
                importlib.import_module(name)
        try:
            model = _model.keras().saving.load_model(folder / "model.keras")
        except Exception as error:  # noqa: BLE001 - Keras raises any
            own = " and ".join(given["modules"]) or "the script"
            raise ModelError(f"cannot be loaded on JAX: {error}\nexpected classes that can be imported, or that "
                             f"keras.saving.register_keras_serializable registers when {own} is imported: those of a "
                             "script that runs are not") from None
        _kinks.follow(given["backend"])
        made = _on_jax.trace(model, given["example"], given["rate"], given["drop"], given["paths"],
                             given["check"] == "full")
        line = made.check() if given["check"] else "not checked"
        result = Result(made.text, made.names, functools.partial(str, line), made.dropped, made.variables)
    except ModelError as error:
        result = str(error)
    (folder / "result").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    _main(pathlib.Path(sys.argv[1]))
