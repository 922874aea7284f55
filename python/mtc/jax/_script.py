# SPDX-License-Identifier: Apache-2.0
"""`python -m mtc.jax SCRIPT`: functions under `jax.jit` whose arguments are sharded over the batch run as plans.

A function is called by JAX the first time. If an argument is then an array that is sharded along its first axis, over
one or several axes of a mesh, the second call makes a plan of it (`mtc.jax.step`): these arguments, and others with as
many rows, are split between devices; what comes back in the form of another argument is the state; other results are
metrics.
What cannot be a plan stays on JAX. The last lines say which calls ran where, and why.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import runpy
import sys
from typing import Any, Callable, Optional, Sequence

import jax
import numpy as np

from mtc._errors import Error, ModelError
from mtc.jax import _derivative, _whole

_jit = jax.jit


class Function:
    """A function under `jax.jit`, which may become a plan."""

    def __init__(self, function: Callable[..., Any], jitted: Any, devices: Optional[str]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._jitted = jitted
        self._devices = devices
        self._step: Optional[_whole.WholeStep] = None
        self._split: list[int] = []  # numbers of the arguments that are split
        self._rest: list[int] = []
        self._places: dict[int, str] = {}  # number of a result -> the part of the state that it is
        self._tuple = False
        self._parts = 0
        self.on_jax = 0
        self.in_plan = 0
        self.reason = ""
        self.is_candidate = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._step is None and self.on_jax and self.is_candidate and not self.reason:
            self._compile(args, kwargs)
        if self._step is not None and self._fits(args, kwargs):
            return self._run(args)
        if any(isinstance(value, jax.core.Tracer) for value in jax.tree.leaves((args, kwargs))):
            return self._jitted(*args, **kwargs)  # within another function
        if self.on_jax == 0:
            self.is_candidate = bool(_sharded(args))
        self.on_jax += 1
        return self._jitted(*_read(args), **_read(kwargs))

    def _compile(self, args: Sequence[Any], kwargs: Any) -> None:
        """Makes the plan, or says why there is none."""
        try:
            if kwargs:
                raise ModelError("expected arguments without names")
            rows = {np.shape(a)[0] for i in _sharded(args) for a in jax.tree.leaves(args[i]) if np.ndim(a)}
            if len(rows) != 1:
                raise ModelError(f"expected one number of samples in the sharded arguments, found {sorted(rows)}")
            (count,) = rows
            arrays = [jax.tree.leaves(argument) for argument in args]
            self._split = [i for i, found in enumerate(arrays)
                           if found and all(np.ndim(a) and np.shape(a)[0] == count for a in found)]
            self._rest = [i for i in range(len(args)) if i not in self._split]
            whole: Any = self._as_step(args)
            whole.inner = self._function
            step = _whole.step(whole, *self._divided(_read(args)), batch_size=count, devices=self._devices,
                               name=self._name(), verbose=0)
        except (Error, NotImplementedError) as error:
            self.reason = str(error)
            return
        self._step = step

    def _divided(self, args: Sequence[Any]) -> tuple[Any, Any]:
        return {str(i): args[i] for i in self._rest}, {f"argument{i}": args[i] for i in self._split}

    def _as_step(self, example: Sequence[Any]) -> Callable[[Any, Any], Any]:
        """The function of a state and a batch."""
        def whole(state: Any, batch: Any) -> Any:
            args = [batch[f"argument{i}"] if i in self._split else state[str(i)] for i in range(len(example))]
            result = self._function(*args)
            parts = list(result) if isinstance(result, tuple) else [result]
            new = dict(state)
            self._places = {}
            for number, part in enumerate(parts):
                for key, old in state.items():
                    if key not in self._places.values() and _alike(part, old):
                        self._places[number] = key
                        new[key] = part
                        break
            self._tuple = isinstance(result, tuple)
            self._parts = len(parts)
            return new, {str(n): part for n, part in enumerate(parts) if n not in self._places}
        return whole

    def _fits(self, args: Sequence[Any], kwargs: Any) -> bool:
        assert self._step is not None
        rows = {np.shape(a)[0] if np.ndim(a) else -1 for i in self._split if i < len(args)
                for a in jax.tree.leaves(args[i])}
        return not kwargs and len(args) == len(self._split) + len(self._rest) and len(rows) == 1 and \
            0 < min(rows) <= self._step.plan.batch_size

    def _run(self, args: Sequence[Any]) -> Any:
        assert self._step is not None
        state, batch = self._divided(args)
        new, metrics = self._step(state, jax.tree.map(np.asarray, batch), allow_nan=True)
        self.in_plan += 1
        parts = [new[self._places[n]] if n in self._places else metrics[str(n)] for n in range(self._parts)]
        return tuple(parts) if self._tuple else parts[0]

    def _name(self) -> str:
        return str(getattr(self._function, "__name__", "step")).strip("<>")

    def line(self) -> str:
        """What ran where, and why."""
        name = self._name()
        if self._step is not None:
            return (f"{name}: {self.in_plan} calls through MTC on {self._step.session.devices}, the first "
                    f"{self.on_jax} by JAX")
        return f"{name}: {self.on_jax} calls by JAX" + (f": {self.reason}" if self.reason else "")


def _sharded(args: Sequence[Any]) -> list[int]:
    """Numbers of the arguments that are sharded along their first axis alone."""
    return [i for i, argument in enumerate(args) if any(map(_is_sharded, jax.tree.leaves(argument)))]


def _is_sharded(array: Any) -> bool:
    sharding = getattr(array, "sharding", None)
    spec = getattr(sharding, "spec", None)
    if not isinstance(sharding, jax.sharding.NamedSharding) or not spec or not spec[0]:
        return False
    return all(axis is None for axis in spec[1:])


def _alike(a: Any, b: Any) -> bool:
    """Whether two trees have the same structure, shapes and types."""
    x, y = jax.tree.leaves(a), jax.tree.leaves(b)
    first: Any = jax.tree.structure(a)
    second: Any = jax.tree.structure(b)
    types = jax.numpy.result_type
    same = bool(first == second) and all(np.shape(i) == np.shape(j) and types(i) == types(j) for i, j in zip(x, y))
    return bool(same and any(np.ndim(i) for i in x))


def _read(tree: Any) -> Any:
    """The tree with arrays in place of those on MTC's devices."""
    return jax.tree.map(lambda array: np.asarray(array) if isinstance(array, _whole.DeviceArray) else array, tree)


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="python -m mtc.jax", description="Runs a script of JAX. Jitted functions "
                                     "whose arguments are sharded over the batch run as plans from their second call "
                                     "on; the last lines say what ran where, and why.",
                                     epilog="example: python -m mtc.jax --devices cpu:1x8 train.py --epochs 3")
    parser.add_argument("--devices", help="devices of the plans, as of mtrun: cpu:4, cpu:1x8, cuda:0-3. Default: all")
    parser.add_argument("script", help="the script")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    given = parser.parse_args(arguments)
    if not os.path.isfile(given.script):
        parser.error(f"cannot open {given.script}: no such file")
    functions: list[Function] = []

    def jit(function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(jit, **options)
        made = Function(function, _jit(function, **options), given.devices)
        functions.append(made)
        return made

    sys.argv = [given.script, *given.rest]
    sys.path.insert(0, str(pathlib.Path(given.script).resolve().parent))
    with _derivative.installed():
        jax.jit = jit
        try:
            runpy.run_path(given.script, run_name="__main__")
        finally:
            jax.jit = _jit
            for function in functions:
                if function.is_candidate and function.on_jax + function.in_plan:
                    print(f"mtc.jax: {function.line()}", file=sys.stderr)
            if not any(function.is_candidate for function in functions):
                print("mtc.jax: no function of jax.jit had an argument that is sharded over the batch: nothing ran "
                      "through MTC", file=sys.stderr)
