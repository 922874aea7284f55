# SPDX-License-Identifier: Apache-2.0
"""Scripts of Keras as they are: `fit`, `evaluate`, `predict` and the `_on_batch` methods run through MTC.

    import mtc.keras
    mtc.keras.install()

or, without a changed line:

    python -m mtc.keras [--strict] [--devices DEVICES] SCRIPT [ARGUMENT...]

A model that MTC cannot compile, or data that it cannot read, runs in Keras, and one warning for each model says why.
"""

from mtc.keras._columns import save_columns as save_columns
from mtc.keras._install import install as install
from mtc.keras._install import main as main
from mtc.keras._install import summary as summary
from mtc.keras._install import uninstall as uninstall

__all__ = ["install", "main", "save_columns", "summary", "uninstall"]
