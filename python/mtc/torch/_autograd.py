# SPDX-License-Identifier: Apache-2.0
"""`torch.autograd.grad` and `backward()` in a trace: the operations that derivatives of torch.func become.

A trace runs autograd on tensors without elements, which says what a result depends on. Where PyTorch would run the
graph backward, the trace gets one `mtc::derivative`. It is taken by tensors that were used before anybody asked for a
derivative by them: whatever reads them reads the point.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, Sequence

from mtc.torch import _derivative
from mtc.torch._framework import torch

FORM = ("write the step in the functional form: parameters are a part of the state, gradients come from "
        "torch.func.grad_and_value(loss_of)(state) with torch.func.functional_call(module, params, inputs) in loss_of, "
        "and the new parameters are given back (docs/pytorch.md#whole-steps)")


class Outside(Exception):
    """A derivative by what is no part of the state, the batch or what a step makes of them."""


def run_backward(of_parameters: bool, outputs: Sequence[Any], weights: Sequence[Any], retain_graph: bool,
                 create_graph: bool, inputs: Sequence[Any] = (), allow_unused: bool = False,
                 accumulate_grad: bool = False, **_: Any) -> Any:
    """As PyTorch's `_engine_run_backward`, in a trace."""
    del retain_graph
    nodes, begun = _reached(outputs)
    if not of_parameters and any(isinstance(x, torch.nn.Parameter) for x in [*begun, *inputs]):
        raise Outside(f"a derivative by the parameter of a module, which is no part of the state: {FORM}")
    if of_parameters and accumulate_grad:
        raise Outside("backward() in a module: take torch.autograd.grad(..., create_graph=True)")
    at = list(inputs or (begun if accumulate_grad else ()))
    used = [any(x is other for other in begun) if x.grad_fn is None else x.grad_fn in nodes for x in at]
    if not all(used) and not allow_unused:
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set "
                           "allow_unused=True if this is the desired behavior.")
    wanted = [x for x, is_used in zip(at, used) if is_used]
    if not all(map(_derivative.is_differentiated, wanted)):
        raise RuntimeError(_derivative.EXPECTED)
    found = list(_derivative.derivative_op(_total(outputs, weights), wanted)) if wanted else []
    found = [gradient if create_graph else gradient.detach() for gradient in found]
    made = [found.pop(0) if is_used else None for is_used in used]
    if not accumulate_grad:
        return tuple(made)
    for x, gradient in zip(at, made):
        if gradient is not None:
            x.grad = gradient if x.grad is None else x.grad + gradient
    return ()


def _total(outputs: Sequence[Any], weights: Sequence[Any]) -> Any:
    terms = [output if output.ndim == 0 and _is_one(weight) else (output * weight).sum()
             for output, weight in zip(outputs, weights)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _is_one(weight: Any) -> bool:
    """Whether it is the 1 that PyTorch makes for a number."""
    return weight is None or getattr(weight, "_mtc_is_one", False)


def ones_like(*arguments: Any, **keywords: Any) -> Any:
    """As PyTorch's `_make_grads`. It marks what it makes for numbers."""
    outputs, given = arguments[0], arguments[1]
    made = _make_grads(*arguments, **keywords)
    for output, own, weight in zip(outputs, given, made):
        if own is None and output.ndim == 0:
            weight._mtc_is_one = True
    return made


def _reached(outputs: Sequence[Any]) -> tuple[set[Any], list[Any]]:
    """The nodes of autograd behind these tensors, and the tensors that the graph begins with."""
    waiting = [output.grad_fn for output in outputs if output.grad_fn is not None]
    begun = [output for output in outputs if output.grad_fn is None and output.requires_grad]
    if not waiting and not begun:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    nodes: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node in nodes:
            continue
        nodes.add(node)
        start = getattr(node, "variable", None)
        if start is not None and all(start is not other for other in begun):
            begun.append(start)
        waiting += [following for following, _ in node.next_functions if following is not None]
    return nodes, begun


_make_grads = torch.autograd._make_grads


@contextlib.contextmanager
def taken_whole(of_parameters: bool) -> Iterator[None]:
    """Within it, derivatives of `torch.func` and of autograd are operations.

    `of_parameters`: the parameters of modules are a part of what is traced.
    """
    own = [(torch.autograd, "_engine_run_backward", functools.partial(run_backward, of_parameters)),
           (torch.autograd, "_make_grads", ones_like)]
    before = [getattr(module, name) for module, name, _ in own]
    for module, name, function in own:
        setattr(module, name, function)
    try:
        with _derivative.taken_whole():
            yield
    finally:
        for (module, name, _), function in zip(own, before):
            setattr(module, name, function)
