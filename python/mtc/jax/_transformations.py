# SPDX-License-Identifier: Apache-2.0
"""Optimizers of optax: which transformations they are made of, and what each was made with.

An optimizer of optax is a pair of functions; what it was made with is in their closures. Each variable of a closure is
read or compared with the only value that MTC has, so that none is silently left out.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np

from mtc._errors import ModelError

Rate = Union[float, Callable[[Any], Any]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """What MTC has of a transformation.

    Attributes:
        numbers: the names of its numbers here, by those of optax.
        other: those that are read in another way.
        only: what the others have to be.
        op: of the transformations that are an optimizer, the name of its op.
    """

    numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    other: tuple[str, ...] = ()
    only: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    op: str = ""


_DECAYED = Kind({"decay": "rho", "eps": "epsilon"}, ("eps_in_sqrt",), {"bias_correction": False, "initial_scale": 0.0},
                "rmsprop")
KINDS: dict[str, Kind] = {
    "scale_by_adam": Kind({"b1": "beta_1", "b2": "beta_2", "eps": "epsilon"}, (),
                          {"eps_root": 0.0, "mu_dtype": None, "nesterov": False}, "adam"),
    "scale_by_lion": Kind({"b1": "beta_1", "b2": "beta_2"}, ("smooth_beta",), {"mu_dtype": None, "mode": "hard"},
                          "lion"),
    "scale_by_rms": _DECAYED,
    "scale_by_stddev": _DECAYED,
    "scale_by_rss": Kind({"initial_accumulator_value": "initial_accumulator_value", "eps": "epsilon"}, op="adagrad"),
    "trace": Kind({"decay": "momentum"}, ("nesterov",), {"accumulator_dtype": None}, "sgd"),
    "scale": Kind(other=("step_size",)),
    "scale_by_schedule": Kind(other=("step_size_fn",)),
    "add_decayed_weights": Kind({"weight_decay": "weight_decay"}),
    "masked": Kind(other=("inner", "mask", "mask_fn", "mask_pytree", "maybe_mask_values",
                          "mask_compatible_extra_args")),
    "clip_by_global_norm": Kind({"max_norm": "global_clipnorm"}),
    "clip": Kind({"max_delta": "clipvalue"}),
    "identity": Kind(),
}
_HAS = "adam, adamw, sgd, lion, rmsprop, adagrad, with clip or clip_by_global_norm in front"
Step = tuple[str, dict[str, Any]]


def _steps(init: Any, update: Any) -> Iterable[Step]:
    """The transformations of a chain, in order: the name of each and what it was made with."""
    while hasattr(update, "__wrapped__"):
        update = update.__wrapped__
    name = getattr(update, "__qualname__", type(update).__name__).split(".")[0]
    first, values = _closure(init), _closure(update)
    if "update_fns" in values:
        for pair in zip(first["init_fns"], values["update_fns"]):
            yield from _steps(*pair)
    elif name in ("with_extra_args_support", "named_chain") and "tx" in values:
        yield from _steps(values["tx"].init, values["tx"].update)
    elif not getattr(update, "__module__", "").startswith("optax"):
        raise ModelError(f"expected an optimizer of optax that MTC has ({_HAS}), found {name} of "
                         f"{getattr(update, '__module__', 'another module')}")
    else:
        yield name, {**first, **values}


def _closure(function: Any) -> dict[str, Any]:
    """What a function of optax was made with."""
    return dict(inspect.getclosurevars(function).nonlocals) if inspect.isfunction(function) else {}


def _checked(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a transformation by MTC's names, where MTC has all that it was made with."""
    kind = KINDS.get(name)
    if kind is None:
        raise ModelError(f"expected an optimizer of optax that MTC has ({_HAS}), found optax.{name}")
    numbers = {}
    for key, value in values.items():
        if key in kind.numbers:
            if callable(value):
                raise ModelError(f"optax.{name}: expected a number for {key}, found a function")
            numbers[kind.numbers[key]] = float(value)
        elif key not in kind.other and not (key in kind.only and _is(value, kind.only[key])):
            only = f"it with {key}={kind.only[key]!r}" if key in kind.only else "it without"
            raise ModelError(f"optax.{name} with {key}={getattr(value, '__name__', value)!s}: expected {only}")
    return numbers


def _is(value: Any, wanted: Any) -> bool:
    if wanted is None:  # the type of what is remembered
        return value is None or np.dtype(value) == np.float32
    return bool(value == wanted)


@dataclasses.dataclass
class _Read:
    """What has been read of a chain so far."""

    kind: str = ""
    rate: Optional[Rate] = None
    mask: Any = None
    numbers: dict[str, Any] = dataclasses.field(default_factory=dict)

    def add(self, name: str, values: Mapping[str, Any]) -> None:
        """Adds the next transformation."""
        numbers = _checked(name, values)
        if name.startswith("clip"):
            self._add_clip(name, numbers)
        elif KINDS[name].op:
            self._add_optimizer(name, values, numbers)
        elif name in ("scale", "scale_by_schedule"):
            if self.rate is not None:
                raise ModelError(f"optax.{name} after another scale: expected one learning rate")
            if name == "scale":
                self.rate = -float(values["step_size"])
            else:
                function = values["step_size_fn"]
                self.rate = lambda count: -function(count)
        elif name == "add_decayed_weights":
            self._add_decay(name, numbers)
        elif name == "masked":
            self.mask = values.get("mask", values.get("mask_fn"))
            for inner, found in _steps(values["inner"].init, values["inner"].update):
                if inner != "add_decayed_weights":
                    raise ModelError(f"optax.masked of {inner}: expected add_decayed_weights")
                self._add_decay(inner, _checked(inner, found))

    def _add_clip(self, name: str, numbers: Mapping[str, float]) -> None:
        if self.rate is not None or self.kind or "weight_decay" in self.numbers:
            raise ModelError(f"optax.{name} after the optimizer: expected it in front")
        if self.numbers:
            raise ModelError(f"optax.{name} after another clip: expected one of them")
        self.numbers.update(numbers)

    def _add_decay(self, name: str, numbers: Mapping[str, float]) -> None:
        if "weight_decay" in self.numbers or self.rate is not None:
            raise ModelError(f"optax.{name} after the learning rate, or a second one: expected one between the "
                             "optimizer and its learning rate, as in optax.adamw")
        self.numbers.update(numbers)

    def _add_optimizer(self, name: str, values: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
        if self.kind:
            raise ModelError(f"optax.{name} after another optimizer (mt.{self.kind}), such as rmsprop with a momentum: "
                             "expected one of them")
        if self.numbers.get("weight_decay"):
            raise ModelError(f"optax.add_decayed_weights in front of optax.{name}, where the decay becomes a part of "
                             "what is remembered: expected it behind, as in optax.adamw")
        if self.rate is not None and name != "trace":
            raise ModelError(f"optax.{name} after the learning rate: expected it in front")
        self.kind = KINDS[name].op
        self.numbers.update(numbers)
        self.numbers["nesterov"] = bool(values.get("nesterov"))
        self.numbers["centered"] = name == "scale_by_stddev"
        self.numbers["epsilon_after_correction"] = self.kind == "adam"
        self.numbers["epsilon_after_root"] = values.get("eps_in_sqrt") is False
        # A rate that is found before the momentum is a part of it.
        self.numbers["rate_after_momentum"] = name == "trace" and self.rate is None


def read(given: Any) -> tuple[str, Rate, dict[str, Any], Any]:
    """Of an optimizer of optax the name of MTC's op, the learning rate, the op's attributes, and the mask of decay."""
    if "MultiSteps" in getattr(given.update, "__qualname__", ""):
        raise ModelError("optax.MultiSteps: give mtc.jax.compile the inner optimizer, micro_batches, and batch_size "
                         "for all of them together")
    found = _Read()
    for name, values in _steps(given.init, given.update):
        found.add(name, values)
    if found.rate is None:
        raise ModelError("expected a learning rate in the optimizer, found none")
    kind = found.kind or "sgd"
    if found.numbers.get("weight_decay") and kind == "adam":
        kind = "adamw"
    return kind, found.rate, found.numbers, found.mask
