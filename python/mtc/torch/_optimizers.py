# SPDX-License-Identifier: Apache-2.0
"""Optimizers of MTC by name, with Keras' formulas and defaults: "adam", "sgd,learning_rate=0.1,momentum=0.9"."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import reals

Values = dict[str, Array]


@dataclasses.dataclass
class Optimizer:
    """An optimizer of MTC.

    Attributes:
        name: of the op.
        attributes: of the op, without the learning rate's.
        prefix: of its variables' names.
        rate: the learning rate.
        real: the type of its numbers.
    """

    name: str
    attributes: dict[str, Any]
    prefix: str
    rate: float
    real: Any = dataclasses.field(default_factory=reals.real)

    source = None  # PyTorch's optimizer
    groups = None

    def text(self) -> str:
        """The op."""
        given = {"learning_rate": self.rate, **self.attributes}
        kind = "f64" if self.real is np.float64 else "f32"
        listed = ", ".join(name if value is True else f"{name} = {number(value)} : {kind}"
                           for name, value in given.items() if value is not False)
        return f"mt.{self.name} <{{{listed}}}>"

    def start(self) -> Values:
        """What the variables of the optimizer start with, other than the plan says."""
        return {f"{self.prefix}/learning_rate": np.asarray(self.rate, self.real)}

    def follow_rate(self, session: Any) -> None:
        """Gives a session what has changed: nothing."""

    def give_back(self, read: Callable[[str], Array], steps: int) -> None:
        """Sets the state of PyTorch's optimizer, of which there is none."""


def number(value: float) -> str:
    """A number as MLIR writes it: with a point, and exact."""
    text = repr(float(value))
    mantissa, exponent, power = text.partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent + power


def by_name(text: str) -> Optimizer:
    """`adam` or `sgd,learning_rate=0.1,momentum=0.9`: an optimizer of `mt`, with Keras' formulas and defaults."""
    name, *options = text.split(",")
    prefixes = {"adamw": "adam_w", "rmsprop": "rm_sprop"}
    given: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise ModelError(f"expected options NAME=VALUE of the optimizer {name}, found {option}")
        given[key.strip()] = {"true": True, "false": False}.get(value.strip().lower()) \
            if value.strip().lower() in ("true", "false") else float(value)
    rate = given.pop("learning_rate", {"sgd": 0.01}.get(name, 1e-3))
    return Optimizer(name, given, prefixes.get(name, name), float(rate))


def clipping(clip_norm: Optional[float], clip_value: Optional[float]) -> dict[str, float]:
    """Attributes for torch.nn.utils.clip_grad_norm_ and clip_grad_value_."""
    if clip_norm is not None and clip_value is not None:
        raise ModelError("expected clip_norm or clip_value, found both")
    if clip_norm is not None:
        return {"global_clipnorm": float(clip_norm)}
    return {"clipvalue": float(clip_value)} if clip_value is not None else {}
