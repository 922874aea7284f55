# SPDX-License-Identifier: Apache-2.0
"""Random numbers of Keras in a step of TensorFlow: TensorFlow draws them before each step, which has them as arrays.

So the numbers are those of TensorFlow, to the bit, and their generators go on as they do without MTC.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
from typing import Any, Callable, Iterator, Sequence
from unittest import mock

from mtc import _private
from mtc._errors import ModelError

tf: Any = importlib.import_module("tensorflow")
_OF_SHAPE = ("normal", "uniform", "truncated_normal", "randint")


@functools.cache
def _own(name: str) -> Any:
    """Keras' own function of this name. TensorFlow may be imported by Keras, so this module does not import Keras."""
    return getattr(_private.keras_random(), name)


@dataclasses.dataclass
class _Draw:
    """One draw of a step: a function of Keras' back end, and what it takes, which no data decide."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    seed: Any

    def __call__(self) -> Any:
        return self.function(*self.arguments, **self.keywords, seed=self.seed)


class Draws:
    """The draws of a step, in their order."""

    def __init__(self) -> None:
        self._made: list[_Draw] = []

    def __len__(self) -> int:
        return len(self._made)

    def find(self, function: Callable[..., Any], tensors: Sequence[Any]) -> None:
        """Traces the step, and keeps what it draws."""
        traced: list[Any] = []
        inner: list[bool] = []  # for each draw, whether it is of a branch or a loop

        def whole(*given: Any) -> Any:
            traced.append(tf.compat.v1.get_default_graph())
            return function(*given)

        def record(draw: _Draw) -> Any:
            inner.append(tf.compat.v1.get_default_graph() is not traced[-1])
            self._made.append(draw)
            return draw()

        with _replaced(record):
            tf.function(whole, autograph=True).get_concrete_function(*tensors)
        if any(inner):
            raise ModelError("it draws random numbers in a branch or a loop")

    @contextlib.contextmanager
    def given(self, arrays: Sequence[Any]) -> Iterator[None]:
        """Within it, the step has these arrays in place of what it draws."""
        left = list(arrays)

        def take(draw: _Draw) -> Any:  # a step that draws others each time that it is traced draws them itself
            return left.pop(0) if left else draw()

        with _replaced(take):
            yield

    def draw(self) -> list[Any]:
        """The numbers of a step. The generators go on."""
        return [draw() for draw in self._made]

    def states(self) -> list[Any]:
        """The states of the generators."""
        return [tf.identity(generator.state.value) for generator in self._of_generators()]

    def restore(self, states: Sequence[Any]) -> None:
        """Gives the generators these states."""
        for generator, state in zip(self._of_generators(), states):
            generator.state.value.assign(state)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """The generators are as before after it."""
        before = self.states()
        try:
            yield
        finally:
            self.restore(before)

    def _of_generators(self) -> list[Any]:
        found = {}
        for draw in self._made:
            generator = _private.keras_generator() if draw.seed is None else draw.seed
            if hasattr(generator, "state"):
                found[id(generator)] = generator
        return list(found.values())


@contextlib.contextmanager
def _replaced(made: Callable[[_Draw], Any]) -> Iterator[None]:
    """Within it, Keras has what `made` gives for draws whose shapes and other arguments are known before the step."""
    def of_shape(name: str) -> Callable[..., Any]:
        def function(*arguments: Any, seed: Any = None, **keywords: Any) -> Any:
            try:
                given = arguments[0] if arguments else keywords["shape"]
                # That of a tensor, tf.shape(x), is known where the tensor's is.
                shape = tuple(int(n) for n in (tf.get_static_value(given) if tf.is_tensor(given) else given))
            except (TypeError, ValueError):  # a shape that depends on tensors
                return _own(name)(*arguments, **keywords, seed=seed)
            others = {key: value for key, value in keywords.items() if key != "shape"}
            if any(tf.is_tensor(value) for value in (*arguments[1:], *others.values())):
                return _own(name)(*arguments, **keywords, seed=seed)
            return made(_Draw(_own(name), (shape, *arguments[1:]), others, seed))

        return function

    def dropout(inputs: Any, rate: Any, noise_shape: Any = None, seed: Any = None) -> Any:
        known = isinstance(rate, (int, float)) and 0 < rate < 1 and inputs.shape.is_fully_defined() and not any(
            tf.is_tensor(n) for n in noise_shape or ())
        if not known:
            return _own("dropout")(inputs, rate, noise_shape, seed)
        shape = [given or n for given, n in zip(noise_shape or inputs.shape, inputs.shape)]
        return inputs * made(_Draw(_mask, (tuple(shape), inputs.dtype, rate), {}, seed))

    new = {**{name: of_shape(name) for name in _OF_SHAPE}, "dropout": dropout}
    with contextlib.ExitStack() as stack:
        for name, function in new.items():
            _own(name)  # which is Keras' own, as long as nothing is replaced
            stack.enter_context(mock.patch.object(_private.keras_random(), name, function))
        yield


def _mask(shape: Sequence[int], dtype: Any, rate: float, seed: Any) -> Any:
    """What dropout multiplies with: 0, or the number that makes up for it."""
    return _own("dropout")(tf.ones(shape, dtype), rate, None, seed)
