# SPDX-License-Identifier: Apache-2.0
"""Functions that are operands of operations, such as the step of a loop or a branch of torch.cond."""

from __future__ import annotations

from typing import Any

from mtc.torch import _nodes

LOOPS = ("scan", "while_loop")  # the operations whose functions MTC reads


class Subgraph:
    """A function of a graph.

    Attributes:
        placeholders: its arguments.
        nodes: the others that its results depend on, in order.
        results: nodes, or what is no node.
    """

    def __init__(self, module: Any) -> None:
        nodes = list(module.graph.nodes)
        (output,) = [node for node in nodes if node.op == "output"]
        wanted = _nodes.needed(output.all_input_nodes)
        made = output.args[0]
        self.placeholders = [node for node in nodes if node.op == "placeholder"]
        self.nodes = [node for node in nodes if node in wanted and node.op != "placeholder"]
        self.results = list(made) if isinstance(made, (list, tuple)) else [made]
