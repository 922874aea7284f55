# SPDX-License-Identifier: Apache-2.0
"""A strategy of Lightning whose training steps are those of a plan."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Optional

from mtc._errors import ModelError
from mtc.torch._compile import compile as compile_step
from mtc.torch._framework import torch
from mtc.torch._step import Step

strategies: Any = importlib.import_module("lightning.pytorch.strategies")


class _TrainingStep(torch.nn.Module):  # type: ignore[misc]
    """A module whose result is the loss of `training_step`; what it logs is noted.

    Attributes:
        logged: the names that the loss is logged by, with the other arguments of `log`.
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module
        self.logged: dict[str, dict[str, Any]] = {}

    def forward(self, *batch: Any, **named: Any) -> Any:
        values: dict[str, Any] = {}

        def log(name: str, value: Any, *_: Any, **options: Any) -> None:
            values[name], self.logged[name] = value, options

        self.logged.clear()
        self.module.__dict__["log"] = log  # for this call: a trace has no trainer
        try:
            found = self.module.training_step(named or (batch[0] if len(batch) == 1 else batch), 0)
        finally:
            del self.module.__dict__["log"]
        loss = found["loss"] if isinstance(found, Mapping) else found
        if other := [name for name, value in values.items() if value is not loss]:
            raise ModelError(f"expected a training_step that logs its loss alone, found {', '.join(other)}: log it in "
                             "validation_step")
        return loss


class Strategy(strategies.SingleDeviceStrategy):  # type: ignore[misc]
    """One process of Lightning; MTC computes loss, gradients, clipping and update of each step.

    `lightning.Trainer(strategy=mtc.torch.Strategy(devices="cpu:2"))`. The module's `training_step` is traced. Before a
    validation and a checkpoint the module and its optimizer get what the plan has.

    Attributes:
        step: the `mtc.torch.Step`; None before the first step.
    """

    def __init__(self, **options: Any) -> None:
        """`options`: of `mtc.torch.compile`."""
        super().__init__(device=torch.device("cpu"), accelerator=None)
        self.step: Optional[Step] = None
        self._options = options
        self._traced: Any = None
        self._behind = False

    def training_step(self, batch: Any, *_: Any, **__: Any) -> Any:
        """One step of the plan."""
        given = dict(batch) if isinstance(batch, Mapping) else tuple(batch)
        if self.step is None:
            self.step = self._compiled(given)
        loss = self.step.train_on_batch(given)["loss"]
        self._behind = True
        for name, options in self._traced.logged.items():
            self.lightning_module.log(name, loss, **options)
        return torch.tensor(loss, requires_grad=True)

    def backward(self, closure_loss: Any, *_: Any, **__: Any) -> Any:
        """Nothing: the step of the plan is the update, too, and the optimizer finds no gradients."""
        return closure_loss

    def _compiled(self, batch: Any) -> Step:
        trainer = self.lightning_module.trainer
        for wrong, what in ((len(self.optimizers) != 1, "one optimizer"),
                            (trainer.accumulate_grad_batches != 1, "accumulate_grad_batches=1, and micro_batches="),
                            (trainer.gradient_clip_algorithm not in (None, "norm"), "gradient_clip_algorithm=norm")):
            if wrong:
                raise ModelError(f"expected {what} for a plan of a Lightning module")
        self._traced = _TrainingStep(self.lightning_module)
        return compile_step(self._traced, batch, optimizer=self.optimizers[0],
                            **{"clip_norm": trainer.gradient_clip_val or None, **self._options})

    def synchronize(self) -> None:
        """Gives the module and the optimizer what the plan has."""
        if self.step is not None and self._behind:
            self.step.to_module()
            self._behind = False

    # The places at which Lightning reads or sets the module and the optimizer

    def validation_step(self, *args: Any, **kwargs: Any) -> Any:
        self.synchronize()
        return super().validation_step(*args, **kwargs)

    def lightning_module_state_dict(self) -> Any:
        self.synchronize()
        return super().lightning_module_state_dict()

    def optimizer_state(self, optimizer: Any) -> Any:
        self.synchronize()
        return super().optimizer_state(optimizer)

    def load_optimizer_state_dict(self, checkpoint: Any) -> None:
        super().load_optimizer_state_dict(checkpoint)
        self.step = None  # compiled again, from what was loaded

    def teardown(self) -> None:
        self.synchronize()
        super().teardown()
