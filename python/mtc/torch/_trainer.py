# SPDX-License-Identifier: Apache-2.0
"""A Trainer of transformers whose training steps are those of a plan."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Optional

from mtc._errors import ModelError
from mtc.torch._compile import compile as compile_step
from mtc.torch._framework import torch
from mtc.torch._step import Step

transformers: Any = importlib.import_module("transformers")


class _Counted(torch.nn.Module):  # type: ignore[misc]
    """A model whose loss is divided by the number of labels, as the Trainer counts them."""

    def __init__(self, model: Any, trainer: Any) -> None:
        super().__init__()
        self.model = model
        self._count: Callable[[Any], Any] = lambda batch: trainer._get_num_items_in_batch([batch], torch.device("cpu"))

    def forward(self, **batch: Any) -> Any:
        return self.model(**batch, num_items_in_batch=self._count(batch))


class Trainer(transformers.Trainer):  # type: ignore[misc]
    """transformers' Trainer; MTC computes loss, gradients, clipping and update of each step.

    Everything else is the Trainer's: data, schedules, logs, callbacks, checkpoints and evaluation, for which the model
    gets the weights of the plan. The plan is compiled in the first step. With gradient accumulation the batches of an
    update are one batch of the plan, computed in as many micro-batches.

    Attributes:
        step: the `mtc.torch.Step` of the training that runs or has ended; None before its first step.
    """

    def __init__(self, *args: Any, mtc: Optional[Mapping[str, Any]] = None, **kwargs: Any) -> None:
        """The arguments of transformers' Trainer.

        Args:
            mtc: arguments of `mtc.torch.compile`, such as {"devices": "cpu:2", "check": False}.

        Raises:
            ModelError: the arguments ask for what a plan does not do.
        """
        super().__init__(*args, **kwargs)
        self.step: Optional[Step] = None
        self._options = dict(mtc or {})
        self._waiting: list[Mapping[str, Any]] = []  # batches of the update that is being accumulated
        self._behind = False  # the module has not what the plan has
        for wrong, what in ((self.label_smoother is not None, "label_smoothing_factor=0; put it into the model's loss"),
                            (self.compute_loss_func is not None, "no compute_loss_func; the model returns its loss"),
                            (self.args.world_size > 1, "one process; devices= of mtc= divides the batch"),
                            (self.is_deepspeed_enabled or self.is_fsdp_enabled, "no DeepSpeed and no FSDP"),
                            (type(self).compute_loss is not transformers.Trainer.compute_loss,
                             "the compute_loss of transformers' Trainer; the model returns its loss")):
            if wrong:
                raise ModelError(f"expected of TrainingArguments and Trainer: {what}")

    def training_step(self, model: Any, inputs: Mapping[str, Any], num_items_in_batch: Any = None) -> Any:
        """One step of the plan, at the last batch of an update. The loss is that of all its batches."""
        self._waiting.append(self._prepare_inputs(inputs))
        if not self.accelerator.gradient_state.sync_gradients:
            return torch.zeros((), device=self.args.device)
        batch, self._waiting = _joined(self._waiting), []
        model.train()
        if self.step is None:
            self.step = self._compiled(self._counted(batch, num_items_in_batch), batch)
        loss = self.step.train_on_batch(batch, allow_nan=True)["loss"]  # the Trainer has a rule of its own
        self._behind = True
        return torch.tensor(loss, device=self.args.device)

    def _counted(self, batch: Mapping[str, Any], items: Any) -> Any:
        """The model, with the divisor that the Trainer gives it if that is another one than its own mean has.

        Raises:
            ModelError: several batches are accumulated, and the model takes the mean of each.
        """

        def loss(count: Any) -> float:
            with torch.no_grad():
                return float(self.compute_loss(self.model, dict(batch), num_items_in_batch=count))

        self.model.eval()
        counts = self.model_accepts_loss_kwargs and items is not None
        counted = loss(items) if counts else 0.0
        if self.args.gradient_accumulation_steps > 1 and (
                not counts or abs(loss(2 * items) - counted / 2) > 1e-4 * abs(counted)):
            raise ModelError("expected a model whose loss is divided by num_items_in_batch, for "
                             "gradient_accumulation_steps above 1, found one that takes a mean of its own: "
                             "transformers adds or averages these means. Use a larger per_device_train_batch_size; "
                             "micro_batches of mtc= saves the memory")
        other = counts and abs(counted - loss(None)) > 1e-5 * abs(counted)
        self.model.train()
        return _Counted(self.model, self) if other else self.model

    def _compiled(self, model: Any, batch: Mapping[str, Any]) -> Step:
        args = self.args
        options: dict[str, Any] = {
            "batch_size": args.train_batch_size * args.gradient_accumulation_steps,
            "clip_norm": args.max_grad_norm if args.max_grad_norm > 0 else None,
            "micro_batches": args.gradient_accumulation_steps, "seed": args.seed,
            "precision": "bf16" if args.bf16 else "f16" if args.fp16 else None}
        if options["micro_batches"] == 1 or options["micro_batches"] & (options["micro_batches"] - 1):
            del options["micro_batches"]  # the bits do not depend on it
        optimizer = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
        return compile_step(model, dict(batch), optimizer=optimizer, **{**options, **self._options})

    def synchronize(self) -> None:
        """Gives the model and the optimizer what the plan has; evaluation and checkpoints do so themselves."""
        if self.step is not None and self._behind:
            self.step.to_module()
            self._behind = False

    # The places at which the Trainer reads the model or the optimizer

    def _prepare_for_training(self, *args: Any, **kwargs: Any) -> Any:
        self.step, self._waiting, self._behind = None, [], False
        return super()._prepare_for_training(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        self.synchronize()
        return super().evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        self.synchronize()
        return super().predict(*args, **kwargs)

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        self.synchronize()
        super().save_model(*args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.synchronize()
        super()._save_checkpoint(*args, **kwargs)

    def _finalize_training(self, *args: Any, **kwargs: Any) -> Any:
        self.synchronize()
        return super()._finalize_training(*args, **kwargs)

    # The plan clips, and no gradients are left whose norm could be logged

    def _clip_grad_norm(self, model: Any) -> None:
        return None

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> None:
        return None


def _joined(batches: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The batches as one. DataError of the step where a batch has other shapes than the first one of the training."""
    if len(batches) == 1:
        return dict(batches[0])
    try:
        return {name: torch.cat([batch[name] for batch in batches]) if isinstance(value, torch.Tensor) else value
                for name, value in batches[0].items()}
    except RuntimeError as error:
        raise ModelError(f"expected batches of one length, as with padding=\"max_length\": {error}") from None
