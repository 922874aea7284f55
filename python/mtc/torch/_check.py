# SPDX-License-Identifier: Apache-2.0
"""One batch through PyTorch and through MTC: the loss, all gradients and all running statistics."""

from __future__ import annotations

import contextlib
import copy
from typing import Any, Iterator, Mapping, NamedTuple

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import differences, roundings
from mtc.torch._export import training
from mtc.torch._framework import torch

TOLERANCE = 1e-4  # of the largest element of a tensor
FLOOR = 1e-3  # of the largest element of all tensors: below it a tensor is rounding errors
# The slots of its first step are minus the gradients.
OPTIMIZER = "mt.sgd <{learning_rate = 1.0 : f32, momentum = 0.5 : f32}>"

_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "dropout_"}
_PLACES = {"lstm": 5, "gru": 5, "rnn_tanh": 5, "rnn_relu": 5}  # of the rate among their arguments


class Result(NamedTuple):
    """What a step of one batch makes: its loss, gradients by parameter, and buffers."""

    loss: float
    gradients: dict[str, Array]
    buffers: dict[str, Array]


class _Fixed(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Without dropout, and with fixed numbers in place of random ones."""

    def __torch_function__(self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = dict(keywords or {})
        name = getattr(function, "__name__", "")
        if name in _DROPOUTS:
            return arguments[0] if arguments else keywords["input"]
        if name == "scaled_dot_product_attention":
            keywords.pop("dropout_p", None)
            arguments = (*arguments[:4], 0.0, *arguments[5:]) if len(arguments) > 4 else arguments
        elif name in _PLACES and len(arguments) > _PLACES[name]:
            place = _PLACES[name]
            arguments = (*arguments[:place], 0.0, *arguments[place + 1:])
        result = function(*arguments, **keywords)
        if name in ("bernoulli", "bernoulli_") and isinstance(result, torch.Tensor):
            return result.detach().fill_(arguments[1] if len(arguments) > 1 else keywords.get("p", 0.5))
        fixed = {"rand": 0.5, "rand_like": 0.5, "randn": 0.0, "randn_like": 0.0}
        return result.fill_(fixed[name]) if name in fixed else result


@contextlib.contextmanager
def _unchanged(module: Any) -> Iterator[None]:
    """With its buffers as they were afterwards."""
    buffers = {name: b.detach().clone() for name, b in module.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(buffers[name])


def reference(step: Any, arrays: Any, parameters: Mapping[str, Any], double: bool, noise: int = 0) -> Result:
    """The step in PyTorch.

    Args:
        step: a module that makes the loss first of its results.
        arrays: the batch.
        parameters: those whose gradients are asked for, by name.
        double: in float64.
        noise: n > 0: with random changes to the weights and the batch, by a share of up to `roundings.change(n)`.
    """
    if double or noise:
        names = list(parameters)
        step = copy.deepcopy(step)
        if double:
            step = step.double()
            arrays = [a.double() if a.dtype.is_floating_point else a for a in arrays]
        tensors = step.tensors()
        parameters = {name: tensors[name] for name in names}
    if noise:
        generator = torch.Generator().manual_seed(noise)
        with torch.no_grad():
            for weight in step.parameters():
                weight.copy_(_noisy(weight, noise, generator))
        arrays = [_noisy(a, noise, generator) for a in arrays]
    with training(step), _unchanged(step), _Fixed():
        loss = step(*arrays)[0]
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        buffers = {name: b.detach().cpu().numpy().copy() for name, b in step.tensors().items()
                   if not isinstance(b, torch.nn.Parameter)}
    gradients = {name: np.zeros(tuple(p.shape), "float32") if g is None else g.detach().cpu().numpy()
                 for (name, p), g in zip(parameters.items(), found)}
    return Result(float(loss.detach()), gradients, buffers)


def _noisy(tensor: Any, noise: int, generator: Any) -> Any:
    if not tensor.dtype.is_floating_point:
        return tensor
    random = torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype).to(tensor.device)
    return tensor * (1 + roundings.change(noise) * (2 * random - 1))


def run(name: str, step: Any, arrays: Any, parameters: Mapping[str, Any], ours: Result, tolerance: float) -> str:
    """Compares a step with PyTorch's. Returns a line that names the worst tensor.

    A tensor may differ from PyTorch's step in float32 by the tolerance and a few times what the same step with weights
    that differ by roundings does: some gradients are ill-conditioned, and those behind a ReLU jump where its argument
    is nearly 0. Where that does not explain a difference, PyTorch's step in float64 is the truth, and a tensor may
    differ from it by the tolerance and a few times what PyTorch's step in float32, or one with changed weights, does.

    Raises:
        ModelError: something differs by more.
    """
    single = truth = reference(step, arrays, parameters, double=False)
    errors = _errors(ours, truth)
    double = False

    def again(noise: int) -> dict[str, float]:
        return _errors(reference(step, arrays, parameters, double, noise) if noise else single, truth)

    wrong = roundings.unexplained(errors, tolerance, again, roundings.STEPS[:1])
    if wrong:
        with contextlib.suppress(Exception):  # the caller's code may insist on float32
            truth = reference(step, arrays, parameters, double=True)
            errors, double = _errors(ours, truth), True
        # Step 0 is PyTorch's in float32, which may be the truth itself.
        wrong = roundings.unexplained(errors, tolerance, again, [*([0] if double else []), *roundings.STEPS])
    if wrong:
        listed = sorted(wrong, key=lambda key: -errors[key] if errors[key] == errors[key] else -np.inf)
        text = "\n".join(f"  {key}: {errors[key]:.1e}" for key in listed[:10])
        raise ModelError(f"{name}: expected what PyTorch computes for the example within {tolerance:.0e}, found "
                         f"{len(wrong)} of {len(errors)} tensors that differ by more:\n{text}")
    worst = max(errors, key=lambda key: errors[key])
    return (f"{name}: the loss, {len(ours.gradients)} gradients and {len(ours.buffers)} buffers of the example "
            f"are PyTorch's within {tolerance:.0e}{roundings.explained(errors, tolerance)}; "
            f"the worst is {worst}, {errors[worst]:.1e}")


def _errors(ours: Result, theirs: Result) -> dict[str, float]:
    """The largest difference of each tensor, as a share of its largest element."""
    largest = max([differences.largest(g) for g in theirs.gradients.values()], default=0.0)
    errors = {"the loss": abs(ours.loss - theirs.loss) / max(abs(theirs.loss), 1e-6)}
    for key, gradient in theirs.gradients.items():
        errors[f"the gradient of {key}"] = _error(ours.gradients[key], gradient, FLOOR * largest)
    for key, buffer in ours.buffers.items():
        if key in theirs.buffers:
            errors[f"the buffer {key}"] = _error(buffer, theirs.buffers[key], 1e-6)
    return errors


def _error(mine: Array, theirs: Array, floor: float) -> float:
    scale = differences.largest(theirs) + floor
    return differences.largest_difference(mine, theirs) / scale if scale else 0.0
