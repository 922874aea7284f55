# SPDX-License-Identifier: Apache-2.0
"""A whole training step on its devices: (state, batch) -> (state, metrics), for trees of any framework."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Optional, Protocol, Sequence

import numpy as np

from mtc._errors import DataError
from mtc._finite import Finite
from mtc._plan import Path, Plan
from mtc._session import Session
from mtc._tensors import Array


class Tree(Protocol):
    """A tree of a framework: its arrays by name, and what puts it together again."""

    names: list[str]
    arrays: list[Any]
    structure: Any
    others: list[Any]

    def build(self, arrays: Sequence[Any]) -> Any:
        """The tree with other arrays."""


@dataclasses.dataclass
class Traced:
    """The trees of a step, and what its plan does not compute.

    Attributes:
        state: the arrays that the step changes.
        batch: the arrays with an axis of samples.
        metrics: numbers.
        constant: metrics that are known, by name.
    """

    state: Tree
    batch: Tree
    metrics: Tree
    constant: Mapping[str, Any]


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of a state that stays on the devices, until somebody reads it.

    It is read as NumPy reads an array. Once the step was called again its memory has other values: then it is a
    DataError to read it, if it was not read before, or to give it to the step.
    """

    def __init__(self, step: WholeStep, name: str, like: Any, number: int) -> None:
        self._step = step
        self._name = name
        self._number = number
        self._value: Any = None
        self.shape = tuple(like.shape)
        self.dtype = step._dtype(like)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape))

    def is_current(self, step: WholeStep) -> bool:
        """Whether the step has its value now."""
        return step is self._step and self._number == step._calls

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self._value is None:
            if not self.is_current(self._step):
                raise DataError(f"{self._name}: expected a state of the last call, found an older one, whose memory "
                                "the step has used again: read it before the next call to keep it")
            self._value = self._step._array(self._name, self.shape, self.dtype)
        return np.array(self._value, dtype=dtype, copy=True) if copy or dtype is not None else self._value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(i) if isinstance(i, DeviceArray) else i for i in inputs), **keywords)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return len(np.asarray(self))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __repr__(self) -> str:
        return f"<{self._name}: {self.dtype}{list(self.shape)} of {self._step!r}>"


class WholeStep:
    """A compiled step. Call it as the function: state, metrics = step(state, batch).

    Attributes:
        plan: the `mtc.Plan`.
        session: the `mtc.Session`, whose variables are the arrays of the state.
        text: the model as `mt` text.
    """

    _framework = ""

    def __init__(self, plan: Plan, text: str, traced: Traced, devices: Optional[str], **session: Any) -> None:
        self.plan = plan
        self.text = text
        self._traced = traced
        self._state = traced.state
        self._batch = traced.batch
        self.session = Session(plan, devices, **session)
        self._finite = Finite(self.session)
        self._stored = {info.name for info in plan.variables}
        self._calls = 0

    def __call__(self, state: Any, batch: Any, *, allow_nan: bool = False) -> tuple[Any, Any]:
        """One step. Gives the state after it, whose arrays stay on the devices until they are read, and the metrics.

        Args:
            state: what the last call gave, or a tree like the one that was compiled with; its arrays are copied.
            batch: arrays [n, ...] with n up to the plan's batch.
            allow_nan: goes on after a loss that is not finite; else it is a DataError.
        """
        self._write(state)
        arrays, found = self._flatten(batch)
        if found != self._batch.structure:
            raise DataError(f"expected a batch of the structure {self._batch.structure}, found {found}")
        known = {t.name for t in self.plan.signature()}
        logs = self.session.train_step({n: np.asarray(a) for n, a in zip(self._batch.names, arrays) if n in known})
        self._calls += 1
        self._finite.after(logs, allow_nan)
        traced = self._traced
        values = [traced.constant[name] if name in traced.constant else np.float32(logs[name])
                  for name in traced.metrics.names]
        return self._now(), traced.metrics.build(values)

    def predict(self, batch: Any) -> Any:
        """The predictions of the function `predict` that the step was compiled with, by the state of now."""
        given = {n: a for n, a in zip(self._batch.names, self._leaves_or_none(batch)) if a is not None}
        return self.session.predict({t.name: given[t.name] for t in self.plan.inputs})

    def save(self, path: Path) -> None:
        """Writes the state to a `.safetensors` file."""
        self.session.save(path)

    def load(self, path: Path) -> Any:
        """Reads what `save` wrote. Gives the state."""
        self.session.load(path)
        self._calls += 1
        return self._now()

    def close(self) -> None:
        """Ends the session."""
        self.session.close()

    def __enter__(self) -> WholeStep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mtc.{self._framework}.WholeStep of {self.plan.model}: batch {self.plan.batch_size}, " \
               f"{self.session.devices}>"

    # The state

    def _now(self) -> Any:
        return self._state.build([self._handle(name, array) if name in self._stored else array
                                  for name, array in zip(self._state.names, self._state.arrays)])

    def _write(self, state: Any) -> None:
        values, structure = self._flatten(state)
        if structure != self._state.structure:
            raise DataError("expected a state of the structure that the step was compiled with, found another")
        arrays = [value for value, other in zip(values, self._state.others) if other is None]
        for name, array, old in zip(self._state.names, arrays, self._state.arrays):
            if name not in self._stored or isinstance(array, DeviceArray) and array.is_current(self):
                continue
            if tuple(np.shape(array)) != tuple(old.shape):
                raise DataError(f"{name}: expected the shape {list(old.shape)}, found {list(np.shape(array))}")
            self.session.variables[name] = self._to_host(name, array)

    # The framework's

    def _flatten(self, tree: Any) -> tuple[list[Any], Any]:
        """The leaves of a tree, and its structure."""
        raise NotImplementedError

    def _leaves_or_none(self, tree: Any) -> list[Any]:
        """The leaves of a tree, None among them."""
        raise NotImplementedError

    def _dtype(self, array: Any) -> Any:
        """The type of an array's elements, of NumPy."""
        return np.dtype(array.dtype)

    def _handle(self, name: str, like: Any) -> Any:
        """An array of the state after a call."""
        return DeviceArray(self, name, like, self._calls)

    def _to_host(self, name: str, array: Any) -> Array:
        """An array of the state as its variable has it."""
        raise NotImplementedError

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array of the state, from its variable."""
        return np.asarray(self.session.variables[name]).astype(dtype).reshape(shape)
