# SPDX-License-Identifier: Apache-2.0
"""The update of an optimizer that JAX traces, as a part of a plan.

Its state is variables of the plan, each by the name that it has in the tree of the state.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, MutableMapping, Optional, Sequence

import jax
import numpy as np

from mtc._errors import DataError, ModelError
from mtc._tensors import Array, stored
from mtc._trace import Value, places, reals
from mtc._trace import elementwise as e
from mtc._trace.graph import dtype_of
from mtc.jax._reader import Reader
from mtc.jax._tree import Tree

Spec: Any = jax.ShapeDtypeStruct
PREFIX = "optimizer"
# (parameters, gradients, state, loss) -> (parameters, state), all but the loss lists of arrays
Function = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], Any], tuple[Sequence[Any], Sequence[Any]]]


@dataclasses.dataclass
class Update:
    """What an optimizer makes of parameters, gradients and its state.

    Attributes:
        kind: the optimizer's name.
        owner: its framework.
        params: the parameters.
        state: its state before the first step: arrays of float32, int32 or bool.
        function: what JAX traces.
        words: of the variables of the state that are no slots, by their names.
    """

    kind: str
    owner: str
    params: Tree
    state: Tree
    function: Function
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        wrong = [f"{self.kind}: {name}: expected a state of {reals.name()}, int32 or bool, found {array.dtype}"
                 for name, array in zip(self.state.names, self.state.arrays)
                 if array.dtype not in (reals.real(), np.int32, np.int64, np.bool_)]
        if wrong:
            raise ModelError("\n".join(wrong))

    def trace(self, reader: Reader, variables: Sequence[Value], loss: Optional[Value]) -> None:
        """Adds the update to the reader's graph. `variables`: of the parameters."""
        graph = reader.graph
        slots = [graph.slot(name, array.shape, "i32" if array.dtype == np.bool_ else dtype_of(array.dtype),
                            self.words.get(name, "slot")) for name, array in zip(self.state.names, self.state.arrays)]
        with graph.at(PREFIX):
            gradients = [graph.gradient(variable) for variable in variables]
            state = [e.compare("ne", slot, 0) if array.dtype == np.bool_ else slot
                     for slot, array in zip(slots, self.state.arrays)]
            made = reader.read(self._jaxpr(), [*variables, *gradients, *state, 0.0 if loss is None else loss])
            reader.check()
            for name, before, after in zip([*self.params.names, *self.state.names], [*variables, *slots], made):
                value = reader.value(after)
                if value is not before and "role(iteration)" not in self.words.get(name, ""):
                    graph.assign(name, e.cast(value, before.dtype))

    def _jaxpr(self) -> Any:
        count, end = len(self.params.names), 2 * len(self.params.names)

        def flat(*given: Any) -> Any:
            params, state = self.function(given[:count], given[count:end], given[end:-1], given[-1])
            return [*params, *state]

        specs = [Spec(a.shape, reals.real()) for a in self.params.arrays]
        state = [Spec(a.shape, a.dtype) for a in self.state.arrays]
        try:
            return jax.make_jaxpr(flat)(*specs, *specs, *state, Spec((), reals.real()))
        except ModelError:
            raise
        except Exception as error:  # what JAX cannot trace
            raise ModelError(f"{self.kind}: {places.refusal(error)}") from error

    def weights(self) -> dict[str, Array]:
        """The first values of the variables of the state."""
        return {name: stored(array, doubles=True) for name, array in zip(self.state.names, self.state.arrays)}

    def read(self, variables: MutableMapping[str, Any]) -> Any:
        """The state in the variables of a session, as the optimizer has it, of NumPy arrays."""
        return self.state.build([np.asarray(variables[name]).astype(array.dtype).reshape(array.shape)
                                 for name, array in zip(self.state.names, self.state.arrays)])

    def write(self, state: Any, variables: MutableMapping[str, Any]) -> None:
        """Sets the variables of a session from a state."""
        found = Tree.of(arrays_of(state), PREFIX)
        if found.structure != self.state.structure:
            raise DataError("expected a state of the optimizer that was compiled, found one of another structure")
        for name, array, first in zip(found.names, found.arrays, self.state.arrays):
            if array.shape != first.shape:
                raise DataError(f"{name}: expected the shape {list(first.shape)}, found {list(array.shape)}")
            variables[name] = stored(array, doubles=True)


def arrays_of(tree: Any) -> Any:
    """The tree with arrays in place of numbers."""
    return jax.tree.map(lambda value: value if hasattr(value, "dtype") else jax.numpy.asarray(value), tree)
