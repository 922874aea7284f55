# SPDX-License-Identifier: Apache-2.0
"""Builds a model of the dialect `mt` from a trace: what the importers of JAX and of PyTorch share.

An importer walks the equations of its trace and calls functions of this package on values:

    graph = Graph("mlp")
    x = graph.input("image", (BATCH, 784), "f32")
    w = graph.variable("dense/kernel", (784, 10))
    y = products.dot_general(x, w, contract=((1,), (0,)))      # [BATCH, 10]
    loss = elementwise.divide(reductions.reduce("sum", per_sample, (0,)), graph.count(BATCH))
    losses.add_loss(graph, loss)
    text = graph.text(optimizer="mt.sgd <{learning_rate = 0.1 : f32}>")

Values (`values.Value`) have a *logical* shape, that of the trace, whose sizes are integers and multiples of the batch:
`BATCH`, `BATCH * 16`, in any place. What is *stored* is a tensor of `mt`, whose first axis may be the batch. Each
logical axis refers to axes of the stored tensor, so these cost nothing: a transposition, a broadcast, an axis of size
1, a batch that is folded with another axis (`[b * t, d]`) or that is not the first axis (`[1, b, d]`). Elementwise
operations keep the stored order of their largest operand, so that images that are stored with channels last stay so
between transpositions.

What does not depend on the batch or a variable is a constant, and computed with NumPy at once (`value.constant`).
Nothing is printed that no loss, metric, output or update needs.

The modules:

    values       Batch, BATCH, Value, Node; Refused, the error of what cannot be taken
    graph        Graph: inputs, variables, constants, counts of samples; the text
    layout       broadcast, reshape, transpose, expand_dims, squeeze: of logical shapes; arrange: a stored order
    elementwise  unary, binary (with NumPy's broadcasting), compare, select, logic, cast, integer_power, ...
    functions    sinh, atan, cbrt and others, made of the operations of mt; product along axes
    reductions   reduce ("sum", "max", "min") over any axes, argmax, softmax, log_softmax, normalize, cumsum
    products     dot_general
    spatial      convolution, pool
    moves        slice, pad, concat, reverse, take (rows of a table, or along an axis), one_hot, iota
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
