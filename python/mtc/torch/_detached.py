# SPDX-License-Identifier: Apache-2.0
"""Values without a gradient in a program of torch.export, before its operations are made functional."""

from __future__ import annotations

import operator
from typing import Any

from mtc.torch import _nodes
from mtc.torch._framework import torch


def stop_gradients(program: Any) -> None:
    """Detaches what comes out of torch.no_grad(), of which a graph at the functional level says nothing.

    torch.export has a function of the graph for such a region, whose results are picked out of a tuple.
    """
    graph = program.graph
    for node in list(graph.nodes):
        if "set_grad_enabled" not in str(node.target) or not node.args or node.args[0] is not False:
            continue
        for result in list(node.users):
            tensor = result.meta.get("val")
            if isinstance(tensor, torch.Tensor) and tensor.dtype.is_floating_point:
                _insert_behind(graph, result, torch.ops.aten.detach.default)
    program.graph_module.recompile()


def _insert_behind(graph: Any, node: Any, target: Any) -> None:
    """An operation of one operand between a node and all that reads it."""
    with graph.inserting_after(node):
        made = graph.call_function(target, (node,))
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)


def separate(program: Any) -> None:
    """Copies what is detached and then written to, as in `y = x.detach(); y += z`, where `x` is not read afterwards.

    The functional form of the write is a new x and the same view of it, which would detach z too. PyTorch's gradient
    goes to z.
    """
    graph = program.graph
    order = {node: i for i, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        if node.op != "call_function" or _nodes.name_of(node.target) != "detach":
            continue
        own = _views(node)
        writes = [order[user] for view in own for user in view.users if _touches(user, view, True)]
        root = _root(program.graph_module, node)
        if not writes or root.op == "placeholder":
            continue
        later = [user for view in _views(root) - own for user in view.users
                 if user not in own and order.get(user, -1) > min(writes)]
        if not later:
            _insert_behind(graph, node, torch.ops.aten.clone.default)
    program.graph_module.recompile()


def _touches(user: Any, operand: Any, writes: bool) -> bool:
    """Whether the result of an operation shares the memory of an operand; with `writes`: whether it changes it."""
    if user.target is operator.getitem:
        return not writes and isinstance(user.meta.get("val"), torch.Tensor)
    schema = getattr(user.target, "_schema", None)
    for argument, given in zip(schema.arguments if schema is not None else (), user.args):
        if given is operand and argument.alias_info is not None:
            return bool(argument.alias_info.is_write or not writes)
    return False


def _views(node: Any) -> set[Any]:
    """The node and all that shares its memory by what is made of it."""
    found, waiting = {node}, [node]
    while waiting:
        for user in waiting.pop().users:
            if user not in found and any(_touches(user, operand, False) for operand in user.all_input_nodes
                                         if operand in found):
                found.add(user)
                waiting.append(user)
    return found


def _root(module: Any, node: Any) -> Any:
    """The node whose memory it is."""
    while True:
        source = next((operand for operand in node.all_input_nodes if _touches(node, operand, False)), None)
        if source is None:
            return node
        if "set_grad_enabled" in str(source.target):  # a function of the graph: `source` has its results
            function = getattr(module, source.args[1].target)
            results = next(n for n in function.graph.nodes if n.op == "output").args[0]
            inner = _root(function, results[node.args[1]])
            return inner if inner.op == "placeholder" else node
        node = source
