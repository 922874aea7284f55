# SPDX-License-Identifier: Apache-2.0
"""A session's variables as a mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, MutableMapping

import numpy as np

from mtc._errors import DataError
from mtc._tensors import Array, TensorInfo, as_array

if TYPE_CHECKING:
    from mtc._session import Session


class Variables(MutableMapping[str, Array]):
    """A session's variables by name, as NumPy arrays. Each read is a copy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._infos = session.plan._variables_by_name

    def _info(self, name: str) -> TensorInfo:
        if name not in self._infos:
            raise KeyError(f"expected one of {', '.join(self._infos)}, found {name}")
        return self._infos[name]

    def __getitem__(self, name: str) -> Array:
        return self._session.get_variable(self._info(name))

    def __setitem__(self, name: str, value: Any) -> None:
        info = self._info(name)
        array = as_array(value, name)
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise DataError(f"expected numbers for {info}, found {int(np.isnan(array).sum())} NaN of {array.size}")
        self._session.set_variable(info, array)

    def __delitem__(self, name: str) -> None:
        raise TypeError("the variables of a plan cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)
