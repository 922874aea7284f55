# SPDX-License-Identifier: Apache-2.0
"""Optimizers: MTC's by name, with optax's arguments, or read from an object of optax."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Mapping, Optional, Union

from mtc._errors import ModelError

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
                parts.append(f"{name} = {float(value):.9e} : f32")
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
    """The optimizer of a name, a dict with its `name`, an `Optimizer`, or an object of optax."""
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
    if hasattr(given, "init") and hasattr(given, "update"):
        return _from_optax(given)
    raise ModelError(f"expected an optimizer of mtc.jax or optax, or its name, found {type(given).__name__}")


def _closure(function: Any) -> dict[str, Any]:
    """What a function of optax was made with."""
    return dict(inspect.getclosurevars(function).nonlocals)


def _steps(given: Any) -> list[tuple[str, dict[str, Any]]]:
    """The transformations of a chain, in order: the name of each and what it was made with."""
    update = given.update
    while hasattr(update, "__wrapped__"):
        update = update.__wrapped__
    name = getattr(update, "__qualname__", "").split(".")[0]
    values = _closure(update)
    inner = values.get("update_fns")
    if inner is not None:
        return [step for f in inner for step in _steps(_Update(f))]
    if name in ("with_extra_args_support", "named_chain"):
        tx = values.get("tx")
        return _steps(tx) if tx is not None else [(name, values)]
    return [(name, values)]


@dataclasses.dataclass
class _Update:
    update: Any


# Of an optax transformation the numbers that MTC's optimizer has, by its own names.
_SCALES: dict[str, tuple[str, dict[str, str]]] = {
    "scale_by_adam": ("adam", {"b1": "beta_1", "b2": "beta_2", "eps": "epsilon"}),
    "scale_by_lion": ("lion", {"b1": "beta_1", "b2": "beta_2"}),
    "scale_by_rms": ("rmsprop", {"decay": "rho", "eps": "epsilon"}),
    "scale_by_stddev": ("rmsprop", {"decay": "rho", "eps": "epsilon"}),
    "scale_by_rss": ("adagrad", {"initial_accumulator_value": "initial_accumulator_value", "eps": "epsilon"}),
    "trace": ("sgd", {"decay": "momentum"}),
}


def _from_optax(given: Any) -> Optimizer:
    if "MultiSteps" in getattr(given.update, "__qualname__", ""):
        raise ModelError("optax.MultiSteps: give mtc.jax.compile the inner optimizer, micro_batches, and batch_size "
                         "for all of them together")
    kind, mask = "sgd", None
    rate: Optional[Rate] = None
    numbers: dict[str, Any] = {}
    for name, values in _steps(given):
        if name.startswith("clip") and (rate is not None or kind != "sgd"):
            raise ModelError(f"optax.{name} after the optimizer: expected it in front")
        if name in _SCALES:
            kind, wanted = _SCALES[name]
            numbers.update({mine: float(values[theirs]) for theirs, mine in wanted.items() if theirs in values})
            if values.get("eps_root") or values.get("nesterov") and kind == "adam":
                raise ModelError(f"optax.{name} with eps_root or nesterov: expected it without")
            if values.get("bias_correction"):
                raise ModelError(f"optax.{name} with bias_correction: expected it without")
            numbers["nesterov"] = bool(values.get("nesterov"))
            numbers["centered"] = name == "scale_by_stddev"
            numbers["epsilon_after_correction"] = kind == "adam"
            numbers["epsilon_after_root"] = values.get("eps_in_sqrt") is False
            # A rate that is found before the momentum is a part of it.
            numbers["rate_after_momentum"] = name == "trace" and rate is None
        elif name in ("scale", "scale_by_learning_rate"):
            rate = -float(values["step_size"])
        elif name == "scale_by_schedule":
            function = values["step_size_fn"]
            rate = lambda count, f=function: -f(count)  # noqa: E731
        elif name == "add_decayed_weights":
            numbers["weight_decay"] = float(values["weight_decay"])
        elif name == "masked":
            mask = values.get("mask", values.get("mask_fn"))
            for inner, found in _steps(values["inner"]):
                if inner != "add_decayed_weights":
                    raise ModelError(f"optax.masked of {inner}: expected add_decayed_weights")
                numbers["weight_decay"] = float(found["weight_decay"])
        elif name == "clip_by_global_norm":
            numbers["global_clipnorm"] = float(values["max_norm"])
        elif name == "clip":
            numbers["clipvalue"] = float(values["max_delta"])
        elif name not in ("identity", "<lambda>"):
            raise ModelError(f"expected an optimizer of optax that MTC has ({', '.join(NAMED)}, with "
                             f"clip_by_global_norm or clip in front), found optax.{name}")
    if rate is None:
        raise ModelError("expected a learning rate in the optimizer, found none")
    if numbers.get("weight_decay") and kind == "adam":
        kind = "adamw"
    return Optimizer(kind, rate, numbers, mask)
