# SPDX-License-Identifier: Apache-2.0
"""Batches from generators, datasets and loaders; bad data."""

import math

import keras
import models
import mtc
import numpy as np
import pytest

QUIET = {"verbose": 0, "devices": "cpu:1", "cpu": "native"}


class Batches(keras.utils.PyDataset):
    """The points of `models.line` in batches."""

    def __init__(self, size=16, weights=False, **options):
        super().__init__(**options)
        self.x, self.y = models.points(72)
        self.size, self.weights, self.ended = size, weights, 0

    def __len__(self):
        return math.ceil(len(self.x) / self.size)

    def __getitem__(self, index):
        part = slice(index * self.size, (index + 1) * self.size)
        batch = self.x[part], self.y[part]
        return (*batch, np.ones(len(batch[0]))) if self.weights else batch

    def on_epoch_end(self):
        self.ended += 1


class TensorFlowDataset:
    """As tf.data.Dataset gives its elements; test_tensorflow.py has a real one."""

    def __init__(self, data):
        self.data = data

    def as_numpy_iterator(self):
        raise AssertionError("slower than its tensors")

    def __iter__(self):
        return (self.data[i] for i in range(len(self.data)))


class DataLoader:
    """As PyTorch's gives them: lists of tensors, which are arrays here."""

    __module__ = "torch.utils.data"

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return (list(self.data[i]) for i in range(len(self.data)))


def generator(epochs=1, size=16):
    data = Batches(size)
    for _ in range(epochs):
        for i in range(len(data)):
            yield data[i]


def in_memory(epochs=3, size=16):
    model = models.line()
    mtc.fit(model, *models.points(72), epochs=epochs, batch_size=size, shuffle=False, **QUIET)
    return model


@pytest.mark.parametrize("make", [Batches, lambda: TensorFlowDataset(Batches()), lambda: DataLoader(Batches())])
def test_batches(make):
    """The same steps as with arrays in their order; the short last batch too."""
    data, model = make(), models.line()
    history = mtc.fit(model, data, epochs=3, shuffle=False, validation_data=make(), **QUIET)
    assert len(history.history["val_loss"]) == 3
    assert int(model.optimizer.iterations) == 15 and models.same(model, in_memory())
    if isinstance(data, Batches):
        assert data.ended >= 3
    assert mtc.evaluate(model, make(), **QUIET) == mtc.evaluate(model, *models.points(72), **QUIET)
    assert np.array_equal(mtc.predict(model, make(), **QUIET), mtc.predict(model, models.points(72)[0], **QUIET))


def test_batches_are_shuffled():
    model, again = models.line(), models.line()
    for m in (model, again):
        mtc.fit(m, Batches(), epochs=3, **QUIET)
    assert models.same(model, again) and not models.same(model, in_memory())


def test_weights_in_batches():
    ours, theirs = models.line(), models.line()
    mine = mtc.fit(ours, Batches(weights=True), epochs=2, shuffle=False, **QUIET).history
    wanted = theirs.fit(Batches(weights=True), epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(mine["loss"], wanted["loss"], rtol=1e-5)


def test_generators():
    model = models.line()
    with pytest.warns(UserWarning, match="the generator gave one pass, and 3 epochs were asked for"):
        history = mtc.fit(model, generator(), epochs=3, **QUIET)
    assert history.epoch == [0] and models.same(model, in_memory(1))
    model = models.line()
    history = mtc.fit(model, generator(4), epochs=3, steps_per_epoch=5, **QUIET)
    assert history.epoch == [0, 1, 2] and int(model.optimizer.iterations) == 15
    with pytest.warns(UserWarning, match="the generator ended in epoch 2, before its 4 steps"):
        history = mtc.fit(models.line(), generator(), epochs=3, steps_per_epoch=4, **QUIET)
    assert history.epoch == [0, 1]


def test_a_generator_that_raises():
    def broken():
        yield from generator()
        raise RuntimeError("the disk is gone")

    model = models.line()
    with pytest.raises(RuntimeError, match="the disk is gone"):
        mtc.fit(model, broken(), epochs=2, steps_per_epoch=9, **QUIET)
    assert int(model.optimizer.iterations) == 4  # whole batches of 16 among the 72 points


def test_batches_that_change():
    def changing():
        yield from generator()
        yield np.zeros((16, 3), "f4"), np.zeros((16, 1), "f4")

    with pytest.raises(mtc.DataError, match=r"expected samples float32 \[2\] of \"input_layer\", as in the first "
                                            r"batch, found float32 \[3\]"):
        mtc.fit(models.line(), changing(), **QUIET)
    with pytest.raises(mtc.DataError, match="expected batches, found none"):
        mtc.fit(models.line(), iter([]), **QUIET)
    with pytest.raises(mtc.DataError, match="expected a Batches to give targets and weights itself"):
        mtc.fit(models.line(), Batches(), np.zeros(3), **QUIET)
    with pytest.raises(mtc.DataError, match="expected arrays, of which a share can be held out, found batches"):
        mtc.fit(models.line(), Batches(), validation_split=0.1, **QUIET)


X, Y = models.points()


@pytest.mark.parametrize("x, y, text", [
    (X[:, :1], Y, r"input_layer.*f32 \[\?, 2\]"),
    (X, Y[:-1], 'expected 96 samples of "target", as of "input_layer", found 95'),
    (X.astype(object), Y, 'expected numbers for "input_layer", found an array of object'),
    ([[1.0, 2.0], [3.0]], Y[:2], 'expected an array for "input_layer", found a list of lists of 1 and 2 items'),
    (np.array(["a", "b"]), Y[:2], 'expected numbers for "input_layer", found an array of <U1'),
    (X[:0], Y[:0], "expected samples, found none"),
    (X, None, "target"),
    (np.where(X > 0.9, np.nan, X).astype("f4"), Y, r"not a number in sample \d+"),
    (X, Y.astype("c8"), "complex64: give its real and imaginary parts"),
    (np.ma.masked_greater(X, 0.9), Y, r'expected an array without a mask for "input_layer", found one of 192'),
    (X, np.ma.masked_less(Y, 0), "without a mask"),
    (type("csr_matrix", (), {"toarray": None, "nnz": 1})(), Y, r"found a sparse csr_matrix: toarray\(\) makes it one"),
])
def test_wrong_arrays(x, y, text):
    model = models.line()
    before = models.values(model)
    with pytest.raises(mtc.DataError, match=text):
        mtc.fit(model, x, y, **QUIET)
    after = models.values(model)[: len(before)]
    assert all(np.array_equal(a, b) for a, b in models.pairs(before, after))


VIEW = np.broadcast_to  # of stride 0: one sample in memory


@pytest.mark.parametrize("x, y, weight", [
    (VIEW(np.float32([1, 2]), (96, 2)), Y, None), (X, VIEW(np.float32(1), (96, 1)), None),
    (X, Y, VIEW(np.float32(0.5), 96)), (X, VIEW(np.float32(1), 96), VIEW(1, 96)),
    (np.lib.stride_tricks.sliding_window_view(X.reshape(-1), 2)[:96], Y, None),  # samples that overlap
    (X.astype("f2"), Y, None), (X, Y.astype("f2"), np.ones(96, "f2")), (np.ma.array(X), Y, None),
    (X[::-1], Y[::-1], None), (X.astype(">f8"), Y.astype(">f4"), None),
])
def test_views_and_types(x, y, weight):
    """What a view or another type gives is what its dense copy in float32 gives: fits, batches, and evaluation."""
    def dense(a):
        return None if a is None else np.array(a, "f4")

    ours, wanted = models.line(), models.line()
    mtc.fit(ours, x, y, epochs=2, sample_weight=weight, **QUIET)
    mtc.fit(wanted, dense(x), dense(y), epochs=2, sample_weight=dense(weight), **QUIET)
    assert models.same(ours, wanted)
    evaluated = [mtc.evaluate(m, *given, **QUIET) for m, given in ((ours, (x, y)), (wanted, (dense(x), dense(y))))]
    assert evaluated[0] == evaluated[1] and np.isfinite(evaluated[0])
    batches = [(x[i:i + 32], y[i:i + 32]) for i in range(0, 96, 32)]
    mtc.fit(ours, iter(batches), **QUIET)
    mtc.fit(wanted, iter([(dense(a), dense(b)) for a, b in batches]), **QUIET)
    assert models.same(ours, wanted)


@pytest.mark.parametrize("options, text", [
    ({"class_weight": {99: 1.0}}, "expected classes 0 to 9 in class_weight, found 99"),
    ({"class_weight": {-1: 1.0}}, "expected classes 0 to 9 in class_weight, found -1"),
    ({"class_weight": {3: -1.0}}, "expected class weights of at least 0, found -1.0 of class 3"),
    ({"class_weight": {3: np.nan}}, "expected class weights of at least 0, found nan"),
    ({"class_weight": {3: "2"}}, "expected class weights of at least 0, found .2. of class 3"),
    ({"class_weight": [1.0, 2.0]}, "expected a dict of labels and weights as class_weight, found a list"),
    ({"class_weight": {"a": 1.0}}, "expected labels as the keys of class_weight, found 'a'"),
    ({"epochs": -1}, "expected epochs of at least 0, found -1"), ({"batch_size": 0}, "batch_size of at least 1, "),
    ({"batch_size": -5}, "batch_size of at least 1"), ({"seed": 2**70}, "seed of at least 0|1180591620717411303424"),
    ({"initial_epoch": -1}, "initial_epoch of at least 0"), ({"steps_per_epoch": 0}, "steps_per_epoch of at least 1"),
    ({"validation_steps": -1}, "validation_steps of at least 1"), ({"validation_freq": 0}, "validation_freq of at"),
    ({"devices": "cpu:1\0"}, "devices without a zero byte"), ({"checkpoint": ""}, "found an empty name"),
    ({"validation_split": np.nan}, "a validation_split that leaves samples .* found nan of 64"),
    ({"validation_split": -0.5}, "a validation_split that leaves samples"),
    ({"shards": 3}, "^[^\n]*expected shards to be a power of two, found 3$"),
])
def test_wrong_options(mnist, options, text):
    with pytest.raises(mtc.Error, match=text):
        mtc.fit(models.mlp(), mnist[0][:64], mnist[1][:64], **{**QUIET, **options})


@pytest.mark.parametrize("freq", ["10", ["1"], [1.5]])
def test_wrong_validation_freq(mnist, freq):
    """A text is no list of epochs, of which none would ever come."""
    data = mnist[0][:64], mnist[1][:64]
    with pytest.raises(TypeError, match="validation_freq to be an integer, found"):
        mtc.fit(models.mlp(), *data, validation_data=data, validation_freq=freq, **QUIET)


def test_class_weights_of_batches_and_outputs():
    """A class that these batches cannot have is an error; of two outputs Keras takes none."""
    x, y = np.zeros((8, 784), "f4"), np.arange(8)
    with pytest.raises(mtc.DataError, match="expected classes 0 to 9 in class_weight, found 10"):
        mtc.fit(models.mlp(), iter([(x, y)]), class_weight={10: 2.0}, **QUIET)
    mtc.fit(models.mlp(), x, y, class_weight={9: 2.0}, **QUIET)  # no sample has it, but one could
    with pytest.raises(mtc.DataError, match="expected the targets of one output with class_weight, found those of 2"):
        mtc.fit(models.two_inputs(), [np.zeros((4, 3)), np.zeros((4, 2))], [np.zeros((4, 1)), np.zeros(4)],
                class_weight={0: 2.0}, **QUIET)


def test_a_generator_that_gives_none():
    """As in Keras: an error, and not the end of the data."""
    def batches():
        yield X[:16], Y[:16]
        yield None

    model = models.line()
    with pytest.raises(mtc.DataError, match=r"expected batches \(x,\), .* found None"):
        mtc.fit(model, batches(), steps_per_epoch=4, **QUIET)
    with pytest.raises(mtc.DataError, match="found None"):
        mtc.fit(model, iter([None]), **QUIET)


def test_wrong_labels(mnist):
    with pytest.raises(mtc.DataError, match="sample 0 has label 12, expected 0 to 9"):
        mtc.fit(models.mlp(), mnist[0][:64], np.full(64, 12), **QUIET)


def test_wrong_models():
    L = keras.layers
    x, y = models.points()
    not_compiled = keras.Sequential([keras.Input((2,)), L.Dense(1)])
    with pytest.raises(mtc.ModelError, match="expected a compiled model, found one without a loss and an optimizer"):
        mtc.fit(not_compiled, x, y, **QUIET)
    late = keras.Sequential([L.Dense(1)])  # which learns of its input from the data, as in Keras
    late.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError, match="expected a built model"):
        mtc.compile(late)
    mtc.fit(late, x, y, **QUIET)
    assert late.input_shape == (None, 2)
    strange = keras.Sequential([keras.Input((2, 2)), L.Lambda(lambda v: v * 2), L.Flatten(), L.Discretization([0.0]),
                                L.Dense(3)], name="strange")
    strange.compile("sgd", "mse")
    with pytest.raises(mtc.ModelError) as error:
        mtc.fit(strange, np.zeros((4, 2, 2)), np.zeros((4, 3)), by="file", **QUIET)
    assert "Discretization" in str(error.value) and "Lambda" in str(error.value) and "/tmp" not in str(error.value)
    with pytest.raises(mtc.ModelError, match="found str"):
        mtc.fit("model.keras", x, y, **QUIET)
    with pytest.raises(mtc.DataError, match="8 shards"):
        mtc.fit(models.line(), x, y, devices="cpu:9", verbose=0)


def test_not_finite_loss():
    x, y = models.points()
    model = models.line(keras.optimizers.SGD(1e30))
    with pytest.raises(mtc.DataError, match="epoch 1, step .*loss"):
        mtc.fit(model, x, y, epochs=3, **QUIET)
    model = models.line(keras.optimizers.SGD(1e30))
    assert not np.isfinite(mtc.fit(model, x, y, epochs=3, allow_nan=True, **QUIET).history["loss"][-1])
