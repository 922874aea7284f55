# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules through MTC: traced by torch.export, compiled ahead of time, trained to the same bits on any devices.

    import mtc.torch
    step = mtc.torch.compile(model, example=(images, labels), loss=torch.nn.functional.cross_entropy,
                             optimizer=torch.optim.AdamW(model.parameters(), 1e-3), batch_size=64)
    step.fit(loader, epochs=10)                # the model and the optimizer then have the trained state

docs/pytorch.md has the modules that were tested, and what is refused.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mtc.torch._compile import compile as compile
from mtc.torch._step import Step as Step
from mtc.torch._whole import DeviceArray as DeviceArray
from mtc.torch._whole import WholeStep as WholeStep
from mtc.torch._whole import step as step

if TYPE_CHECKING:
    from mtc.torch._lightning import Strategy as Strategy
    from mtc.torch._trainer import Trainer as Trainer

__all__ = ["DeviceArray", "Step", "Strategy", "Trainer", "WholeStep", "compile", "step"]

_HOMES = {"Strategy": "_lightning", "Trainer": "_trainer"}


def __getattr__(name: str) -> Any:
    """`Trainer` and `Strategy` when they are asked for, since they need transformers and Lightning."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"mtc.torch.{_HOMES[name]}"), name)
