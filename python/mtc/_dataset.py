# SPDX-License-Identifier: Apache-2.0
"""Samples as the library reads them: from files and folders, or from arrays and batches of the caller."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from mtc import _library, _structs
from mtc._errors import DataError, check
from mtc._tensors import Array

if TYPE_CHECKING:
    from mtc._plan import Plan


class Dataset:
    """Samples for a plan's inputs, targets and sample weights. `plan.open` makes it.

    It is freed by `close`, at the end of a `with` block, or when nothing refers to it any more.

    Attributes:
        plan: what it is for.
        notes: what the user should know of the data, such as damaged pictures that are left out.
    """

    def __init__(self, plan: Plan, handle: ctypes.c_void_p, kept: Any) -> None:
        library = _library.runtime()
        self.plan = plan
        self.handle = handle
        self.notes: list[str] = []
        self._kept = kept  # what the library reads from
        self._free = weakref.finalize(self, library.mtrun_dataset_free, handle)
        with_lines(library.mtrun_dataset_notes, handle, into=self.notes)

    def __len__(self) -> int:
        """Number of samples; 0: unknown."""
        return max(0, int(_library.runtime().mtrun_dataset_size(self.handle)))

    def split(self, share: float, seed: int = 1) -> tuple[Dataset, Dataset]:
        """Samples to train on, and the `share` of the samples that is held out, drawn by the seed.

        Where a target has labels, every class gives the same share. Both parts keep the order of the data.
        """
        library = _library.runtime()
        training, held = ctypes.c_void_p(), ctypes.c_void_p()
        check(library, library.mtrun_dataset_split(self.handle, share, seed, ctypes.byref(training),
                                                   ctypes.byref(held)))
        return Dataset(self.plan, training, self._kept), Dataset(self.plan, held, self._kept)

    def __getitem__(self, part: slice) -> Dataset:
        """Samples begin:end as a dataset of their own, which shares the memory."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise DataError(f"expected samples begin:end of a dataset, found {part!r}")
        library = _library.runtime()
        begin, end, _ = part.indices(len(self))
        handle = ctypes.c_void_p()
        check(library, library.mtrun_dataset_slice(self.handle, begin, end, ctypes.byref(handle)))
        return Dataset(self.plan, handle, self._kept)

    def order(self, epoch: int, seed: int = 1) -> Array:
        """The numbers of the samples [n] in the order of an epoch, from 0, of a session with this seed."""
        numbers = np.empty(len(self), "int64")
        _library.runtime().mtrun_dataset_order(self.handle, seed, epoch, numbers.ctypes.data)
        return numbers

    def close(self) -> None:
        """Frees it; the caller's arrays are its own again."""
        self._free()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mtc.Dataset for {self.plan.model}: {len(self) or 'unknown number of'} samples>"


def with_lines(function: Any, *arguments: Any, into: list[str]) -> Any:
    """Calls a function that tells lines of text, its last arguments; gives its result."""

    def line(_user: Any, text: bytes) -> None:
        into.append(text.decode(errors="replace"))

    return function(*arguments, _structs.LineCallback(line), None)


def data_sources() -> dict[str, str]:
    """The kinds of data sources that `plan.open` takes as text, such as "mnist:DIR", and what each reads."""
    library = _library.runtime()
    sources: dict[str, str] = {}
    while (form := library.mtrun_data_form(len(sources))) is not None:
        sources[form.decode()] = library.mtrun_data_help(len(sources)).decode()
    return sources


def describe_data(source: str, samples: int = 3) -> str:
    """What a data source has: fields, types, shapes, ranges, labels and their counts, and its first samples."""
    library = _library.runtime()
    lines: list[str] = []
    check(library, with_lines(library.mtrun_data_describe, source.encode(), samples, into=lines))
    return "\n".join(lines)


def save_columns(source: str, path: Union[str, os.PathLike[str]]) -> str:
    """Writes a columns file of a source csv:, for `columns` of `mtc.compile`. What each column becomes is returned."""
    library = _library.runtime()
    lines: list[str] = []
    check(library, with_lines(library.mtrun_data_columns, source.encode(), os.fsencode(path), into=lines))
    return "\n".join(lines)


def benchmark_data(source: str, batch_size: int = 64, seconds: float = 2.0) -> str:
    """How many samples per second a data source gives, in shuffled batches."""
    library = _library.runtime()
    lines: list[str] = []
    check(library, with_lines(library.mtrun_data_benchmark, source.encode(), batch_size, seconds, into=lines))
    return "\n".join(lines)
