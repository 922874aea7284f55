# SPDX-License-Identifier: Apache-2.0
"""Optimizers of PyTorch as those of `mt`, and their state both ways.

`mt` has Keras' formulas, and where PyTorch's differ an attribute that chooses those. What `mt` has no attribute for is
converted here, or refused by name: a weight decay of all but AdamW is a gradient, wd * w, of a regularizer of wd / 2;
where gradients are clipped it is the variable's `gradient_decay`, which is added after that.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc.torch._framework import torch
from mtc.torch._watch import Groups

Values = dict[str, Array]
Slot = tuple[str, str]  # the names in the plan and in PyTorch


@dataclasses.dataclass
class Optimizer:
    """An optimizer of a plan.

    Attributes:
        name: of the op.
        attributes: of the op, without the learning rate's.
        prefix: of its variables' names.
        rate: the learning rate now.
        undecayed: names of the parameters that `weight_decay` leaves out.
        l2: parameter -> its decay as a gradient, wd * w.
        slots: per-parameter state that PyTorch has too.
        counts: the formula has the number of steps.
        source: PyTorch's optimizer, or None.
        groups: its parameter groups.
    """

    name: str
    attributes: dict[str, Any]
    prefix: str
    rate: float
    undecayed: set[str] = dataclasses.field(default_factory=set)
    l2: dict[str, float] = dataclasses.field(default_factory=dict)
    slots: tuple[Slot, ...] = ()
    counts: bool = False
    source: Any = None
    groups: Optional[Groups] = None

    def text(self) -> str:
        """The op."""
        given = {"learning_rate": self.rate, **self.attributes}
        listed = ", ".join(name if value is True else f"{name} = {number(value)} : f32"
                           for name, value in given.items() if value is not False)
        return f"mt.{self.name} <{{{listed}}}>"

    def slot(self, parameter: str, slot: str) -> str:
        """The name of a parameter's state in the plan."""
        return f"{self.prefix}/{parameter.replace('/', '_')}_{slot}"

    @property
    def clips(self) -> bool:
        """Whether it clips gradients."""
        return not {"clipnorm", "clipvalue", "global_clipnorm"}.isdisjoint(self.attributes)

    def rate_now(self) -> float:
        """The learning rate of PyTorch's optimizer, which a scheduler may have changed."""
        return self.rate if self.groups is None else self.groups.rate()

    def follow_rate(self, session: Any) -> None:
        """Gives a session the learning rate of PyTorch's optimizer, if a scheduler has changed it.

        Raises:
            ModelError: something else of the optimizer has changed, which the plan has as a constant.
        """
        if self.groups is None:
            return
        self.groups.check_state()
        now = self.groups.rate()
        if now != self.rate:
            session.variables[f"{self.prefix}/learning_rate"] = np.float32(now)
            self.rate = now
        self.source._opt_called = True  # else schedulers warn that the optimizer has made no step

    def state(self, parameters: Mapping[str, Any], stored: Mapping[str, tuple[int, ...]]) -> Values:
        """What PyTorch's optimizer knows, as variables of the plan. State that it does not have yet is 0.

        `parameters` by their names; `stored`: for each axis of a parameter's variable the axis of the parameter.
        """
        values: Values = {}
        if self.source is None:
            return values
        steps: dict[int, str] = {}
        for name, parameter in parameters.items():
            state = self.source.state.get(parameter) or {}
            steps.setdefault(int(state.get("step", 0)), name)
            for mine, theirs in self.slots:
                given = state.get(theirs)
                if not isinstance(given, torch.Tensor):
                    given = torch.zeros(parameter.shape)
                values[self.slot(name, mine)] = np.transpose(given.detach().cpu().float().numpy(), stored[name])
        if self.counts and len(steps) > 1:
            found = ", ".join(f"{count} of {name}" for count, name in sorted(steps.items())[:3])
            raise ModelError(f"expected one number of steps for all parameters of {type(self.source).__name__}, found "
                             f"{found}: make a new optimizer when parameters join it later")
        if type(self.source) is not torch.optim.SGD:
            values[f"{self.prefix}/iteration"] = np.asarray(max(steps, default=0), "int32")
        return values

    def give_back(self, parameters: Mapping[str, Any], read: Callable[[str, str], Array], steps: int) -> None:
        """Sets the state of PyTorch's optimizer from the variables of a session."""
        if self.source is None or not steps:
            return
        for name, parameter in parameters.items():
            state = self.source.state[parameter]
            if type(self.source) is not torch.optim.SGD:
                state["step"] = torch.tensor(float(steps))
            for mine, theirs in self.slots:
                value = read(name, self.slot(name, mine))
                state[theirs] = torch.from_numpy(np.ascontiguousarray(value)).reshape(parameter.shape)


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


def of(optimizer: Any, names: Mapping[Any, str]) -> Optimizer:
    """That of PyTorch. `names`: parameter -> its name, of all that are trained.

    Raises:
        ModelError: PyTorch's cannot be expressed; the text says what of it.
    """
    if isinstance(optimizer, str):
        return by_name(optimizer)
    kind = type(optimizer).__name__
    make = _KINDS.get(kind) if type(optimizer).__module__.startswith("torch.optim") else None
    if make is None:
        raise ModelError(f"expected an optimizer of {', '.join(sorted(_KINDS))} of torch.optim, or the name of MTC's, "
                         f"found {type(optimizer).__module__}.{kind}")
    groups = optimizer.param_groups
    given = [name for group in groups for p in group["params"] for name in [names.get(p)] if name is not None]
    missing = sorted(set(names.values()) - set(given))
    if missing:
        raise ModelError(f"expected an optimizer of all parameters that need gradients, found {kind} without "
                         f"{', '.join(missing[:4])}: give those requires_grad=False")
    watched = Groups(optimizer, names)
    watched.refuse_differences()
    first = next((g for g in groups if any(p in names for p in g["params"])), groups[0])
    if first.get("maximize"):
        raise ModelError(f"expected {kind} that minimises, found maximize=True")
    decays = {names[p]: float(group.get("weight_decay", 0)) for group in groups for p in group["params"] if p in names}
    made: Optimizer = make(first, decays)
    made.source = optimizer
    made.groups = watched
    made.rate = watched.rate()
    return made


def _l2(decays: Mapping[str, float]) -> dict[str, float]:
    return {name: decay for name, decay in decays.items() if decay}


def _sgd(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    if group["dampening"] and group["momentum"]:
        raise ModelError(f"expected SGD with dampening=0, found {group['dampening']}")
    attributes = {"momentum": group["momentum"], "nesterov": bool(group["nesterov"]), "rate_after_momentum": True}
    if not group["momentum"]:
        return Optimizer("sgd", {}, "sgd", 0, l2=_l2(decays))
    return Optimizer("sgd", attributes, "sgd", 0, l2=_l2(decays), slots=(("momentum", "momentum_buffer"),))


def _adam(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    beta_1, beta_2 = map(float, group["betas"])
    attributes: dict[str, Any] = {"beta_1": beta_1, "beta_2": beta_2, "epsilon": group["eps"],
                                  "amsgrad": bool(group["amsgrad"]), "epsilon_after_correction": True}
    slots = [("momentum", "exp_avg"), ("velocity", "exp_avg_sq")]
    if group["amsgrad"]:
        slots.append(("velocity_hat", "max_exp_avg_sq"))
    if not group.get("decoupled_weight_decay"):
        return Optimizer("adam", attributes, "adam", 0, l2=_l2(decays), slots=tuple(slots), counts=True)
    found = sorted(set(decays.values()) - {0.0})
    if len(found) > 1:
        raise ModelError("expected parameter groups of AdamW with one weight_decay or none, found "
                         f"{', '.join(map(str, found))}")
    undecayed = {name for name, decay in decays.items() if not decay} if found else set()
    return Optimizer("adamw", {**attributes, "weight_decay": found[0] if found else 0.0}, "adam_w", 0,
                     undecayed=undecayed, slots=tuple(slots), counts=True)


def _adamax(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    beta_1, beta_2 = map(float, group["betas"])
    return Optimizer("adamax", {"beta_1": beta_1, "beta_2": beta_2, "epsilon": group["eps"]}, "adamax", 0,
                     l2=_l2(decays), slots=(("momentum", "exp_avg"), ("norm", "exp_inf")), counts=True)


def _rmsprop(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    slots = [("velocity", "square_avg")]
    if group["momentum"]:
        slots.append(("momentum", "momentum_buffer"))
    if group["centered"]:
        slots.append(("average_gradient", "grad_avg"))
    attributes: dict[str, Any] = {"rho": group["alpha"], "epsilon": group["eps"], "momentum": group["momentum"],
                                  "centered": bool(group["centered"]), "epsilon_after_root": True,
                                  "rate_after_momentum": bool(group["momentum"])}
    return Optimizer("rmsprop", attributes, "rm_sprop", 0, l2=_l2(decays), slots=tuple(slots))


def _adagrad(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    if group["lr_decay"]:
        raise ModelError(f"expected Adagrad with lr_decay=0, found {group['lr_decay']}")
    attributes = {"initial_accumulator_value": group["initial_accumulator_value"], "epsilon": group["eps"],
                  "epsilon_after_root": True}
    return Optimizer("adagrad", attributes, "adagrad", 0, l2=_l2(decays), slots=(("accumulator", "sum"),))


def _adadelta(group: Mapping[str, Any], decays: Mapping[str, float]) -> Optimizer:
    return Optimizer("adadelta", {"rho": group["rho"], "epsilon": group["eps"]}, "adadelta", 0, l2=_l2(decays),
                     slots=(("accumulated_grad", "square_avg"), ("accumulated_delta_var", "acc_delta")))


_KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, float]], Optimizer]] = {
    "SGD": _sgd, "Adam": _adam, "AdamW": _adam, "Adamax": _adamax, "RMSprop": _rmsprop, "Adagrad": _adagrad,
    "Adadelta": _adadelta}


def trained(module: Any) -> dict[Any, str]:
    """Parameter -> its first name, of all that need gradients. A tied one is one."""
    return {p: name for name, p in module.named_parameters() if p.requires_grad}


def clipping(clip_norm: Optional[float], clip_value: Optional[float]) -> dict[str, float]:
    """Attributes for torch.nn.utils.clip_grad_norm_ and clip_grad_value_."""
    if clip_norm is not None and clip_value is not None:
        raise ModelError("expected clip_norm or clip_value, found both")
    if clip_norm is not None:
        return {"global_clipnorm": float(clip_norm)}
    return {"clipvalue": float(clip_value)} if clip_value is not None else {}
