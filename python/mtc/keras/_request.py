# SPDX-License-Identifier: Apache-2.0
"""What a trace is made for, and what it gives."""

from __future__ import annotations

import dataclasses
from typing import Callable, Optional, Sequence, Union

from mtc._tensors import TensorInfo
from mtc.keras._example import Example, Names


@dataclasses.dataclass(frozen=True)
class Request:
    """What a trace is made for.

    Attributes:
        example: gives samples; None: they are made up.
        weighted: the loss takes weights of samples.
        check: compares a batch with Keras.
    """

    example: Optional[Callable[[], Example]]
    weighted: bool = False
    check: Union[bool, str] = True


@dataclasses.dataclass(frozen=True)
class Result:
    """The text of a model, and who checks it.

    Attributes:
        text: in `mt`.
        names: of its entries.
        check: raises a ModelError where a batch differs from Keras; gives the line that says how good it is.
        dropped: why metrics were left out.
        variables: of the text. The compiler adds those of an optimizer that the text names and does not spell out.
    """

    text: str
    names: Names
    check: Callable[[], str]
    dropped: Sequence[str]
    variables: Sequence[TensorInfo]
