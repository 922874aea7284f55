# SPDX-License-Identifier: Apache-2.0
"""The builder that importers of traces share: logical shapes, constants, what is printed."""

import re

import numpy as np
import pytest

from mtc._errors import ModelError
from mtc._trace import BATCH, Graph, Refused
from mtc._trace import elementwise as e
from mtc._trace import differences, layout, losses, moves, products, reductions


@pytest.fixture
def x():
    return Graph("model").input("x", (BATCH, 4, 6), "f32")


def lines(*values):
    """The operations that the values need, in `mt`."""
    graph = values[0].graph
    graph.say('mt.loss "loss", {0} : {t0}', graph.input("loss", (BATCH,), "f32", "target"))
    for i, value in enumerate(values):
        graph.output(f"out{i}", value)
    made = [line.split()[2] for line in graph.text("mt.sgd").splitlines() if line.strip().startswith("%")]
    return [op for op in made if op != "mt.target"]


def test_moves_of_the_batch_cost_nothing(x):
    folded = layout.reshape(x, (BATCH * 4, 6))
    assert folded.shape == (BATCH * 4, 6)
    moved = layout.reshape(layout.transpose(folded, (1, 0)), (2, 3, BATCH, 4))
    back = layout.transpose(layout.reshape(moved, (6, BATCH, 4)), (1, 2, 0))
    assert lines(e.unary("exp", back)) == ["mt.input", "mt.exp"]


def test_transpositions_of_images_cancel(x):
    first = layout.transpose(x, (0, 2, 1))
    assert layout.transpose(first, (0, 2, 1)) is x
    both = layout.transpose(e.unary("relu", e.unary("exp", first)), (0, 2, 1))
    assert lines(both) == ["mt.input", "mt.exp", "mt.relu"]


def test_constants_are_computed_and_broadcasts_wait(x):
    ones = layout.broadcast(x.graph.constant(np.float32(2)), (BATCH, 4, 6))
    assert e.binary("mul", ones, e.binary("add", ones, 1.0)).scalar == 6
    assert lines(e.binary("maximum", x, ones)) == ["mt.input", "mt.constant", "mt.maximum"]
    mask = moves.iota(x.graph, (4, 6), 0, "i32")
    assert np.array_equal(e.compare("ge", mask, moves.iota(x.graph, (4, 6), 1, "i32")).array, np.tri(4, 6, dtype=bool))


def test_views_of_constants(x):
    numbers = np.arange(24, dtype="f4").reshape(1, 4, 6)
    value = layout.broadcast(x.graph.constant(numbers), (BATCH, 4, 6))
    moved = layout.transpose(layout.reshape(value, (BATCH, 2, 12)), (1, 0, 2))
    assert np.array_equal(moved.constant, numbers.reshape(1, 2, 12).transpose(1, 0, 2))
    assert layout.reshape(value, (BATCH * 4, 6)).constant is None  # the batch is folded with an axis
    row = layout.broadcast(x.graph.constant(numbers[:, :, :1]), (2, 4, 6))
    assert reductions.reduce("sum", row, (0, 2)).array.tolist() == [0, 72, 144, 216]
    padded = moves.pad(x.graph.constant(numbers[0, :2, :2]), 9.0, (1, -1), (0, 0), (1, 0))
    assert padded.array.tolist() == [[9], [1], [9], [7]]


def test_products_and_means(x):
    w = x.graph.variable("w", (6, 3))
    y = products.dot_general(x, w, ((2,), (0,)))
    assert y.shape == (BATCH, 4, 3)
    gram = products.dot_general(x, x, ((0, 1), (0, 1)))  # a sum over the samples
    assert gram.shape == (6, 6)
    losses.add_loss(x.graph, reductions.mean(y, (0, 1, 2)))
    assert re.search(r'mt.loss "\w+", %\S+ : tensor<\?x4x3xf32>', x.graph.text("mt.sgd"))


@pytest.mark.parametrize("make, text", [
    (lambda x: reductions.reduce("max", x, (0,)), "a maximum over the batch"),
    (lambda x: moves.slice_(x, [1, 0, 0], [BATCH, 4, 6], [1, 1, 1]), "a part of the samples"),
    (lambda x: moves.concat([x, x.graph.constant(np.ones((1, 4, 6), "f4"))], 0), "a concatenation along the batch"),
    (lambda x: moves.part(moves.concat([x, x], 0), 0, 2, None), "a part of the samples"),
    (lambda x: products.dot_general(x, x, ((1, 2), (1, 2))), "every sample with every other"),
    (lambda x: e.binary("add", layout.expand_dims(x, (0,)), layout.expand_dims(x, (1,))), "give both as many axes"),
    (lambda x: e.binary("add", x, x.graph.constant(np.ones((5, 6), "f4"))), "sizes that broadcast"),
    (lambda x: layout.reshape(x, (BATCH, 5, 5)), "as many elements"),
])
def test_refused(x, make, text):
    with pytest.raises(Refused, match=text):
        make(x)


def test_the_compiler_names_the_line_of_what_it_refuses(x):
    with x.graph.at("encoder", "model.py:12", "reshape"):
        mixed = layout.reshape(x, (2, BATCH * 2, 6))
    with x.graph.at("decoder", "model.py:15", "view"):
        other = layout.reshape(x, (2, BATCH, 12))
    with pytest.raises(ModelError) as caught:
        lines(layout.transpose(mixed, (1, 0, 2)), layout.transpose(other, (1, 0, 2)))
    first, second = str(caught.value).splitlines()
    assert re.fullmatch(r"model.py:12: reshape: .* mixes samples.* \(in \"encoder\"\)", first)
    assert re.fullmatch(r"model.py:15: view: .* mixes samples.* \(in \"decoder\"\)", second)


@pytest.mark.parametrize("summed", [True, False])
def test_gradients_that_cancel_are_not_stopped(x, summed):
    y = e.binary("mul", x, x.graph.variable("w", (6,)))
    top = x.graph.stop_gradient(reductions.reduce("max", y, (2,)))
    powers = e.unary("exp", e.binary("sub", y, layout.expand_dims(top, (2,))))
    result = e.binary("add", e.unary("log", reductions.reduce("sum", powers, (2,))), top) if summed else powers
    assert ("mt.stop_gradient" in lines(result)) is not summed


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (300, 401)])
def test_differences_are_those_of_whole_arrays(shape):
    random = np.random.default_rng(1)
    a = np.asarray(random.standard_normal(shape), "float32")
    b = np.asarray(a + 1e-3 * random.standard_normal(shape))
    whole = a.astype("float64") - b
    assert differences.largest(a) == np.abs(a).max(initial=0)
    assert differences.largest_difference(a, b) == np.abs(whole).max(initial=0)
    assert differences.norm(a) == pytest.approx(np.linalg.norm(a.astype("float64")), rel=1e-12)
    assert differences.norm_of_difference(a, b) == pytest.approx(np.linalg.norm(whole), rel=1e-12)


@pytest.mark.parametrize("place", [0, -1])
def test_differences_find_nan(place):
    a, b = np.zeros(100_000, "float32"), np.zeros(100_000)
    a[place] = np.nan
    for found in (differences.largest(a), differences.largest_difference(a, b), differences.norm(a),
                  differences.norm_of_difference(a, b)):
        assert np.isnan(found)
    with pytest.raises(ValueError, match="arrays of one shape"):
        differences.norm_of_difference(a, b[1:])
