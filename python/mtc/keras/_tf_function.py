# SPDX-License-Identifier: Apache-2.0
"""`tf.function`s of a script that train: their calls from the second on are steps of plans.

A function is called by TensorFlow the first time, which makes its variables. If it computes gradients, or calls
`strategy.run`, each further call is a step of a plan (`_tf_step`). What cannot be a plan stays with TensorFlow. The
last lines say which calls ran where, and why.
"""

from __future__ import annotations

import collections
import functools
import importlib
from typing import Any, Callable, Optional, Sequence, Union
from unittest import mock

from mtc._errors import Error, ModelError
from mtc.keras import _tf_step

tf: Any = importlib.import_module("tensorflow")

_original = tf.function
_MOST_PLANS = 8
_LIBRARIES = ("keras", "tensorflow", "tf_keras", "mtc")
functions: list[Function] = []


class Function:
    """What `tf.function` makes of a script's function, and its plans."""

    def __init__(self, python: Callable[..., Any], made: Any, devices: Optional[str]) -> None:
        functools.update_wrapper(self, python)
        self._python = python
        self._function = made
        self._devices = devices
        self._plans: dict[Any, Union[_tf_step.TensorFlowStep, str]] = {}  # a text says why there is none
        self.is_step = False
        self.by_tensorflow = 0
        self.in_plans = 0
        self.checked = 0
        self.where = ""
        self.reasons: collections.Counter[str] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not tf.executing_eagerly():  # within another function
            return self._function(*args, **kwargs)
        if not self.by_tensorflow + self.in_plans:
            return self._first(args, kwargs)
        if not self.is_step:
            self.by_tensorflow += 1
            return self._function(*args, **kwargs)
        try:
            return self._step(args, kwargs)
        except (Error, NotImplementedError) as error:
            return self._stays(str(error), args, kwargs)

    def _stays(self, reason: str, args: Sequence[Any], kwargs: Any) -> Any:
        """A call by TensorFlow, for this reason."""
        self.by_tensorflow += 1
        self.reasons[reason] += 1
        return self._function(*args, **kwargs)

    def _first(self, args: Sequence[Any], kwargs: Any) -> Any:
        """By TensorFlow; says whether it is a training step."""
        extended: Any = importlib.import_module("tensorflow.python.distribute.distribute_lib").StrategyExtendedV1
        runs: list[Any] = []

        def run(strategy: Any, *given: Any, **named: Any) -> Any:
            runs.append(strategy)
            return original(strategy, *given, **named)

        original = extended.call_for_each_replica
        with mock.patch.object(extended, "call_for_each_replica", run):
            result = self._function(*args, **kwargs)
        self.by_tensorflow += 1
        self.is_step |= bool(runs) or self._has_gradients()
        return result

    def _has_gradients(self) -> bool:
        try:
            graphs = [c.graph for c in self._function._list_all_concrete_functions()]
        except AttributeError:  # of another TensorFlow
            return False
        return any(op.name.startswith("gradient_tape/") for graph in graphs for op in graph.get_operations())

    def _step(self, args: Sequence[Any], kwargs: Any) -> Any:
        flat = tf.nest.flatten((args, kwargs))
        places = [i for i, value in enumerate(flat) if tf.is_tensor(value) and not isinstance(value, tf.Variable)]
        tensors = [flat[i] for i in places]
        several = (tf.distribute.DistributedValues, tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices)
        if any(isinstance(value, several) for value in flat) or not all(hasattr(t, "numpy") for t in tensors):
            raise ModelError("expected dense tensors of one device, found others: several devices are those of MTC, by "
                             "--devices")
        others = tuple(value if isinstance(value, (int, float, str, bool, type(None))) else id(value)
                       for i, value in enumerate(flat) if i not in places)
        key = (tuple(places), tuple((tuple(t.shape), t.dtype) for t in tensors), others)
        if key not in self._plans:
            try:
                return self._compile(key, args, kwargs, places, tensors)
            except (Error, NotImplementedError) as error:
                self._plans[key] = str(error)
                raise
        plan = self._plans[key]
        if isinstance(plan, str):
            return self._stays(plan, args, kwargs)
        outcome = plan(tensors)
        plan.write(outcome)
        self.in_plans += 1
        return plan.build(outcome.results)

    def _compile(self, key: Any, args: Sequence[Any], kwargs: Any, places: Sequence[int],
                 tensors: Sequence[Any]) -> Any:
        """Makes a plan for such arguments, and takes the first step with it if TensorFlow's is the same."""
        if len(self._plans) >= _MOST_PLANS:
            raise ModelError(f"expected arguments of at most {_MOST_PLANS} shapes or values, found more")

        def of_tensors(*given: Any) -> Any:
            values = list(tf.nest.flatten((args, kwargs)))
            for place, tensor in zip(places, given):
                values[place] = tensor
            whole, named = tf.nest.pack_sequence_as((tuple(args), kwargs), values)
            return python(*whole, **named)

        python = tf.autograph.experimental.do_not_convert(self._python) if not self._converts() else self._python
        plan = _tf_step.TensorFlowStep(of_tensors, tensors, self._name(), self._devices)
        before = _tf_step.values(plan.variables)
        try:
            with plan.draws.kept():
                mine = plan(tensors)
        except Error:
            plan.close()
            raise
        again = []
        if plan.draws:  # samples in another order would have other random numbers
            again.append(self._again(plan, _tf_step.nudged(before), before, args, kwargs, places, tensors))
        else:
            again.append(self._again(plan, before, before, args, kwargs, places, [
                tf.reverse(tensor, [0]) if tensor.shape.rank else tensor for tensor in tensors]))
        result = self._function(*args, **kwargs)
        theirs = _tf_step.values(plan.variables)
        names = [v.name for v in plan.variables]
        outputs = [value for value in tf.nest.flatten(result) if tf.is_tensor(value)]

        def found() -> dict[str, float]:
            made = _tf_step.differences(
                [*names, *(f"result {i}" for i in range(len(outputs)))], [*before, *[None] * len(outputs)],
                [*mine.state, *mine.results], [*theirs, *outputs], again)
            return {name: value for name, value in made.items() if not value <= 1}

        wrong = found()
        if wrong and not plan.draws:  # what the last digits of the variables do
            again.append(self._again(plan, _tf_step.nudged(before), theirs, args, kwargs, places, tensors))
            wrong = found()
        if wrong:
            plan.close()
            worst = max(wrong, key=lambda name: wrong[name])
            reason = (f"the step differs from TensorFlow's in {len(wrong)} of {len(names) + len(outputs)} values, most "
                      f"in {worst}, by {wrong[worst]:.3g} times what rounding allows")
            self._plans[key] = reason
            self.reasons[reason] += 1
            self.by_tensorflow += 1
            return result
        plan.write(mine)
        self._plans[key] = plan
        self.in_plans += 1
        self.checked += 1
        self.where = plan.session.devices
        return plan.build(mine.results)

    def _again(self, plan: _tf_step.TensorFlowStep, before: Sequence[Any], after: Sequence[Any], args: Sequence[Any],
               kwargs: Any, places: Sequence[int], tensors: Sequence[Any]) -> list[Any]:
        """What TensorFlow makes of these tensors with these variables, which have the values `after` it afterwards."""
        for variable, value in zip(plan.variables, before):
            variable.assign(value)
        values = list(tf.nest.flatten((args, kwargs)))
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        whole, named = tf.nest.pack_sequence_as((tuple(args), kwargs), values)
        with plan.draws.kept():
            result = self._function(*whole, **named)
        made = [*_tf_step.values(plan.variables), *(value for value in tf.nest.flatten(result) if tf.is_tensor(value))]
        for variable, value in zip(plan.variables, after):
            variable.assign(value)
        return made

    def _converts(self) -> bool:
        return bool(getattr(self._function, "_autograph", True))

    def _name(self) -> str:
        return str(getattr(self._python, "__name__", "step")).strip("<>")

    def line(self) -> str:
        """What ran where, and why."""
        said = f"{self._name()}: "
        if self.in_plans:
            said += (f"{_calls(self.in_plans)} through MTC on {self.where}, in which {self.checked} "
                     f"plan{'s' if self.checked != 1 else ''} agreed with TensorFlow; ")
        said += f"{_calls(self.by_tensorflow)} by TensorFlow: the first, which makes the variables"
        for reason, count in self.reasons.items():
            said += f"; {_calls(count)} because of this: {reason}"
        return said


def _calls(count: int) -> str:
    return f"{count} call{'s' if count != 1 else ''}"


def _is_of_script(function: Any) -> bool:
    module = str(getattr(function, "__module__", "") or "")
    return callable(function) and module.split(".")[0] not in _LIBRARIES


def install(devices: Optional[str]) -> None:
    """From now on `tf.function` makes functions that may become plans."""
    def function(func: Any = None, *args: Any, **options: Any) -> Any:
        if func is None:
            return functools.partial(function, *args, **options) if not args else _original(func, *args, **options)
        made = _original(func, *args, **options)
        if not _is_of_script(func):
            return made
        whole = Function(func, made, devices)
        functions.append(whole)
        return whole

    functions.clear()
    tf.function = function


def uninstall() -> None:
    """`tf.function` is TensorFlow's."""
    tf.function = _original


def lines() -> list[str]:
    """What the steps of the script's functions ran by."""
    return [function.line() for function in functions if function.is_step]
