# SPDX-License-Identifier: Apache-2.0
"""One batch through PyTorch and through MTC: the loss, all gradients and all statistics, before anything is returned."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
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


def reference(step: Any, arrays: Any, parameters: Mapping[str, Any]) -> Result:
    """The step in PyTorch. `step`: a module that makes the loss first of its results."""
    with training(step), _unchanged(step), _Fixed():
        loss = step(*arrays)[0]
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        buffers = {name: b.detach().cpu().numpy().copy() for name, b in step.tensors().items()
                   if isinstance(b, torch.Tensor) and not isinstance(b, torch.nn.Parameter)}
    gradients = {name: np.zeros(tuple(p.shape), "float32") if g is None else g.detach().cpu().numpy()
                 for (name, p), g in zip(parameters.items(), found)}
    return Result(float(loss.detach()), gradients, buffers)


def compare(name: str, ours: Result, theirs: Result, tolerance: float, show: Optional[Callable[[str], None]]) -> None:
    """Compares, and tells the worst.

    Raises:
        ModelError: something differs by more than the tolerance.
    """
    largest = max([float(np.abs(g).max(initial=0)) for g in theirs.gradients.values()], default=0.0)
    errors = {"the loss": abs(ours.loss - theirs.loss) / max(abs(theirs.loss), 1e-6)}
    for key, gradient in theirs.gradients.items():
        errors[f"the gradient of {key}"] = _error(ours.gradients[key], gradient, FLOOR * largest)
    for key, buffer in ours.buffers.items():
        errors[f"the buffer {key}"] = _error(buffer, theirs.buffers[key], 1e-6)
    worst = max(errors, key=lambda key: errors[key] if errors[key] == errors[key] else np.inf)
    if not errors[worst] <= tolerance:
        listed = sorted(((v, k) for k, v in errors.items() if not v <= tolerance), reverse=True)
        text = "\n".join(f"  {k}: {v:.2e}" for v, k in listed[:10])
        raise ModelError(f"{name}: expected what PyTorch computes for the example within {tolerance:.0e}, found "
                         f"{len(listed)} of {len(errors)} tensors that differ by more:\n{text}")
    if show is not None:
        show(f"mtc: {name}: the loss, {len(theirs.gradients)} gradients and {len(ours.buffers)} buffers of the example "
             f"are PyTorch's within {tolerance:.0e}; the worst is {worst}, {errors[worst]:.1e}")


def _error(mine: Array, theirs: Array, floor: float) -> float:
    """The largest difference, as a share of the largest element."""
    scale = float(np.abs(theirs).max(initial=0)) + floor
    return float(np.abs(mine.astype("float64") - theirs).max(initial=0)) / scale if scale else 0.0
