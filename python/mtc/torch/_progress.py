# SPDX-License-Identifier: Apache-2.0
"""Where a training by `Step.fit` is, as a file from which it goes on, and metrics of its validation."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from mtc._errors import DataError
from mtc._means import Means
from mtc._plan import Path, write_atomically
from mtc._session import Logs, Session
from mtc.torch._framework import torch

FORMAT = 1


class Progress:
    """How far a training is.

    Attributes:
        epoch: the epochs that are done.
        batch: the batches of the next one that are done.
        history: means of the epochs that are done.
        means: of the batches that are done.
    """

    def __init__(self) -> None:
        self.epoch = self.batch = 0
        self.history: dict[str, list[float]] = {}
        self.means = Means()
        self._random: Optional[dict[str, Any]] = None

    def begin_epoch(self, loader: Any) -> None:
        """Notes the state of all generators of random numbers, or sets what it was when the epoch began."""
        for name in ("sampler", "batch_sampler"):
            set_epoch = getattr(getattr(loader, name, None), "set_epoch", None)
            if set_epoch is not None:
                set_epoch(self.epoch)
        if self._random is None:
            version, numbers, gauss = random.getstate()
            legacy: Any = np.random.get_state()
            name, keys, *others = legacy
            self._random = {"torch": torch.get_rng_state(), "python": [version, list(numbers), gauss],
                            "numpy": [name, keys.tolist(), *others],
                            "loader": [generator.get_state() for generator in _generators(loader)]}
            return
        torch.set_rng_state(self._random["torch"])
        version, numbers, gauss = self._random["python"]
        random.setstate((version, tuple(numbers), gauss))
        name, keys, *others = self._random["numpy"]
        np.random.set_state((name, np.array(keys, np.uint32), *others))
        for generator, state in zip(_generators(loader), self._random["loader"]):
            generator.set_state(state)

    def end_epoch(self, logs: Logs) -> None:
        """The means of an epoch, and the next one begins."""
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
        self.epoch, self.batch, self.means, self._random = self.epoch + 1, 0, Means(), None

    def write(self, path: Path, session: Session, optimizer: Any, scheduler: Any) -> None:
        """A file of the variables, the optimizer's groups, the scheduler and this."""
        groups = [{key: value for key, value in group.items() if key != "params"}
                  for group in getattr(optimizer, "param_groups", [])]
        file = io.BytesIO()
        torch.save({"mtc": FORMAT, "epoch": self.epoch, "batch": self.batch, "history": self.history,
                    "means": [self.means.samples, self.means._sums], "random": self._random, "groups": groups,
                    "scheduler": scheduler.state_dict() if scheduler is not None else None,
                    "variables": {name: torch.from_numpy(np.array(value))
                                  for name, value in session.variables.items()}}, file)
        write_atomically(path, file.getvalue())

    @classmethod
    def read(cls, path: Path, session: Session, optimizer: Any, scheduler: Any) -> Progress:
        """What `write` wrote; sets the variables, the optimizer's groups and the scheduler.

        Raises:
            DataError: the file is none of a training with this module, optimizer and scheduler.
        """
        saved = torch.load(path, weights_only=True)
        if not isinstance(saved, dict) or saved.get("mtc") != FORMAT:
            raise DataError(f"{os.fspath(path)}: expected a checkpoint of mtc.torch, found another file")
        groups = getattr(optimizer, "param_groups", [])
        found, wanted = set(saved["variables"]), set(session.variables)
        same_parts = len(groups) == len(saved["groups"]) and (scheduler is None) == (saved["scheduler"] is None)
        if found != wanted or not same_parts:
            different = ", ".join(sorted(found ^ wanted)) or "its parameter groups or its scheduler"
            raise DataError(f"{os.fspath(path)}: expected a checkpoint of this step, found another one: {different}")
        for name, value in saved["variables"].items():
            session.variables[name] = value.numpy()
        for group, values in zip(groups, saved["groups"]):
            group.update(values)
        if scheduler is not None:
            scheduler.load_state_dict(saved["scheduler"])
        progress = cls()
        progress.epoch, progress.batch, progress.history = saved["epoch"], saved["batch"], saved["history"]
        progress.means.samples, progress.means._sums = saved["means"]
        progress._random = saved["random"]
        return progress


def _generators(loader: Any) -> list[Any]:
    """The generators of a loader's own, each once."""
    found: list[Any] = []
    for owner in (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
        generator = getattr(owner, "generator", None)
        if generator is not None and not any(generator is other for other in found):
            found.append(generator)
    return found


class Metrics:
    """Functions of outputs and labels, or metrics as torchmetrics has them, over batches."""

    def __init__(self, metrics: Mapping[str, Any]) -> None:
        self._metrics = metrics
        self._means = Means()
        for metric in metrics.values():
            if hasattr(metric, "reset"):
                metric.reset()

    def add(self, outputs: Any, batch: Any) -> None:
        """The outputs for a batch like the example."""
        labels = batch["labels"] if isinstance(batch, Mapping) else batch[1]
        logs = {}
        for name, metric in self._metrics.items():
            if hasattr(metric, "update"):
                metric.update(outputs, labels)
            else:
                logs[name] = float(metric(outputs, labels))
        self._means.add(logs, {"labels": labels})

    def values(self) -> Logs:
        """Means of the functions over the samples, and what the metrics compute."""
        values = self._means.values()
        return {name: float(metric.compute()) if hasattr(metric, "compute") else values[name]
                for name, metric in self._metrics.items()}
