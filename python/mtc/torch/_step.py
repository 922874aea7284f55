# SPDX-License-Identifier: Apache-2.0
"""A compiled training step of a PyTorch module."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from mtc._errors import DataError, ModelError
from mtc._finite import Finite
from mtc._means import Means
from mtc._plan import Path
from mtc._process import own_verbosity, process
from mtc._session import Logs, Session
from mtc._tensors import Array
from mtc._trace import reals
from mtc.torch._example import Example
from mtc.torch._framework import torch
from mtc.torch._optimizers import Optimizer
from mtc.torch._plan import StepPlan
from mtc.torch._progress import Metrics, Progress
from mtc.torch._update import Update
from mtc.torch._watch import Tensors


class Variables:
    """Which variable of a plan is which tensor of the module.

    Attributes:
        stored: parameter -> for each axis of the variable the axis of the parameter.
        statistics: buffer -> its variable, and the variable's share of the buffer.
        counters: buffers that count the steps, without a variable.
    """

    def __init__(self, stored: Mapping[str, tuple[int, ...]], statistics: Mapping[str, tuple[str, float]],
                 counters: Sequence[str] = ()) -> None:
        self.stored = stored
        self.statistics = statistics
        self.counters = counters
        self._real = reals.real()

    def _of(self, tensor: Any) -> Array:
        return np.asarray(tensor.detach().cpu().double().numpy(), self._real)

    def names(self) -> list[str]:
        """Of the parameters and buffers that the plan has."""
        return [*self.stored, *self.statistics]

    def to_plan(self, name: str, tensor: Any) -> tuple[str, Array]:
        """The variable of a parameter or buffer, and its elements."""
        if name in self.statistics:
            variable, share = self.statistics[name]
            if not tensor.is_floating_point():
                return variable, tensor.detach().cpu().numpy().astype("i4")
            return variable, self._of(tensor) * self._real(share)
        array = self._of(tensor)
        return name, np.transpose(array, self.stored[name])

    def from_plan(self, name: str, array: Array) -> Array:
        """The elements of a parameter, or what has its axes, from those in the plan."""
        if name in self.statistics:
            share = self.statistics[name][1]
            return array if share == 1 else array / self._real(share)
        order = self.stored[name]
        return np.transpose(array, [order.index(i) for i in range(len(order))])

    def read(self, session: Session, name: str) -> Any:
        """A parameter or buffer in a session, as a tensor."""
        variable = self.statistics[name][0] if name in self.statistics else name
        return torch.from_numpy(np.array(self.from_plan(name, session.variables[variable]), order="C"))


class Step:
    """A module, its loss and its optimizer as a plan, with a session that holds their state.

    `mtc.torch.compile` makes it.

    Attributes:
        module: the caller's.
        plan: for one batch size. The file that its `save` writes starts with the state that the session has then.
        session: of the plan. Its variables are the module's parameters by their names in the state_dict.
    """

    def __init__(self, module: Any, tensors: Mapping[str, Any], example: Example, optimizer: Union[Optimizer, Update],
                 variables: Variables, watched: Tensors, plan: StepPlan, with_weights: Callable[[Any], bytes],
                 devices: Optional[str], seed: int) -> None:
        """`with_weights`: the bytes of the plan whose variables start with these arrays."""
        self.module = module
        self.plan = plan
        self.session = Session(plan, devices, seed=seed)
        self._tensors = tensors
        self._example = example
        self._optimizer = optimizer
        self._variables = variables
        self._watched = watched
        self._trained = {n: tensors[n] for n in variables.stored if tensors[n].requires_grad}
        self._evaluation = ""  # why the plan cannot evaluate and predict
        self._counted = 0  # steps that the module's buffers know of
        self._finite = Finite(self.session)
        session = self.session
        plan._with_state = lambda: with_weights(dict(session.variables))
        self.from_module()

    # Training

    def train_on_batch(self, *batch: Any, allow_nan: bool = False) -> Logs:
        """One training step on a batch that is like the example: (inputs, labels), or keyword arguments in a dict.

        The learning rate and other hyper-parameters are those of the PyTorch optimizer now, so that its schedulers work
        as they do in PyTorch.

        Raises:
            ModelError: PyTorch would read something that has changed since the step was compiled, and that the plan
                cannot follow.
            DataError: the loss is not finite, and `allow_nan` is False.
        """
        arrays = self._bound(batch)
        self._follow()
        return self._trained_on(arrays, allow_nan)

    def _follow(self) -> None:
        """The hyper-parameters of now. ModelError where PyTorch would read something else that has changed."""
        self._watched.check()
        self._optimizer.follow_rate(self.session)

    def _trained_on(self, arrays: Mapping[str, Any], allow_nan: bool) -> Logs:
        logs = self.session.train_step(arrays)
        self._finite.after(logs, allow_nan)
        return logs

    def test_on_batch(self, *batch: Any) -> Logs:
        """The loss of a batch, with dropout and batch normalisation in evaluation mode."""
        self._may_evaluate()
        return self.session.eval_step(self._bound(batch))

    def fit(self, loader: Iterable[Any], epochs: int = 1, *, scheduler: Any = None, scheduler_every: str = "epoch",
            validation: Optional[Iterable[Any]] = None, verbose: Union[int, str] = "auto",
            allow_nan: bool = False, metrics: Optional[Mapping[str, Any]] = None, checkpoint: Optional[Path] = None,
            every_steps: int = 0, resume: bool = False) -> dict[str, list[float]]:
        """Trains on all batches of a loader, and copies the result into the module and its optimizer.

        Args:
            loader: batches like the example, of `plan.batch_size` samples at most; iterated once an epoch.
            epochs: passes over the loader.
            scheduler: one of torch.optim.lr_scheduler. It is stepped here; ReduceLROnPlateau with the validation's
                loss, or the training's without one.
            scheduler_every: "epoch" or "step".
            validation: batches to evaluate after each epoch.
            verbose: 0: silent.
            allow_nan: goes on after a loss, or with variables, that are not finite. Without it that is a DataError, and
                the module keeps what it had before.
            metrics: of the validation, as of `evaluate`.
            checkpoint: a file that is written after each epoch: variables, optimizer, scheduler, and where the training
                is.
            every_steps: writes it after so many steps, too.
            resume: goes on from the checkpoint if there is one, also in the middle of an epoch: random numbers are
                those with which the epoch began, and the batches that were trained are passed over. The result has the
                bits of a training that was not stopped.

        Returns:
            The mean of each metric over the samples of each epoch; those of the validation begin with `val_`.

        Raises:
            ModelError, DataError: as `train_on_batch`.
        """
        if scheduler_every not in ("epoch", "step"):
            raise ValueError(f"expected scheduler_every to be epoch or step, found {scheduler_every}")
        if validation is not None:
            self._may_evaluate()
        self._check_scheduler(scheduler)
        done = self._begun(checkpoint, scheduler, resume)
        self._follow()
        self._finite.stopped = False
        try:
            for epoch in range(done.epoch, epochs):
                done.begin_epoch(loader)
                for batch in itertools.islice(loader, done.batch, None):
                    arrays = self._example.bind(batch)
                    self._follow()
                    done.means.add(self._trained_on(arrays, allow_nan), arrays)
                    if scheduler is not None and scheduler_every == "step":
                        scheduler.step()
                    done.batch += 1
                    if checkpoint is not None and every_steps and self._steps() % every_steps == 0:
                        self._keep(checkpoint, done, scheduler)
                logs = done.means.values()
                self._finite.variables(allow_nan)
                if validation is not None:
                    logs.update({f"val_{name}": value for name, value in self.evaluate(validation, metrics).items()})
                done.end_epoch(logs)
                if scheduler is not None and scheduler_every == "epoch":
                    plateau = type(scheduler).__name__ == "ReduceLROnPlateau"
                    scheduler.step(*[logs.get("val_loss", logs["loss"])] if plateau else [])
                if checkpoint is not None:
                    self._keep(checkpoint, done, scheduler)
                if own_verbosity(verbose) != 0:
                    shown = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())
                    print(f"epoch {epoch + 1}/{epochs} - {shown}", file=sys.stderr)
        finally:  # not over what the caller has put into the module, and not what is not finite
            if not self._watched.changed() and not self._finite.stopped:
                self.to_module()
        return done.history

    def _begun(self, checkpoint: Optional[Path], scheduler: Any, resume: bool) -> Progress:
        """A training that begins, or where its checkpoint is."""
        if resume and checkpoint is None:
            raise ValueError("expected a checkpoint to resume from, found none")
        if not resume or checkpoint is None or not os.path.exists(checkpoint):
            return Progress()
        done = Progress.read(checkpoint, self.session, self._optimizer.source, scheduler)
        self.to_module()
        return done

    def _keep(self, checkpoint: Path, done: Progress, scheduler: Any) -> None:
        if process() == 0:
            done.write(checkpoint, self.session, self._optimizer.source, scheduler)

    def _check_scheduler(self, scheduler: Any) -> None:
        """ModelError where a scheduler is of another optimizer."""
        theirs = getattr(getattr(scheduler, "scheduler", scheduler), "optimizer", None)  # Accelerate wraps both
        theirs = getattr(theirs, "optimizer", theirs)
        if theirs is not None and theirs is not self._optimizer.source:
            found = "a text" if self._optimizer.source is None else "another optimizer"
            raise ModelError("expected a scheduler of the torch.optim optimizer that the step was compiled with, found "
                             f"that this was {found}: the step would not follow its learning rate")

    def evaluate(self, loader: Iterable[Any], metrics: Optional[Mapping[str, Any]] = None) -> Logs:
        """The mean of each loss over the samples of a loader.

        Args:
            loader: batches like the example.
            metrics: by their names, functions of the outputs and the labels of a batch, which give its mean, or objects
                with `update`, `compute` and `reset`, as torchmetrics has them. The outputs are those of `predict`.
        """
        self._may_evaluate()
        means, others = Means(), Metrics(metrics or {})
        for batch in loader:
            arrays = self._example.bind(batch)
            means.add(self.session.eval_step(arrays), arrays)
            if metrics:
                others.add(self.predict(batch if isinstance(batch, Mapping) else batch[0]), batch)
        return {**means.values(), **(others.values() if metrics else {})}

    def predict(self, *inputs: Any) -> Any:
        """The module's outputs for any number of samples: a tensor, or a dict of them by name."""
        self._may_evaluate()
        names = [t.name for t in self.plan.inputs]
        bound = self._example.inputs(inputs[0] if len(inputs) == 1 else inputs)
        missing = [name for name in names if name not in bound]
        if missing:
            raise DataError(f"expected {', '.join(names)} to predict from, found no {', '.join(missing)}")
        found = self.session.predict({name: bound[name] for name in names})
        if isinstance(found, dict):
            return {name: torch.from_numpy(value) for name, value in found.items()}
        return torch.from_numpy(found)

    # State

    def state_dict(self) -> dict[str, Any]:
        """The parameters and buffers as they are in the session, by the names of the module's state_dict."""
        state = {name: value.detach().clone() for name, value in self.module.state_dict().items()}
        for name in self._variables.names():
            if name in state:
                state[name] = self._variables.read(self.session, name)
        for name, tensor in state.items():  # other names of tied parameters
            same = next((n for n in self._variables.stored if self._tensors[n] is self._tensors.get(name)), None)
            state[name] = state[same] if same is not None and same != name else tensor
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copies a state_dict into the module and the session."""
        self.module.load_state_dict(state)
        self.from_module()

    def save(self, path: Path) -> None:
        """Writes what the session has now.

        A `.mtp` file is the plan, which starts with it, for `mtrun` and `mtc.load`: parameters, buffers, the
        optimizer's state and learning rate. Other names are as of `Session.save`: `.safetensors` has the variables.
        """
        if process() > 0:
            return
        if os.fspath(path).endswith(".mtp"):
            self.plan.save(path)
        else:
            self.session.save(path)

    def from_module(self) -> None:
        """Copies the parameters, the buffers and the optimizer's state from PyTorch into the session."""
        for name in self._variables.names():
            variable, array = self._variables.to_plan(name, self._tensors[name])
            self.session.variables[variable] = array
        for name, array in self._optimizer.start().items():
            self.session.variables[name] = array
        self._counted = self._steps()
        self._agree()

    def to_module(self) -> Any:
        """Copies the parameters, the buffers and the optimizer's state from the session into PyTorch."""
        steps = self._steps()
        with torch.no_grad():
            for name in self._variables.names():
                self._tensors[name].copy_(self._variables.read(self.session, name))
            for name in self._variables.counters:
                self._tensors[name].add_(steps - self._counted)
        self._counted = steps

        self._optimizer.give_back(lambda name: np.asarray(self.session.variables[name]), steps)
        self._agree()
        return self.module

    def _agree(self) -> None:
        """The module, the optimizer and the session have the same values now."""
        self._watched.take()
        self._finite.stopped = False
        if self._optimizer.groups is not None:
            self._optimizer.groups.take_state()

    def close(self) -> None:
        """Ends the session."""
        self.session.close()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _may_evaluate(self) -> None:
        if self._evaluation:
            raise ModelError(self._evaluation)
        self._watched.check_values()

    def _steps(self) -> int:
        return int(self.session.variables[f"{self._optimizer.prefix}/iteration"])

    def _bound(self, batch: Any) -> dict[str, Any]:
        return self._example.bind(batch[0] if len(batch) == 1 else batch)

    def __repr__(self) -> str:
        return f"<mtc.torch.Step of {type(self.module).__name__}: batch {self.plan.batch_size}>"
