# SPDX-License-Identifier: Apache-2.0
"""The builder that importers of traces share: logical shapes, constants, what is printed."""

import numpy as np
import pytest

from mtc._trace import BATCH, Graph, Refused
from mtc._trace import elementwise as e
from mtc._trace import differences, layout, losses, moves, products, reductions


@pytest.fixture
def x():
    return Graph("model").input("x", (BATCH, 4, 6), "f32")


def lines(*values):
    """The operations that the values need, without numbers and types of operands."""
    graph = values[0].graph
    for i, value in enumerate(values):
        graph.output(f"out{i}", layout.canonical(value).node)
    return [line.strip() for line in graph.text("mt.sgd").splitlines()[1:-2]]


def test_moves_of_the_batch_cost_nothing(x):
    folded = layout.reshape(x, (BATCH * 4, 6))
    assert folded.shape == (BATCH * 4, 6) and folded.node is x.node
    moved = layout.reshape(layout.transpose(folded, (1, 0)), (2, 3, BATCH, 4))
    back = layout.transpose(layout.reshape(moved, (6, BATCH, 4)), (1, 2, 0))
    text = lines(e.unary("exp", back))
    assert [line.split()[2] for line in text if line.startswith("%")] == ["mt.input", "mt.exp"]


def test_transpositions_of_images_cancel(x):
    first = layout.transpose(x, (0, 2, 1))
    both = layout.transpose(e.unary("relu", e.unary("exp", first)), (0, 2, 1))
    assert not any("transpose" in line for line in lines(both))


def test_constants_are_computed_and_broadcasts_wait(x):
    ones = layout.broadcast(x.graph.constant(np.float32(2)), (BATCH, 4, 6))
    assert e.binary("mul", ones, e.binary("add", ones, 1.0)).scalar == 6
    text = lines(e.binary("maximum", x, ones))
    assert any(line.startswith("%") and "mt.maximum" in line and "tensor<?x4x6xf32>, tensor<f32>" in line
               for line in text)
    mask = moves.iota(x.graph, (4, 6), 0, "i32")
    assert np.array_equal(e.compare("ge", mask, moves.iota(x.graph, (4, 6), 1, "i32")).array, np.tri(4, 6, dtype=bool))


def test_products_and_means(x):
    w = x.graph.variable("w", (6, 3))
    y = products.dot_general(x, w, ((2,), (0,)))
    assert y.shape == (BATCH, 4, 3)
    gram = products.dot_general(x, x, ((0, 1), (0, 1)))  # a sum over the samples
    assert gram.shape == (6, 6) and not gram.node.split
    losses.add_loss(x.graph, reductions.mean(y, (0, 1, 2)))
    assert "mt.loss \"loss\", %2 by elements : tensor<?x4x3xf32>" in x.graph.text("mt.sgd")


@pytest.mark.parametrize("make, text", [
    (lambda x: layout.reshape(x, (2, BATCH * 2, 6)), "mixes samples"),
    (lambda x: reductions.reduce("max", x, (0,)), "a maximum over the batch"),
    (lambda x: moves.slice_(x, [1, 0, 0], [BATCH, 4, 6], [1, 1, 1]), "a part of the samples"),
    (lambda x: moves.concat([x, x], 0), "a concatenation along the batch"),
    (lambda x: products.dot_general(x, x, ((1, 2), (1, 2))), "every sample with every other"),
    (lambda x: e.binary("add", x, x.graph.constant(np.ones((5, 6), "f4"))), "sizes that broadcast"),
])
def test_refused(x, make, text):
    with pytest.raises(Refused, match=text):
        make(x)


@pytest.mark.parametrize("summed", [True, False])
def test_gradients_that_cancel_are_not_stopped(x, summed):
    y = e.binary("mul", x, x.graph.variable("w", (6,)))
    top = x.graph.stop_gradient(reductions.reduce("max", y, (2,)))
    powers = e.unary("exp", e.binary("sub", y, layout.expand_dims(top, (2,))))
    result = e.binary("add", e.unary("log", reductions.reduce("sum", powers, (2,))), top) if summed else powers
    assert any("stop_gradient" in line for line in lines(result)) is not summed


@pytest.mark.parametrize("biased", [False, True])
def test_logits_of_most_tokens_are_products_of_these(x, biased):
    graph = x.graph
    logits = products.matmul(x, graph.variable("w", (6, 2000)))
    if biased:
        logits = e.binary("add", logits, graph.variable("b", (2000,)))
    most = moves.slice_(logits, (0, 0, 0), (None, 3, None), (1, 1, 1))
    few = moves.slice_(logits, (0, 1, 0), (None, 2, None), (1, 1, 1))
    text = lines(e.unary("exp", most), e.unary("exp", few))
    add = ["mt.add"] * biased
    ops = [line.split()[2] for line in text if line.startswith("%")]
    assert [o for o in ops if o in ("mt.slice", "mt.matmul", "mt.add", "mt.exp")] == [
        "mt.slice", "mt.matmul", *add, "mt.exp", "mt.matmul", *add, "mt.slice", "mt.exp"]


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
