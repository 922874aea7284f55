# SPDX-License-Identifier: Apache-2.0
"""Data as `fit` takes it: arrays in memory, or batches that come one after the other."""

from __future__ import annotations

import collections.abc
import ctypes
import inspect
import itertools
import math
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Union

import numpy as np

from mtc import _library, _structs
from mtc._dataset import Dataset
from mtc._errors import DataError, check
from mtc._structure import Structure
from mtc._tensors import Array, make_fields, samples

if TYPE_CHECKING:
    from mtc._plan import Plan

_END: Any = object()  # behind the last batch of a pass; None is what a faulty generator gives


class Arrays:
    """Samples in memory: arrays by the names of the plan's entries."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = {name: samples(value, name) for name, value in arrays.items()}
        self.count = 0
        first = ""
        for name, array in self.arrays.items():
            if first and len(array) != self.count:
                raise DataError(f'expected {self.count} samples of "{name}", as of "{first}", found {len(array)}')
            first, self.count = first or name, len(array)

    def split(self, share: float) -> tuple[Arrays, Arrays]:
        """The first samples, and the last `share` of them, as Keras divides them."""
        at = math.floor(self.count * (1 - share)) if 0 < share < 1 else 0
        if not 0 < at < self.count:
            raise DataError(f"expected a validation_split that leaves samples to train on and to validate on, "
                            f"found {share:g} of {self.count} samples")
        return (Arrays({name: array[:at] for name, array in self.arrays.items()}),
                Arrays({name: array[at:] for name, array in self.arrays.items()}))

    def open(self, plan: Plan, _structure: Optional[Structure] = None) -> Dataset:
        """For a plan. The arrays are not copied."""
        if self.count == 0:
            raise DataError("expected samples, found none")
        fields, kept = make_fields(self.arrays)
        handle = ctypes.c_void_p()
        library = _library.runtime()
        check(library, library.mtrun_dataset_open_arrays(plan._handle, fields, len(self.arrays), self.count,
                                                         _keys(plan), ctypes.byref(handle)))
        return Dataset(plan, handle, (fields, kept))


class Batches:
    """Batches that come one after the other, from a generator, a `PyDataset`, a `tf.data.Dataset` or a `DataLoader`.

    They are put together to the plan's batch: batches of another size give other steps than in Keras, of the same
    samples in the same order.

    Attributes:
        count: batches of a pass, where that is known.
        batch_size: samples of the first batch.
        ended: a generator has come to its end; there is no second pass.
        error: what the caller's code raised.
    """

    def __init__(self, data: Any, shuffle: bool = False, seed: int = 0,
                 weigh: Optional[Callable[[Any], Array]] = None) -> None:
        self._data = data
        self._weigh = weigh
        self._shuffle = shuffle
        self._seed = seed
        self._passes = 0
        self.once = not _is_indexed(data) and isinstance(data, collections.abc.Iterator)
        self.ended = False
        self.error: Optional[BaseException] = None
        self.count = _length(data)
        self._bind: Callable[[Any, Any, Any], dict[str, Any]] = _unbound
        self._template: dict[str, Array] = {}
        self._rest: Optional[dict[str, Array]] = None  # samples that the last request had no room for
        self._batches: Optional[Iterator[Any]] = self._iterate()
        self._first: Any = next(self._batches, _END)  # looked at before it is asked for
        if self._first is _END:
            raise DataError("expected batches, found none")
        x, _, weight = self._unpack(self._first)
        self.has_weights = weight is not None
        self.batch_size = rows_of(x)

    def open(self, plan: Plan, structure: Structure) -> Dataset:
        """For a plan. The types and shapes of the first batch are those of all."""
        self._bind = structure.bind
        if not self._template:
            bound = self._arrays(self._first)
            self._template = {name: np.ascontiguousarray(array[:1]) for name, array in bound.items()}
        fields, kept = make_fields(self._template)
        names = list(self._template)

        def read(_user: Optional[int], request: Any) -> int:
            return self._read(request.contents, names)

        callback = _structs.ReadCallback(read)
        source = _structs.Source(samples=-1, fields=fields, field_count=len(names), read=callback, threads=1)
        handle = ctypes.c_void_p()
        library = _library.runtime()
        check(library, library.mtrun_dataset_open_source(plan._handle, ctypes.byref(source), _keys(plan),
                                                         ctypes.byref(handle)))
        return Dataset(plan, handle, (callback, source, fields, kept, self))

    def first_inputs(self) -> Any:
        """The inputs of the first batch."""
        return self._unpack(self._first)[0]

    def first(self) -> tuple[Any, Any, Any]:
        """The inputs, targets and weights of the first batch."""
        return self._unpack(self._first)

    def untouched(self) -> Any:
        """The caller's data with the batch that was looked at, for somebody else."""
        if not self.once:
            return self._data
        first, rest = self._first, self._batches
        assert rest is not None
        return (batch for batch in itertools.chain([first], rest))

    def inputs(self) -> Iterator[Any]:
        """The inputs of each batch of a pass."""
        first, self._first = self._first, _END
        assert self._batches is not None
        for batch in itertools.chain([first], self._batches):
            yield self._unpack(batch)[0]

    def _read(self, request: _structs.Request, names: list[str]) -> int:
        try:
            if request.first == 0 and self._first is _END and not self.once:  # a pass begins
                self._rest = self._batches = None
            return self._fill(request, names)
        except BaseException as error:  # noqa: BLE001 - the caller's code, in a thread of the library
            self.error = error
            text = f"{type(error).__name__}: {error}".encode()[: max(0, request.message_size - 1)] + b"\0"
            ctypes.memmove(request.message, text, len(text))
            return -1

    def _fill(self, request: _structs.Request, names: list[str]) -> int:
        rows = 0
        while rows < request.rows:
            batch = self._rest if self._rest is not None else self._pull()
            self._rest = None
            if batch is None:
                break
            count = len(batch[names[0]])
            taken = min(count, request.rows - rows)
            for i, name in enumerate(names):
                place, array = request.fields[i], batch[name]
                if place:
                    size = array.nbytes // max(count, 1)
                    ctypes.memmove(place + rows * size, array.ctypes.data, taken * size)
            rows += taken
            if taken < count:
                self._rest = {name: array[taken:] for name, array in batch.items()}
        return rows

    def _pull(self) -> Optional[dict[str, Array]]:
        """The next batch, checked; None: the pass has ended."""
        batch, self._first = self._first, _END
        if batch is _END:
            if self._batches is None:
                self._batches = self._iterate()
            batch = next(self._batches, _END)
        if batch is not _END:
            return self._check(self._arrays(batch))
        self.ended = self.once
        if not self.once:
            _tell(self._data, "on_epoch_end")
            self._batches = None
        return None

    def _check(self, batch: dict[str, Array]) -> dict[str, Array]:
        """With the types and shapes of the first batch, dense."""
        checked = {}
        for name, like in self._template.items():
            array = batch.get(name)
            if array is None or array.shape[1:] != like.shape[1:]:
                found = "none" if array is None else f"{array.dtype} {list(array.shape[1:])}"
                raise DataError(f'expected samples {like.dtype} {list(like.shape[1:])} of "{name}", as in the first '
                                f"batch, found {found}")
            checked[name] = np.ascontiguousarray(array, dtype=like.dtype)
        return checked

    def _iterate(self) -> Iterator[Any]:
        data = self._data
        if _is_indexed(data):
            order = np.arange(self.count) if self.count is not None else None
            if order is not None and self._shuffle:
                np.random.default_rng([self._seed, self._passes]).shuffle(order)
            self._passes += 1
            _tell(data, "on_epoch_begin")
            return (data[int(i)] for i in order) if order is not None else iter(data)
        return iter(data)

    def _unpack(self, batch: Any) -> tuple[Any, Any, Any]:
        if batch is None or (isinstance(batch, tuple) and batch and batch[0] is None):
            raise DataError(f"expected batches (x,), (x, y) or (x, y, sample_weight), found {batch!r}"[:200])
        loader = type(self._data).__module__.startswith("torch")
        if not (isinstance(batch, tuple) or (loader and isinstance(batch, list))):
            return batch, None, None
        if not 1 <= len(batch) <= 3:
            raise DataError(f"expected batches (x,), (x, y) or (x, y, sample_weight), found {len(batch)} items")
        x, y, weight = (*batch, None, None)[:3]
        if self._weigh is not None and y is not None:
            weight = self._weigh(y)
        return x, y, weight

    def _arrays(self, batch: Any) -> dict[str, Array]:
        bound = {name: samples(value, name) for name, value in self._bind(*self._unpack(batch)).items()}
        if len({len(array) for array in bound.values()}) != 1:
            raise DataError("expected as many samples in each array of a batch, found " +
                            ", ".join(f"{name}: {len(array)}" for name, array in bound.items()))
        return bound


def _keys(plan: Plan) -> Optional[bytes]:
    return b"classes=any" if plan._any_label else None


def _unbound(*_: Any) -> dict[str, Any]:
    raise AssertionError("the data is not open")


def rows_of(x: Any) -> int:
    """Samples of a batch: the length of its first array."""
    while isinstance(x, (dict, list, tuple)) and len(x):
        x = next(iter(x.values())) if isinstance(x, dict) else x[0]
    return len(samples(x, "x"))


def is_stream(x: Any) -> bool:
    """Whether `x` gives batches, and is no array, list or dict of arrays."""
    if isinstance(x, (np.ndarray, list, tuple, dict, str)) or hasattr(x, "__array__"):
        return False
    return (_is_indexed(x) or hasattr(x, "as_numpy_iterator") or inspect.isgenerator(x)
            or (isinstance(x, collections.abc.Iterable) and not hasattr(x, "shape")))


def _is_indexed(data: Any) -> bool:
    return hasattr(data, "num_batches") and hasattr(data, "__getitem__")  # keras.utils.PyDataset


def _length(data: Any) -> Optional[int]:
    try:
        if _is_indexed(data):
            count = data.num_batches
            return None if count is None else int(count)
        return len(data) if hasattr(data, "__len__") else None
    except (TypeError, NotImplementedError):  # of unknown or infinite length
        return None


def _tell(data: Any, event: str) -> None:
    if hasattr(data, event):
        getattr(data, event)()


def open_dataset(plan: Plan, data: Any) -> Dataset:
    """A dataset of a source's text, of (x, y, sample_weight), of arrays by name, or of batches."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str):
        library = _library.runtime()
        handle = ctypes.c_void_p()
        check(library, library.mtrun_dataset_open(plan._handle, data.encode(), ctypes.byref(handle)))
        return Dataset(plan, handle, None)
    structure = Structure.of(plan)
    source: Union[Arrays, Batches]
    if is_stream(data):
        source = Batches(data)
    elif isinstance(data, dict):
        known = [t.name for t in plan.signature()]
        unknown = [name for name in data if name not in known]
        if unknown:
            raise DataError(f"expected arrays of {', '.join(known)}, found {', '.join(map(str, unknown))}")
        source = Arrays(data)
    else:
        x, y, weight = (*(data if isinstance(data, tuple) else (data,)), None, None)[:3]
        source = Arrays(structure.bind(x, y, weight))
    return source.open(plan, structure)


class ClassWeights:
    """Weights of samples by their labels: numbers, or rows with a one. Labels without a weight weigh 1."""

    def __init__(self, weights: Mapping[int, float]) -> None:
        self._weights: dict[int, float] = {}
        if not isinstance(weights, Mapping):
            raise DataError(f"expected a dict of labels and weights as class_weight, found a {type(weights).__name__}")
        for label, weight in weights.items():
            if not isinstance(label, (int, float, np.integer, np.floating)) or int(label) != label:
                raise DataError(f"expected labels as the keys of class_weight, found {label!r}")
            number = np.asarray(weight)
            if number.dtype.kind not in "biuf" or number.size != 1 or not (np.isfinite(number) and number >= 0).all():
                raise DataError(f"expected class weights of at least 0, found {weight!r} of class {label}")
            self._weights[int(label)] = float(number.item())

    def check(self, plan: Plan, y: Any = None) -> None:
        """DataError for a class that the targets of a plan cannot have. `y`: all of them, where they are known."""
        for target in plan.targets:
            columns = target.shape[-1] if len(target.shape) > 1 else 1
            outputs = plan.outputs[0].shape[-1] if len(plan.outputs) == 1 and len(plan.outputs[0].shape) > 1 else 1
            integers = np.dtype(target.dtype).kind == "i"
            classes = target.limit if target.limit > 0 else columns if columns > 1 else outputs if integers else 1
            for label in self._weights:
                known = 0 <= label < max(classes, 2)
                if not known and (classes > 1 or y is None or not (self._labels(y) == label).any()):
                    raise DataError(f"expected classes 0 to {max(classes, 2) - 1} in class_weight, found {label}")

    def __call__(self, y: Any) -> Array:
        """The weights [n] of targets."""
        labels = self._labels(y)
        values = np.ones(labels.shape, "float32")
        for label, weight in self._weights.items():
            values[labels == label] = weight
        return values

    @staticmethod
    def _labels(y: Any) -> Array:
        arrays = list(y.values()) if isinstance(y, dict) else y if _is_list_of_arrays(y) else [y]
        if len(arrays) != 1:
            raise DataError(f"expected the targets of one output with class_weight, found those of {len(arrays)}: give "
                            "sample_weight for each output")
        y = arrays[0]
        labels = samples(y, "class_weight's targets")
        if labels.ndim > 1:
            labels = labels.argmax(-1) if labels.shape[-1] != 1 else labels[..., 0]
        return np.rint(labels).astype("int64")


def _is_list_of_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(getattr(v, "shape", ()) != () for v in value)
