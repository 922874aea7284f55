# SPDX-License-Identifier: Apache-2.0
"""What a fit is given, and the plan for it."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Union

from mtc._checks import optional
from mtc._data import Arrays, Batches, ClassWeights, is_stream
from mtc._errors import DataError
from mtc._plan import Plan
from mtc._structure import Structure
from mtc.keras import _model
from mtc.keras._evaluate import plan_for
from mtc.keras._example import build


def _unpack_validation(given: Any) -> Optional[tuple[Any, Any, Any]]:
    if given is None:
        return None
    if isinstance(given, (tuple, list)):
        if not 1 <= len(given) <= 3:
            raise DataError(f"expected validation_data (x, y) or (x, y, sample_weight), found {len(given)} items")
        return (*given, None, None)[:3]
    return given, None, None


class Training:
    """What a fit is given to train and to validate on, and the plan for it.

    Attributes:
        plan: after `compile`; so are the next two.
        structure: names of the model's inputs and outputs.
        data: to train on.
        validation: to validate on, or None.
    """

    plan: Plan
    structure: Structure
    data: Union[Arrays, Batches]
    validation: Union[None, Arrays, Batches]

    def __init__(self, x: Any, y: Any, sample_weight: Any, class_weight: Optional[Mapping[int, float]],
                 validation_data: Any, validation_split: float, shuffle: bool, seed: int) -> None:
        weigh = self._weigh = ClassWeights(class_weight) if class_weight is not None else None
        if weigh is not None and sample_weight is not None:
            raise DataError("expected class_weight or sample_weight, found both")
        self._held = _unpack_validation(validation_data)
        self._split = 0.0 if self._held is not None else validation_split
        self._batches: Optional[Batches] = None
        if is_stream(x):
            if y is not None or sample_weight is not None:
                raise DataError(f"expected a {type(x).__name__} to give targets and weights itself, found y or "
                                "sample_weight beside it")
            if self._split:
                raise DataError("expected arrays, of which a share can be held out, found batches: give "
                                "validation_data")
            self._batches = Batches(x, shuffle, seed, weigh)
        elif weigh is not None:
            sample_weight = weigh(y)
        self._arrays = x, y, sample_weight
        held = self._held
        self._held_batches = Batches(held[0]) if held is not None and is_stream(held[0]) else None
        streams = [b for b in (self._batches, self._held_batches) if b is not None]
        self.weighted = (sample_weight is not None or (held is not None and held[2] is not None)
                         or any(b.has_weights for b in streams))

    def compile(self, model: Any, batch_size: Optional[int], verbose: Union[int, str], **options: Any) -> None:
        """Makes the plan, and fits the data to its entries."""
        optional("batch_size", batch_size, 1)
        build(model, self._batches.first_inputs() if self._batches else self._arrays[0])
        _model.check_model(model)
        if self._held is not None or self._held_batches is not None or self._split:
            _model.refuse_own(model, "test_step")
        example = self._batches.first() if self._batches else self._arrays
        self.plan, self.structure = plan_for(
            model, (self._batches.batch_size if self._batches else batch_size) or 32, self.weighted, verbose, example,
            **options)
        if self._weigh is not None:
            self._weigh.check(self.plan, None if self._batches else self._arrays[1])
        self.data = self._batches or Arrays(self.structure.bind(*self._arrays))
        self.validation = self._held_batches
        if self._held is not None and self._held_batches is None:
            self.validation = Arrays(self.structure.bind(*self._held))
        elif self._split and isinstance(self.data, Arrays):
            self.data, self.validation = self.data.split(self._split)

    def check(self) -> None:
        """Opens the data and closes it: DataError for what does not fit the plan."""
        for source in (self.data, self.validation):
            if source is not None:
                source.open(self.plan, self.structure).close()

    def untouched(self) -> tuple[Any, Any]:
        """x and validation_data, with the batches that were looked at."""
        x = self._batches.untouched() if self._batches else self._arrays[0]
        return x, self._held_batches.untouched() if self._held_batches else self._held
