# SPDX-License-Identifier: Apache-2.0
"""The structure of a model's inputs and outputs: which array of the caller is which entry of the plan."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence

from mtc._errors import DataError

if TYPE_CHECKING:
    from mtc._plan import Plan


@dataclasses.dataclass(frozen=True)
class Structure:
    """Names in the order and by the keys that the caller uses.

    Attributes:
        inputs: names of the plan's inputs, in the model's order.
        input_keys: other names for them, as the keys of a dict of inputs.
        outputs: names of the outputs, in the model's order.
        output_keys: other names for them.
        targets: of each output the name of its target in the plan; "" where no loss takes one.
        weights: of each output the name of its sample weights in the plan; "" where there are none.
        pack: makes the model's result of its outputs; without it the model says how.
    """

    inputs: tuple[str, ...]
    input_keys: Mapping[str, str]
    outputs: tuple[str, ...]
    output_keys: Mapping[str, str]
    targets: tuple[str, ...]
    weights: tuple[str, ...]
    pack: Optional[Callable[[Sequence[Any]], Any]] = None

    @staticmethod
    def of(plan: Plan, inputs: Sequence[str] = (), input_keys: Optional[Mapping[str, str]] = None,
           output_keys: Sequence[str] = ()) -> Structure:
        """That of a plan. A model says the order of its inputs, their keys, and other names of its outputs."""
        outputs = tuple(t.name for t in plan.outputs)
        targets, weights = {t.name for t in plan.targets}, {t.name for t in plan.sample_weights}
        single = len(outputs) == 1
        named = ["target" if single else f"{o}_target" for o in outputs]
        weighing = ["sample_weight" if single else f"{o}_sample_weight" for o in outputs]
        known = {t.name for t in plan.inputs}
        # What the model does not use is not in the plan.
        ordered = [name for name in inputs if name in known] or [t.name for t in plan.inputs]
        if not set(named) & targets and targets:  # a model that is no Keras model names its targets itself
            named = [t.name for t in plan.targets]
            weighing = [t.name for t in plan.sample_weights] or [""] * len(named)
        others = dict(zip(output_keys, outputs)) if len(output_keys) == len(outputs) else {}
        return Structure(tuple(ordered), dict(input_keys or {}), outputs, others,
                         tuple(n if n in targets else "" for n in named),
                         tuple(n if n in weights else "" for n in weighing))

    def bind(self, x: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        """Arrays by the names of the plan's entries."""
        bound = self._inputs(x)
        if y is not None:
            bound.update(self._by_output(y, self.targets, "targets"))
        if sample_weight is not None:
            if not any(self.weights):
                raise DataError("expected a plan that takes weights of samples, found one without: "
                                "compile it with sample_weights=True")
            if isinstance(sample_weight, (dict, list, tuple)) and _holds_arrays(sample_weight, len(self.weights)):
                bound.update(self._by_output(sample_weight, self.weights, "sample weights"))
            else:  # one for all outputs
                bound.update({name: sample_weight for name in self.weights if name})
        return bound

    def _inputs(self, x: Any) -> dict[str, Any]:
        names = self.inputs
        if isinstance(x, Mapping):
            found = {self.input_keys.get(key, key): value for key, value in x.items()}
            missing = [name for name in names if name not in found]
            if missing:
                raise DataError(f"expected inputs {', '.join(names)}, found {', '.join(map(str, x)) or 'none'}")
            return {name: found[name] for name in names}
        if isinstance(x, (list, tuple)) and _holds_arrays(x, len(names)):
            if len(x) != len(names):
                raise DataError(f"expected {len(names)} inputs: {', '.join(names)}; found {len(x)}")
            return dict(zip(names, x))
        if len(names) != 1:
            raise DataError(f"expected {len(names)} inputs: {', '.join(names)}; found one {type(x).__name__}")
        return {names[0]: x}

    def _by_output(self, value: Any, entries: tuple[str, ...], what: str) -> dict[str, Any]:
        wanted = [name for name in entries if name]
        if isinstance(value, Mapping):
            by_key: dict[str, str] = {**dict(zip(self.outputs, entries)), **{e: e for e in wanted}}
            by_key.update({key: by_key[output] for key, output in self.output_keys.items()})
            unknown = [key for key in value if key not in by_key]
            if unknown:
                raise DataError(f"expected {what} of {', '.join(self.output_keys or self.outputs)}, "
                                f"found {', '.join(map(str, unknown))}")
            return {by_key[key]: array for key, array in value.items() if by_key[key]}
        if isinstance(value, (list, tuple)) and _holds_arrays(value, len(entries)):
            if len(value) not in (len(entries), len(wanted)):
                raise DataError(f"expected {what} for {len(entries)} outputs, found {len(value)}")
            names = entries if len(value) == len(entries) else wanted
            return {name: array for name, array in zip(names, value) if name}
        if len(wanted) != 1:
            raise DataError(f"expected {what} for {len(wanted)} outputs: {', '.join(wanted)}; "
                            f"found one {type(value).__name__}")
        return {wanted[0]: value}


def _holds_arrays(value: Any, count: int) -> bool:
    """Whether a list is one of arrays, and not an array that is written as a list."""
    items = list(value.values()) if isinstance(value, dict) else value
    return count > 1 or isinstance(value, dict) or (len(items) == 1 and hasattr(items[0], "shape"))
