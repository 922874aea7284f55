# SPDX-License-Identifier: Apache-2.0
"""What PyTorch makes of a batch: the reference of the check."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any, Iterator, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._trace import guard, reals, roundings
from mtc.torch import _nodes
from mtc.torch._export import TracedStep, modes_kept, training
from mtc.torch._framework import attention, dispatch, torch

_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout", "dropout_"}
_PLACES = {"lstm": 5, "gru": 5, "rnn_tanh": 5, "rnn_relu": 5}  # of the rate among their arguments
_NUMBERS = {"rand": 0.5, "rand_like": 0.5, "randn": 0.0, "randn_like": 0.0}


class _WithoutDropout(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Takes dropout out of the functions that have it as an argument.

    Attributes:
        drops: whether a function would have dropped elements.
    """

    drops = False

    def __torch_function__(self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = dict(keywords or {})
        name = getattr(function, "__name__", "")
        if name in _DROPOUTS:
            given = list(arguments[1:3])
            defaults = [keywords.get("p", 0.5), keywords.get("training", keywords.get("train", True))]
            self.drops |= all(map(bool, given + defaults[len(given):]))
            return arguments[0] if arguments else keywords["input"]
        if name == "scaled_dot_product_attention":
            self.drops |= bool(keywords.pop("dropout_p", arguments[4] if len(arguments) > 4 else 0.0))
            arguments = (*arguments[:4], 0.0, *arguments[5:]) if len(arguments) > 4 else arguments
        elif name == "rrelu":
            keywords.pop("training", None)
            arguments = arguments[:3]
        elif name in _PLACES and len(arguments) > _PLACES[name]:
            place = _PLACES[name]
            arguments = (*arguments[:place], 0.0, *arguments[place + 1:])
        return function(*arguments, **keywords)


class _Even(dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Has the mean in the place of random numbers, wherever they are drawn: a mode of functions does not see the ones
    within another function, such as the dropout of `multi_head_attention_forward`. Dropout is a product with numbers
    that are 1 then. Loops of `torch._higher_order_ops` compute as PyTorch has them."""

    supports_higher_order_operators = True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """PyTorch does not find the parameters that a loop's function reads, and their gradients, in other modes."""
        return True

    def __torch_dispatch__(self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        if not isinstance(function, torch._ops.OpOverload):
            return function(*arguments, **(keywords or {}))
        name = function._schema.name.rpartition("::")[2]
        if name == "native_dropout":  # only in programs of torch.export
            return arguments[0].clone(), torch.ones_like(arguments[0], dtype=torch.bool)
        result = function(*arguments, **(keywords or {}))
        if name in ("bernoulli", "bernoulli_"):
            share = arguments[1] if len(arguments) > 1 else (keywords or {}).get("p", 0.5)
            return result if isinstance(share, torch.Tensor) else result.fill_(share)
        if name in _NUMBERS:
            return result.fill_(_NUMBERS[name])
        even = _even_of(name.rstrip("_"), _nodes.bound(function, arguments, keywords or {}))
        return result if even is None else result.copy_(even) if isinstance(even, torch.Tensor) else result.fill_(even)


def _even_of(name: str, given: Sequence[Any]) -> Any:
    """What `_random` has for numbers that are drawn with parameters; None: it has nothing."""
    if name == "uniform":
        return (given[1] + given[2]) / 2
    if name == "exponential":
        return 1 / given[1]
    if name == "normal":  # of means, or into a tensor
        drawn = isinstance(given[0], torch.Tensor) and len(given) > 3
        return given[1] if drawn else given[0]
    if name.startswith("randint"):
        given = given[1:] if name.endswith("like") else given
        return given[0] if isinstance(given[1], int) else 0
    return None


@contextlib.contextmanager
def even() -> Iterator[_WithoutDropout]:
    with _WithoutDropout() as functions, _Even():
        yield functions


@contextlib.contextmanager
def _unchanged(module: Any) -> Iterator[dict[str, Any]]:
    """With its buffers, which it gives, as they were afterwards."""
    buffers = {name: b.detach().clone() for name, b in module.named_buffers()}
    try:
        yield buffers
    finally:
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(buffers[name])


@contextlib.contextmanager
def _evaluating(step: TracedStep) -> Iterator[None]:
    """In evaluation mode, and afterwards as before."""
    with modes_kept(step):
        step.eval()
        yield


@contextlib.contextmanager
def _as_traced(step: TracedStep) -> Iterator[None]:
    """In training mode but for the layers that have one formula for each mode, as a plan evaluates."""
    with training(step):
        for module in step.modules():
            if type(module).__module__.startswith("torch.nn.modules.") and not list(module.children()):
                module.training = False
        yield


class Reference:
    """A step of PyTorch, for one batch.

    Calling it with (float64?, n) gives its loss, gradients and buffers, and in evaluation mode its loss and
    predictions; for n > 0 with random changes to the weights and the batch, by a share of up to `roundings.change(n)`.

    Attributes:
        drops: whether the code drops elements in evaluation mode too, as `F.dropout(x)` does.
        changes: names of the buffers that the code changes in evaluation mode too.

    Args:
        step: a module that makes the loss first of its results.
        arrays: the batch.
        names: of the parameters whose gradients are asked for.
        traced: evaluates the code as it is in training, with the layers' formulas of evaluation.
        products: computes attention as products and a softmax, not by PyTorch's fused kernels.
    """

    def __init__(self, step: TracedStep, arrays: Sequence[Any], names: Sequence[str], traced: bool = False,
                 products: bool = False) -> None:
        # A plan of another precision than f64 computes a module of float64 in float32.
        rounds = not reals.double() and any(p.dtype == torch.float64 for p in step.parameters())
        self.step = copy.deepcopy(step).float() if rounds else step
        self.arrays = list(arrays)
        self.names = list(names)
        self.traced = traced
        self.products = products
        self.drops = False
        self.changes: list[str] = []

    def __call__(self, double: bool = False, noise: int = 0) -> guard.Values:
        step, arrays = self.step, self.arrays
        if double or noise:
            step = copy.deepcopy(step)
            if double:
                step = step.double()
                arrays = [a.double() if a.dtype.is_floating_point else a for a in arrays]
        if noise:
            generator = torch.Generator().manual_seed(noise)
            with torch.no_grad():
                for weight in step.parameters():
                    weight.copy_(noisy(weight, noise, generator))
            arrays = [noisy(a, noise, generator) for a in arrays]
        with attention.sdpa_kernel(attention.SDPBackend.MATH) if self.products else contextlib.nullcontext():
            return {**self._trained(step, arrays), **self._evaluated(step, arrays)}

    def _trained(self, step: TracedStep, arrays: Sequence[Any]) -> guard.Values:
        tensors = step.tensors()
        parameters = [tensors[name] for name in self.names]
        with training(step), _unchanged(step), even():
            loss = step(*arrays)[0]
            found = torch.autograd.grad(loss, parameters, allow_unused=True)
            buffers = {guard.BUFFER + name: _copied(b) for name, b in step.tensors().items()
                       if not isinstance(b, torch.nn.Parameter)}
        values = {guard.LOSS: _copied(loss)}
        for name, parameter, gradient in zip(self.names, parameters, found):
            # torch.sgn has a gradient of zeros without memory, which is no array.
            values[guard.GRADIENT + name] = np.zeros(tuple(parameter.shape), reals.real()) if gradient is None or (
                gradient._is_zerotensor()) else gradient.detach().cpu().numpy()
        return {**values, **buffers}

    def _evaluated(self, step: TracedStep, arrays: Sequence[Any]) -> guard.Values:
        """Nothing where the module or the loss cannot be evaluated so."""
        try:
            with (_as_traced if self.traced else _evaluating)(step), _unchanged(step) as buffers, torch.no_grad():
                with even() as functions:
                    loss, outputs = step(*arrays)
                if not self.traced:
                    self.drops |= functions.drops
                    self.changes = [name.removeprefix("module.") for name, buffer in step.named_buffers()
                                    if not torch.equal(buffer, buffers[name])]
        except Exception:  # noqa: BLE001 - the caller's code raises any
            return {}
        return {guard.LOSS + guard.EVALUATED: _copied(loss),
                **{guard.PREDICTION + name: _copied(output) for name, output in outputs.items()}}

    def repeats(self) -> None:
        """Runs the step a second time.

        Raises:
            ModelError: it does not repeat its bits, and so is no reference.
        """
        first, second = self._forward(), self._forward()
        for name, value in first.items():
            if value.tobytes() != second[name].tobytes():
                found = f" of {value.item()} and then {second[name].item()}" if value.size == 1 else ""
                raise ModelError(f"expected a module that computes the same twice for the check, found {name}{found}: "
                                 "it draws random numbers that MTC cannot see, or remembers calls. check=False "
                                 "compiles it without a check")

    def _forward(self) -> guard.Values:
        with training(self.step), _unchanged(self.step), even():
            loss, outputs = self.step(*self.arrays)
        return {guard.LOSS: _copied(loss), **{name: _copied(value) for name, value in outputs.items()}}

    def blame(self, program: Any) -> str:
        """Which of torch.export's program and MTC differs from the module, in a sentence."""
        with contextlib.suppress(Exception):  # a program that does not run says nothing
            with torch.no_grad(), _unchanged(self.step), even():
                traced = float(program.module()(*self.arrays)[0])
            expected = float(self._forward()[guard.LOSS])
            if math.isclose(traced, expected, rel_tol=1e-5, abs_tol=1e-6) or not math.isfinite(expected):
                return "torch.export's program of the module has PyTorch's loss: the difference is MTC's"
            return (f"torch.export's program of the module has the loss {traced:.7g} in PyTorch itself, where the "
                    f"module has {expected:.7g}: the trace differs from the module, before MTC reads it")
        return ""


def _copied(tensor: Any) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()


def noisy(tensor: Any, noise: int, generator: Any) -> Any:
    if not tensor.dtype.is_floating_point:
        return tensor
    random = torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype).to(tensor.device)
    return tensor * (1 + roundings.change(noise) * (2 * random - 1))
