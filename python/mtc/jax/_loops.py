# SPDX-License-Identifier: Apache-2.0
"""Rules of the loops `scan` and `while`.

A `scan` whose steps are alike is an `mt.scan`. Other loops are unrolled: what a step computes may then depend on what
is known of it, such as a counter by which it looks up a row.
"""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence

import jax
import numpy as np
from jax.extend import core

from mtc._trace import Refused, Value, layout, loops, moves, reductions
from mtc._trace import elementwise as e
from mtc.jax import _threefry as threefry
from mtc.jax._reader import UNKNOWN, Keys, Reader, is_concrete, is_key, rule


@rule("scan")
def _scan(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    p = equation.params
    length, consts, carries = p["length"], p["num_consts"], p["num_carry"]
    if not isinstance(length, int):
        return _over_samples(r, equation, inputs)
    fixed, carry, sliced = inputs[:consts], list(inputs[consts:consts + carries]), inputs[consts + carries:]
    whole = _whole(r, p, fixed, carry, sliced)
    if whole is not None:
        return whole
    rows: list[list[Any]] = []
    for i in r.graph.unroll(length):
        at = length - 1 - i if p["reverse"] else i
        made = r.read(p["jaxpr"], [*fixed, *carry, *(_row(r, x, at) for x in sliced)])
        carry = made[:carries]
        rows.append(made[carries:])
    if p["reverse"]:
        rows.reverse()
    return [*carry, *(_stack(r, column) for column in zip(*rows))]


def _over_samples(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """A loop along the samples, as jax.lax.map has it and the gradient of this, whose carries are sums over them."""
    p = equation.params
    body, consts, carries = p["jaxpr"], p["num_consts"], p["num_carry"]
    own = body.jaxpr.invars[consts:consts + carries]
    if not all(map(functools.partial(_is_total, body.jaxpr), own, body.jaxpr.outvars)):
        raise Refused("a loop along the samples of a batch, each of whose steps depends on the one before")
    function = core.jaxpr_as_fun(body)

    def step(*given: Any) -> Any:
        return function(*given[:consts], *(jax.numpy.zeros(v.aval.shape, v.aval.dtype) for v in own), *given[consts:])

    places = [None] * consts + [0] * (len(equation.invars) - consts - carries)
    atoms = [*equation.invars[:consts], *equation.invars[consts + carries:]]
    specs = [jax.ShapeDtypeStruct(a.aval.shape, a.aval.dtype) for a in atoms]  # type: ignore[no-untyped-call]
    closed = jax.make_jaxpr(jax.vmap(step, places))(*specs)
    made = r.read(closed, [*inputs[:consts], *inputs[consts + carries:]])
    totals = [r.value(before) + reductions.reduce("sum", r.value(m), [0])
              for before, m in zip(inputs[consts:consts + carries], made)]
    return [*totals, *made[carries:]]


def _is_total(jaxpr: Any, before: Any, after: Any) -> bool:
    """Whether a carry is a sum: what a step adds to it does not depend on it."""
    users = [e for e in jaxpr.eqns if any(v is before for v in e.invars)]
    return (len(users) == 1 and users[0].primitive.name in ("add", "add_any") and users[0].outvars[0] is after
            and sum(v is before for v in users[0].invars) == 1 and sum(v is before for v in jaxpr.outvars) == 0
            and not any(v is after for e in jaxpr.eqns for v in e.invars))


def _whole(r: Reader, p: Any, fixed: Sequence[Any], carry: Sequence[Any],
           sliced: Sequence[Any]) -> Optional[list[Any]]:
    """The results of a `scan` as one loop; None: it is unrolled, as the steps differ by more than numbers."""
    length, jaxpr, consts = p["length"], p["jaxpr"].jaxpr, p["num_consts"]
    own = jaxpr.invars[consts:consts + len(carry)]
    known = [_after(jaxpr, variable, out, value, length) for variable, out, value in zip(own, jaxpr.outvars, carry)]
    places = [i for i, value in enumerate(known) if value is None]  # of the carries of the loop
    if not all(_is_number(carry[i]) for i in places) or not all(map(_is_part, sliced)):
        return None
    outputs: list[Any] = []  # after the carries; an array where it is the same in all steps
    problems = dict(r.problems)

    def step(carried: Sequence[Value], parts: Sequence[Value]) -> list[Value]:
        state = list(carry)
        for i, value in zip(places, carried):
            state[i] = value
        made = r.read(p["jaxpr"], [*fixed, *state, *parts])
        if len(r.problems) != len(problems):
            raise Refused("a step of the loop")
        outputs[:] = made[len(carry):]
        results = [r.value(made[i]) for i in places]
        return [*results, *(r.value(m) for m in outputs if not _is_array(m))]

    try:
        before = [r.value(carry[i]) for i in places]
        given = [r.value(s) for s in sliced]
    except Refused:
        return None
    found = loops.scan(r.graph, length, before, given, step, p["reverse"])
    r.problems = problems
    if found is None:
        return None
    results = iter(found)
    states = [next(results) if value is None else value for value in known]
    return [*states, *(np.stack([m] * length) if _is_array(m) else next(results) for m in outputs)]


def _is_array(value: Any) -> bool:
    return is_concrete(value) and not is_key(value)


def _is_number(value: Any) -> bool:
    """Whether a carry may be one of the loop: of integers, how large they are would not be known."""
    return isinstance(value, Value) and value.dtype != "i32" or _is_array(value) and value.dtype.kind in "fb"


def _is_part(value: Any) -> bool:
    """Whether an input may be one of the loop: integers that are known, such as places, stay so."""
    return isinstance(value, Value) or _is_array(value) and value.dtype.kind in "fb"


def _after(jaxpr: Any, variable: Any, out: Any, value: Any, length: int) -> Any:
    """What a carry is after the loop, if no step changes it, or if it is a counter that nothing reads; else None."""
    if out is variable:
        return value
    if not _is_array(value):
        return None
    readers = [eqn for eqn in jaxpr.eqns if any(v is variable for v in eqn.invars)]
    if len(readers) != 1 or readers[0].primitive.name != "add" or readers[0].outvars[0] is not out or value.ndim:
        return None
    if any(v is variable for v in jaxpr.outvars) or sum(v is out for v in jaxpr.outvars) != 1:
        return None
    if any(v is out for eqn in jaxpr.eqns for v in eqn.invars) or value.dtype.kind not in "iu":
        return None
    step = next((v.val for v in readers[0].invars if isinstance(v, core.Literal)), None)
    return None if step is None else np.asarray(value + step * length, value.dtype)


def _row(r: Reader, value: Any, index: int) -> Any:
    if is_concrete(value):
        return value[index] if is_key(value) else np.asarray(value[index])
    if isinstance(value, Keys):
        return value.at(index)
    if isinstance(value, threefry.Words):
        return threefry.Words(_row(r, value.value, index))
    return moves.at(r.value(value), 0, index)


def _stack(r: Reader, column: Sequence[Any]) -> Any:
    if all(is_concrete(c) and not is_key(c) for c in column):
        return np.stack(column)
    if any(isinstance(c, threefry.Words) for c in column):
        return threefry.Words(_stack(r, [threefry.words_of(r, c).value for c in column]))
    return moves.concat([layout.expand_dims(r.value(c), (0,)) for c in column], 0)


def _whole_while(r: Reader, p: Any, cond: Sequence[Any], body: Sequence[Any],
                 carry: Sequence[Any]) -> Optional[list[Any]]:
    """The results of a `while` that a counter ends and whose steps do not read it, as one loop; None: it is another."""
    jaxpr = p["body_jaxpr"].jaxpr
    own, tested = jaxpr.invars[len(body):], p["cond_jaxpr"].jaxpr.invars[len(cond):]
    counters = [i for i, variable in enumerate(tested) if any(variable in eqn.invars for eqn in p["cond_jaxpr"].eqns)]
    if len(counters) != 1 or not all(map(is_concrete, cond)):
        return None
    (i,) = counters
    value = carry[i]
    if not _is_array(value) or _after(jaxpr, own[i], jaxpr.outvars[i], value, 1) is None:
        return None
    steps, state = 0, [UNKNOWN] * len(carry)
    for _ in r.graph.unroll():
        state[i] = value
        (goes_on,) = r.read(p["cond_jaxpr"], [*cond, *state])
        if not np.asarray(goes_on).all():
            break
        value, steps = _after(jaxpr, own[i], jaxpr.outvars[i], value, 1), steps + 1
    return _whole(r, {"length": steps, "jaxpr": p["body_jaxpr"], "num_consts": len(body), "reverse": False}, body,
                  carry, ())


@rule("while")
def _while(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """Its steps one after the other. Where the data end the loop, the steps behind that change nothing, and a counter
    that the condition bounds ends them. Under `vmap` the condition is one of each sample."""
    p = equation.params
    tests, bodies = p["cond_nconsts"], p["body_nconsts"]
    cond, body = inputs[:tests], inputs[tests:tests + bodies]
    carry = list(inputs[tests + bodies:])
    whole = _whole_while(r, p, cond, body, carry)
    if whole is not None:
        return whole
    results, active = carry, None  # what the loop gives, and whether it still runs; None: it does
    for _ in r.graph.unroll():
        (goes_on,) = r.read(p["cond_jaxpr"], [*cond, *carry])
        if goes_on is UNKNOWN:
            return [UNKNOWN] * len(carry)
        known = _elements(goes_on)
        if known is not None and not known.any():
            break
        if known is None or not known.all():
            active = goes_on if active is None else e.logical_and(active, r.value(goes_on))
        after = r.read(p["body_jaxpr"], [*body, *carry])
        if active is None:
            carry = results = after
            continue
        counters = [_elements(a) is not None and _elements(b) is not None for a, b in zip(carry, after)]
        if all(np.array_equal(_elements(a), _elements(b)) for a, b, counts in zip(carry, after, counters) if counts):
            raise Refused("a loop whose number of steps depends on the data: bound it by a counter in its condition, "
                          "such as (i < 20) & (error > 1e-3)")
        results = [_frozen(r, r.value(active), a, b) for a, b in zip(after, results)]
        # Where the loop runs, a counter is what it is without an end.
        carry = [a if counts else b for a, b, counts in zip(after, results, counters)]
    return results


def _elements(value: Any) -> Any:
    """The elements, where they are known, with those that are equal once; else None."""
    return value if is_concrete(value) and not is_key(value) else value.constant if isinstance(value, Value) else None


def _frozen(r: Reader, active: Value, after: Any, before: Any) -> Any:
    """What a step has made where the loop runs, else what was before."""
    if after is before or after is UNKNOWN or before is UNKNOWN:
        return after
    value = r.value(after)
    return e.select(layout.expand_dims(active, range(active.rank, value.rank)), value, r.value(before))
