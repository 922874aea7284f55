# SPDX-License-Identifier: Apache-2.0
"""PyTorch, imported by its name, so that types are checked where it is not installed."""

from __future__ import annotations

import importlib
from typing import Any

from mtc._trace import reals
from mtc._versions import warn_if_newer

warn_if_newer("torch")
torch: Any = importlib.import_module("torch")
aten: Any = torch.ops.aten
attention: Any = importlib.import_module("torch.nn.attention")
dispatch: Any = importlib.import_module("torch.utils._python_dispatch")
pytree: Any = importlib.import_module("torch.utils._pytree")


def real_dtype() -> Any:
    """The type of the numbers that a trace computes with now."""
    return torch.float64 if reals.double() else torch.float32
