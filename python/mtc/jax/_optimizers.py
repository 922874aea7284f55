# SPDX-License-Identifier: Apache-2.0
"""Optimizers of MTC by name, with the arguments of optax."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Union

from mtc._errors import ModelError
from mtc._trace.text import number

Rate = Union[float, Callable[[Any], Any]]


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An optimizer of MTC.

    Attributes:
        kind: the name of its op: "adam".
        rate: the learning rate, or a function of the step number, from 0, that JAX can trace.
        attributes: its other numbers and flags, by the names of the op.
        mask: a tree of booleans like the parameters, or a function that makes one of them: what is decayed.
        micro_batches: parts of a batch that run one after the other.
    """

    kind: str
    rate: Rate
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    mask: Any = None
    micro_batches: int = 0

    def with_(self, **changes: Any) -> Optimizer:
        """The same with other attributes."""
        return dataclasses.replace(self, attributes={**self.attributes, **changes})

    def line(self, rate: str) -> str:
        """Its line of `mt` text. `rate`: "rate({0}) " for a schedule."""
        numbers = dict(self.attributes)
        if not rate:
            numbers["learning_rate"] = self.rate
        parts = []
        for name, value in numbers.items():
            if value is None or value is False:
                continue
            if value is True:
                parts.append(name)
            elif isinstance(value, int) and name == "ema_overwrite_frequency":
                parts.append(f"{name} = {value} : i64")
            else:
                parts.append(f"{name} = {number(value)}")
        return f"mt.{self.kind} {rate}<{{{{{', '.join(parts)}}}}}>"


# Of the two formulas that `mt` has, optax' (docs/ir.md).
_AFTER_CORRECTION = {"epsilon_after_correction": True}


def sgd(learning_rate: Rate, momentum: Optional[float] = None, nesterov: bool = False) -> Optimizer:
    """As `optax.sgd`."""
    numbers = {"momentum": momentum or 0.0, "nesterov": nesterov, "rate_after_momentum": bool(momentum)}
    return Optimizer("sgd", learning_rate, numbers)


def adam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimizer:
    """As `optax.adam`."""
    return Optimizer("adam", learning_rate, {"beta_1": b1, "beta_2": b2, "epsilon": eps, **_AFTER_CORRECTION})


def adamw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-4,
          mask: Any = None) -> Optimizer:
    """As `optax.adamw`."""
    numbers = {"beta_1": b1, "beta_2": b2, "epsilon": eps, "weight_decay": weight_decay, **_AFTER_CORRECTION}
    return Optimizer("adamw", learning_rate, numbers, mask)


def lion(learning_rate: Rate, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 1e-3,
         mask: Any = None) -> Optimizer:
    """As `optax.lion`."""
    return Optimizer("lion", learning_rate, {"beta_1": b1, "beta_2": b2, "weight_decay": weight_decay}, mask)


def rmsprop(learning_rate: Rate, decay: float = 0.9, eps: float = 1e-8, centered: bool = False,
            eps_in_sqrt: bool = True) -> Optimizer:
    """As `optax.rmsprop` without momentum."""
    numbers = {"rho": decay, "epsilon": eps, "centered": centered, "epsilon_after_root": not eps_in_sqrt}
    return Optimizer("rmsprop", learning_rate, numbers)


def adagrad(learning_rate: Rate, initial_accumulator_value: float = 0.1, eps: float = 1e-7) -> Optimizer:
    """As `optax.adagrad`."""
    return Optimizer("adagrad", learning_rate, {"initial_accumulator_value": initial_accumulator_value,
                                                "epsilon": eps})


NAMED = {f.__name__: f for f in (sgd, adam, adamw, lion, rmsprop, adagrad)}


def resolve(given: Any) -> Optimizer:
    """The optimizer of a name, of a dict with its `name`, or an `Optimizer` itself."""
    if isinstance(given, Optimizer):
        return given
    if isinstance(given, str):
        given = {"name": given, "learning_rate": 0.01 if given == "sgd" else 1e-3}
    if isinstance(given, Mapping):
        arguments = dict(given)
        name = arguments.pop("name", None)
        if name not in NAMED:
            raise ModelError(f"expected an optimizer of {', '.join(NAMED)}, found {name}")
        return NAMED[name](**arguments)
    raise ModelError(f"expected an optimizer of mtc.jax or optax, or its name, found {type(given).__name__}")
