# SPDX-License-Identifier: Apache-2.0
"""Builds a model of the dialect `mt` from a trace: what the importers of JAX and of PyTorch share.

An importer walks the equations of its trace and calls functions of this package on values:

    graph = Graph("mlp")
    x = graph.input("image", (BATCH, 784), "f32")
    w = graph.variable("dense/kernel", (784, 10))
    y = products.dot_general(x, w, contract=((1,), (0,)))      # [BATCH, 10]
    loss = reductions.reduce("sum", per_sample, (0,)) / graph.count(BATCH)
    losses.add_loss(graph, loss)
    text = graph.text(optimizer="mt.sgd <{learning_rate = 0.1 : f32}>")

A value (`values.Value`) has the shape that the framework gives it: its sizes are integers and multiples of the batch,
`BATCH` and `BATCH * 16`, along any axis. How values are stored is the compiler's affair: the graph is written in the
dialect `graph` (docs/graph.md), and the pass `graph-layout` makes `mt` of it.

What does not depend on the batch or a variable is a constant, and computed with NumPy at once (`value.constant`).
Nothing is written that no loss, metric, output or update needs.

The modules:

    values       Batch, BATCH, Value; Refused, the error of what cannot be taken
    graph        Graph: inputs, variables, constants, counts of samples
    text         the text of a graph
    layout       broadcast, reshape, transpose, move_axis, expand_dims, squeeze: the same elements in another shape
    elementwise  unary, binary (with NumPy's broadcasting), compare, select, logic, cast, integer_power, ...; values
                 have the operators + - * / and, of booleans, & | ~
    linear       Cholesky's factor, and systems with a triangle
    reductions   reduce ("sum", "max", "min") over any axes, product, argmax, softmax, log_softmax, normalize, cumsum
    products     dot_general
    spatial      convolution, pool
    moves        slice, part and at (of one axis), pad, concat, reverse, take (rows of a table, or along an axis),
                 one_hot, iota
    losses       add_loss, add_metric: a scalar of the trace becomes means over the samples

Functions raise `Refused` with the reason where `mt` cannot do something; importers add the user's line.
`graph.at("layer")` names the operations of a layer.
"""

from mtc._trace.graph import Graph as Graph
from mtc._trace.values import BATCH as BATCH
from mtc._trace.values import Batch as Batch
from mtc._trace.values import Refused as Refused
from mtc._trace.values import Value as Value

__all__ = ["BATCH", "Batch", "Graph", "Refused", "Value"]
