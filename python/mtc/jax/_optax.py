# SPDX-License-Identifier: Apache-2.0
"""Optimizers of optax: `update` is traced, as the loss is; what `init` makes is variables of the plan."""

from __future__ import annotations

import inspect
from typing import Any, Sequence

import jax

from mtc._errors import ModelError
from mtc._trace import places
from mtc.jax._tree import Tree
from mtc.jax._update import PREFIX, Update, arrays_of

_OF_LOSS = ("value", "grad", "value_fn")  # arguments of `update` by which a transformation asks for the loss


def is_optax(given: Any) -> bool:
    """Whether it is a pair of `init` and `update`."""
    return callable(getattr(given, "init", None)) and callable(getattr(given, "update", None))


def update_of(optimizer: Any, params: Tree) -> Update:
    """The update of an optimizer for these parameters."""
    kind = _name_of(optimizer)
    try:
        state = arrays_of(optimizer.init(_whole(params, [jax.numpy.asarray(a) for a in params.arrays])))
    except Exception as error:  # the transformation's own
        raise ModelError(f"{kind}: {places.refusal(error)}") from error
    first = Tree.of(state, PREFIX)
    reads_loss = _reads_loss(optimizer)

    def function(given: Sequence[Any], gradients: Sequence[Any], old: Sequence[Any],
                 loss: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        before, gradient = _whole(params, given), _whole(params, gradients)
        extra = {"value": loss, "grad": gradient} if reads_loss else {}
        changes, new = optimizer.update(gradient, first.build(old), before, **extra)
        after = jax.tree.map(lambda p, u: p if p is None or u is None else (p + u).astype(p.dtype), before, changes,
                             is_leaf=lambda part: part is None)
        found = Tree.of(arrays_of(new), PREFIX)
        if found.names != first.names:
            raise ModelError(f"{kind}: expected a new state of the structure of the first one, found another")
        return jax.tree.leaves(after), found.arrays

    return Update(kind, "optax", params, first, function)


def _inner(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _reads_loss(optimizer: Any) -> bool:
    known = inspect.signature(_inner(optimizer.update)).parameters
    return any(name in known for name in _OF_LOSS) or any(p.kind is p.VAR_KEYWORD for p in known.values())


def _whole(tree: Tree, arrays: Sequence[Any]) -> Any:
    """The parameters as optax is given them: what is no array is nothing."""
    given = iter(arrays)
    return jax.tree_util.tree_unflatten(tree.structure, [next(given) if o is None else None for o in tree.others])


def _name_of(optimizer: Any) -> str:
    """The names of the transformations that it is made of."""
    names: list[str] = []

    def collect(update: Any) -> None:
        update = _inner(update)
        name = getattr(update, "__qualname__", type(update).__name__).split(".")[0]
        inner = inspect.getclosurevars(update).nonlocals if inspect.isfunction(update) else {}
        if "update_fns" in inner:
            for part in inner["update_fns"]:
                collect(part)
        elif name == "with_extra_args_support" and "tx" in inner:
            collect(inner["tx"].update)
        elif name != "identity":
            names.append(name)

    collect(optimizer.update)
    return ", ".join(names) or "identity"
