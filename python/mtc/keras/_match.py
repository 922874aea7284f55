# SPDX-License-Identifier: Apache-2.0
"""Which variable of a Keras model is which of its plan."""

from __future__ import annotations

import re
from typing import Any, Iterable, Optional, Sequence

from mtc._errors import ModelError
from mtc._tensors import TensorInfo
from mtc.keras._model import inner_optimizer, keras, unique_paths


def sequentials(model: Any) -> set[str]:
    """Names of the Sequential models in the tree; Keras leaves them out of paths when it loads a file."""
    kind = keras().Sequential
    names = {model.name} if isinstance(model, kind) else set()
    for layer in getattr(model, "layers", []):
        if hasattr(layer, "layers"):
            names |= sequentials(layer)
    return names


def canonical(path: str, left_out: set[str]) -> str:
    """A path without the names of Sequential models."""
    return "/".join(part for part in path.split("/") if part not in left_out)


class _ByName:
    """Entries of a plan by name; entries of the same name are given in order."""

    def __init__(self, infos: Iterable[tuple[str, TensorInfo]]) -> None:
        self._infos: dict[str, list[TensorInfo]] = {}
        for name, info in infos:
            self._infos.setdefault(name, []).append(info)

    def take(self, name: str) -> Optional[TensorInfo]:
        found = self._infos.get(name)
        return found.pop(0) if found else None

    def left(self) -> list[TensorInfo]:
        """Those that nobody took."""
        return [info for found in self._infos.values() for info in found]


def match_variables(model: Any, variables: Sequence[TensorInfo]) -> list[tuple[Any, TensorInfo]]:
    """Pairs of a Keras variable and the plan's variable of the same meaning, of all variables of the plan.

    Keras alone has seeds of random layers and counts of adapted ones; the plan alone has nothing of the model.
    """
    left_out = sequentials(model)
    weights = [v for v in variables if v.kind != "optimizer"]
    slots = [v for v in variables if v.kind == "optimizer"]
    optimizer = inner_optimizer(model) if getattr(model, "optimizer", None) is not None else None
    exact = {v.path for v in model.variables} >= {w.name for w in weights if not _is_scalar(w)}
    left_out = set() if exact else left_out
    by_name = _ByName((canonical(w.name, left_out), w) for w in weights)
    named = [(variable, by_name.take(canonical(variable.path, left_out)) or by_name.take(unique))
             for variable, unique in zip(model.variables, unique_paths(model.variables))]
    pairs = [(v, info) for v, info in named if info is not None and tuple(v.shape) == info.shape]
    pairs += _match_ends([v for v, info in named if info is None], by_name.left())
    flat = [(variable.path.replace("/", "_") + "_", info.name.replace("/", "_") + "_") for variable, info in pairs]
    if optimizer is not None and optimizer.built:
        pairs += _match_optimizer(optimizer, [*weights, *slots], flat)
    matched = {info.name for _, info in pairs}
    missing = [w.name for w in weights if w.name not in matched and not _is_scalar(w)]
    if missing:
        raise ModelError(f"{model.name}: expected a variable of the model for each of the plan's, "
                         f"found none for {', '.join(missing)}")
    return pairs


def _match_ends(variables: list[Any], infos: list[TensorInfo]) -> list[tuple[Any, TensorInfo]]:
    """Pairs of variables whose layer was made by another model, under whose name their paths begin.

    The ends of both names are equal, with that of the layer; names of which several end so give no pair.
    """
    ends: dict[tuple[str, ...], tuple[list[Any], list[TensorInfo]]] = {}
    for variable in variables:
        ends.setdefault(tuple(variable.path.split("/")[-2:]), ([], []))[0].append(variable)
    for info in infos:
        ends.setdefault(tuple(info.name.split("/")[-2:]), ([], []))[1].append(info)
    return [(mine[0], theirs[0]) for mine, theirs in ends.values()
            if len(mine) == len(theirs) == 1 and tuple(mine[0].shape) == theirs[0].shape]


def _is_scalar(info: TensorInfo) -> bool:
    """Whether it is a number of the optimizer's, or of loss scaling, and not the model's."""
    return info.shape == () and info.kind != "trainable"


def state_names(variables: Iterable[Any]) -> list[str]:
    """Names for the variables of an optimizer whose step is traced: the ends of their paths, each once."""
    names: list[str] = []
    for variable in variables:
        name = str(variable.path.rpartition("/")[2])
        while name in names:
            name += "_"
        names.append(name)
    return names


def _match_optimizer(optimizer: Any, infos: list[TensorInfo],
                     flat: list[tuple[str, str]]) -> list[tuple[Any, TensorInfo]]:
    """`flat`: what names of a variable's slots begin with, in Keras and in the plan."""
    tails = {info.name.partition("/")[2]: info for info in infos}
    by_tail = _ByName((info.name.partition("/")[2], info) for info in infos)
    pairs = []
    for variable, own in zip(optimizer.variables, state_names(optimizer.variables)):
        name = variable.path.rpartition("/")[2] if "/" in variable.path else variable.path
        info = None
        if "u_product" in tails and re.fullmatch(r"variable(_\d+)?", variable.path):  # Nadam's has no name
            info = by_tail.take("u_product")
        elif name in ("iteration", "learning_rate"):
            info = by_tail.take(name)
        elif own in tails:
            info = by_tail.take(own)
        else:
            starts = [(mine, theirs) for mine, theirs in flat if name.startswith(mine)]
            # The longest name that begins it; of equal ones the first whose slot is not taken.
            for mine, theirs in sorted(starts, key=lambda pair: -len(pair[0])):
                info = by_tail.take(theirs + name[len(mine):])
                if info is not None:
                    break
        if info is not None and tuple(variable.shape) == info.shape:
            pairs.append((variable, info))
    return pairs
