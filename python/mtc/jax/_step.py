# SPDX-License-Identifier: Apache-2.0
"""A compiled loss function on its devices: training, evaluation, prediction, parameters."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterable, Optional, Union

import jax
import numpy as np

from mtc import _loop
from mtc._data import Arrays
from mtc._dataset import Dataset
from mtc._errors import DataError, ModelError
from mtc._finite import Finite
from mtc._loop import Checkpoint, checkpoint_options
from mtc._means import Means
from mtc._plan import Path, Plan
from mtc._process import own_verbosity
from mtc._session import Logs, Session
from mtc.jax._program import Program
from mtc.jax._tree import Tree
from mtc.jax._update import Update


class Step:
    """A training step: a plan on devices, with parameters in the tree of the user.

    Attributes:
        plan: the `mtc.Plan`.
        session: the `mtc.Session`.
        text: the model as `mt` text.
    """

    def __init__(self, plan: Plan, program: Program, devices: Optional[str], text: str,
                 update: Optional[Update] = None) -> None:
        self.plan = plan
        self.text = text
        self._program = program
        self._update = update
        self.session = Session(plan, devices)
        self._finite = Finite(self.session)

    # Training

    def train_on_batch(self, batch: Any, *, allow_nan: bool = False) -> Logs:
        """One training step on a batch, a pytree of arrays [n, ...] with n up to the plan's batch: loss and metrics.

        A loss that is not finite is a DataError, unless `allow_nan`.
        """
        return self._trained_on(self._bind(batch), allow_nan)

    def _trained_on(self, arrays: dict[str, Any], allow_nan: bool) -> Logs:
        logs = self.session.train_step(arrays)
        self._finite.after(logs, allow_nan)
        return logs

    def test_on_batch(self, batch: Any) -> Logs:
        """The loss and metrics of a batch."""
        return self.session.eval_step(self._bind(batch))

    def fit(self, data: Any, epochs: int = 1, *, shuffle: bool = True, verbose: int = 1, validation: Any = None,
            checkpoint: Optional[Checkpoint] = None, resume: Union[None, bool, str] = None,
            allow_nan: bool = False) -> dict[str, list[float]]:
        """Trains.

        Args:
            data: a batch's pytree with the arrays [n, ...] of all samples; or an iterable of batches.
            epochs: passes over the data, those before a resume included.
            shuffle: permutes the samples of arrays by seed and epoch.
            verbose: 0: silent; 1: a line an epoch.
            validation: data to evaluate after each epoch, likewise.
            checkpoint: as of `mtc.fit`, where all data are arrays.
            resume: as of `mtc.fit`, likewise.
            allow_nan: goes on after a loss, or with data or variables, that are not finite; else that is a DataError.

        Returns:
            The loss and metrics of each epoch of this call, by name.
        """
        if self._is_batch(data) and (validation is None or self._is_batch(validation)):
            return self._fit_arrays(data, epochs, shuffle, verbose, validation, checkpoint_options(checkpoint, resume),
                                    allow_nan)
        if checkpoint is not None or resume:
            raise DataError("expected arrays of all samples for checkpoints, found batches")
        history: dict[str, list[float]] = {}
        for epoch in range(epochs):
            if self._is_batch(data):
                logs = self._one_epoch(data, epoch, shuffle, allow_nan)
            else:
                logs = self._mean(data, lambda arrays: self._trained_on(arrays, allow_nan))
                self._finite.variables(allow_nan)
            if validation is not None:
                logs.update({f"val_{n}": v for n, v in self.evaluate(validation).items()})
            for name, value in logs.items():
                history.setdefault(name, []).append(value)
            if own_verbosity(verbose):
                _show(epoch, epochs, logs)
        return history

    def evaluate(self, data: Any) -> Logs:
        """The loss and metrics over all samples. `data`: as of `fit`."""
        if not self._is_batch(data):
            return self._mean(data, self.session.eval_step)
        with contextlib.ExitStack() as stack:
            return _loop.evaluate(self.session, self._opened(data, stack), None, False)

    def predict(self, batch: Any) -> Any:
        """The predictions for any number of samples; what `predict` does not read of the batch may be None."""
        leaves = jax.tree.flatten(batch, is_leaf=lambda x: x is None)[0]
        given = {n: a for n, a in zip(self._program.batch.names, leaves) if a is not None}
        return self.session.predict({t.name: given[t.name] for t in self.plan.inputs})

    # Parameters

    @property
    def params(self) -> Any:
        """The parameters, in the tree that was given, as NumPy arrays. Assigning a tree sets them."""
        return self._get(self._program.params)

    @params.setter
    def params(self, tree: Any) -> None:
        self._set(self._program.params, tree)

    @property
    def state(self) -> Any:
        """The state, likewise; None without one."""
        return None if self._program.state is None else self._get(self._program.state)

    @state.setter
    def state(self, tree: Any) -> None:
        assert self._program.state is not None
        self._set(self._program.state, tree)

    @property
    def opt_state(self) -> Any:
        """The optimizer's state as optax has it, of NumPy arrays, where the optimizer is one of optax.

        Assigning a state sets it. So optax goes on from what MTC trained, and MTC from optax.
        """
        return self._optax().read(self.session.variables)

    @opt_state.setter
    def opt_state(self, state: Any) -> None:
        self._optax().write(state, self.session.variables)

    def _optax(self) -> Update:
        if self._update is None:
            raise ModelError("expected an optimizer of optax for its state, found one of mtc.jax")
        return self._update

    def save(self, path: Path) -> None:
        """Writes all variables and the optimizer's to a `.safetensors` file."""
        self.session.save(path)

    def load(self, path: Path) -> None:
        """Reads what `save` wrote."""
        self.session.load(path)

    def close(self) -> None:
        """Ends the session."""
        self.session.close()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mtc.jax.Step of {self.plan.model}: batch {self.plan.batch_size}, {self.session.devices}>"

    def _get(self, tree: Tree) -> Any:
        variables = self.session.variables
        return tree.build([variables[n].astype(a.dtype) for n, a in zip(tree.names, tree.arrays)])

    def _set(self, tree: Tree, given: Any) -> None:
        found = Tree.of(given)
        if found.structure != tree.structure:
            raise DataError("expected a tree of the structure of the one that was compiled, found another")
        variables = self.session.variables
        for name, array in zip(tree.names, found.arrays):
            variables[name] = np.asarray(array)

    def _is_batch(self, data: Any) -> bool:
        return bool(jax.tree.structure(data) == self._program.batch.structure)

    def _bind(self, batch: Any) -> dict[str, Any]:
        if not self._is_batch(batch):
            raise DataError(f"expected a batch of the structure {self._program.batch.structure}, "
                            f"found {jax.tree.structure(batch)}")
        known = {t.name for t in self.plan.signature()}
        leaves = jax.tree.leaves(batch)
        return {n: np.asarray(a) for n, a in zip(self._program.batch.names, leaves) if n in known}

    def _fit_arrays(self, data: Any, epochs: int, shuffle: bool, verbose: int, validation: Any,
                    saving: Any, allow_nan: bool) -> dict[str, list[float]]:
        with contextlib.ExitStack() as stack:
            training, held = (None if d is None else self._opened(d, stack) for d in (data, validation))
            assert training is not None
            return _loop.fit(self.session, training, held, epochs, shuffle, saving, None, {"allow_nan": allow_nan},
                             on_epoch=lambda p: (_show(p.epoch, p.epochs, p.logs)
                                                 if own_verbosity(verbose) else None)).history

    def _one_epoch(self, data: Any, epoch: int, shuffle: bool, allow_nan: bool) -> Logs:
        with contextlib.ExitStack() as stack:
            result = _loop.fit(self.session, self._opened(data, stack), None, epoch + 1, shuffle, None, None,
                               {"initial_epoch": epoch, "allow_nan": allow_nan})
        return {name: values[-1] for name, values in result.history.items()}

    def _opened(self, data: Any, stack: contextlib.ExitStack) -> Dataset:
        dataset = Arrays(self._bind(data)).open(self.plan)
        stack.callback(dataset.close)
        return dataset

    def _mean(self, batches: Iterable[Any], run: Callable[[dict[str, Any]], Logs]) -> Logs:
        """Means over batches, weighted by their samples."""
        means = Means()
        for batch in batches:
            bound = self._bind(batch)
            means.add(run(bound), bound)
        if means.samples == 0:
            raise DataError("expected batches, found none")
        return means.values()


def _show(epoch: int, epochs: int, logs: Logs) -> None:
    print(f"epoch {epoch + 1}/{epochs} - " + " - ".join(f"{n}: {v:.4f}" for n, v in logs.items()), flush=True)
