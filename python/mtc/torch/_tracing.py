# SPDX-License-Identifier: Apache-2.0
"""What `torch.export` cannot trace, in plain words, and what makes modules traceable."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import math
import sys
from typing import Any, Iterator, Optional

from mtc._errors import ModelError
from mtc._trace import places
from mtc.torch import _selected, _sequences, _shapeless
from mtc.torch._framework import torch

ACROSS = "for what compares samples see docs/pytorch.md#losses-of-all-pairs-of-samples"
_DERIVATIVES = ("a derivative inside of the module that torch.export does not trace: take it by torch.func.grad, or by "
                "torch.autograd.grad(..., create_graph=True) (docs/pytorch.md#derivatives-inside-of-a-module)")
_OF_DATA = ("its code looks at the data (an if, float(x), x.item(), a boolean index): "
            "use torch.where, a mask, or a number")
# Reasons that operations across samples are refused with.
_OF_SAMPLES = ("every sample with every other", "imum over the batch", "along the batch", "samples beside",
               "mixes samples", "samples of a batch", "sample of a batch", "over the batch", "order of the samples",
               "over the samples", "roll of the samples", "among the samples", "over all samples")
# What PyTorch says, and what it means.
_MEANINGS = {
    "specialized it to be a constant": (
        "its code makes the number of samples a constant. len(x), range(n), x.unbind(0), a loop over the batch and "
        f"torch.func.vmap do that: write x.shape[0], and operations on whole tensors; {ACROSS}"),
    "satisfy the generated guard": (
        "its code, or an operation such as torch.cdist, does one thing for few samples and another for many: {guard}; "
        f"{ACROSS}"),
    "Could not guard on data-dependent": _OF_DATA,
    "from data-dependent expression": _OF_DATA,
    "argument 'size' failed to unpack": (
        "the data say a size here, as in a packed sequence (pack_padded_sequence): run the layer over the padded "
        "sequence, and take each sample's last step by torch.gather"),
    "is mutated in the forward method": (
        "it changes a tensor that is no part of its state, such as the running statistics of a module: register it as "
        "a buffer of the module, or, in a whole step, give it to torch.func.functional_call and back as a state"),
    "fake tensor in the exported program constant": _DERIVATIVES,
    "functorch tensor": _DERIVATIVES,
    "has no attribute 'constant'": _DERIVATIVES,
}


def meaning(error: BaseException) -> Optional[str]:
    """What an error of torch.export means; None: its own text says it."""
    for cause in places.causes(error):
        text = str(cause)
        for words, found in _MEANINGS.items():
            if words in text:
                guard = next((t.partition("guard ")[2] for t in text.splitlines() if "generated guard" in t), "")
                return found.replace("{guard}", guard.replace("L['arrays'][0].size()[0]", "n"))
    return None


def refusal(error: Exception, name: str) -> ModelError:
    """The error for what `torch.export` has raised, with the caller's line if it is known."""
    place = next(filter(None, map(places.place_of, reversed(list(places.causes(error))))), "")
    reason = meaning(error)
    if reason is not None:
        return ModelError(f"{place or name}: {reason}")
    if place:
        return places.refusal(error)
    return ModelError(f"{name}: torch.export cannot trace it for batches of any size: {error}")


def with_way_out(reason: str) -> str:
    """A reason, with the page that has another way where it is of samples together."""
    across = ACROSS not in reason and any(words in reason for words in _OF_SAMPLES)
    return f"{reason}; {ACROSS}" if across else reason


@contextlib.contextmanager
def whole_experts(module: Any) -> Iterator[None]:
    """Mixtures of experts of transformers as products of all experts, as their other forms sort the samples."""
    before = []
    for config in {id(c): c for m in module.modules() if (c := getattr(m, "config", None)) is not None}.values():
        try:
            given = config._experts_implementation
        except AttributeError:
            continue
        if given != "batched_mm":
            before.append((config, given))
            config._experts_implementation = "batched_mm"
    try:
        yield
    finally:
        for config, given in before:
            config._experts_implementation = given


@contextlib.contextmanager
def without_questions() -> Iterator[None]:
    """With functions of PyTorch's that ask the data in Python, or the number of samples, without the question: a trace
    has neither. What PyTorch logs about such questions is not shown: the error says it."""
    norm = torch.nn.modules.batchnorm._BatchNorm
    replaced = [(norm, "forward", functools.partialmethod(_normalized, norm.forward)),
                (torch.nn.functional, "gaussian_nll_loss", _gaussian_nll), (torch, "cdist", _distances),
                (torch.nn.functional, "ctc_loss", _sequences.ctc_loss),
                (torch.nn.modules.transformer, "_detect_is_causal_mask", _is_said_to_be_causal)]
    parser = sys.modules.get("opt_einsum.parser")  # of packages that call opt_einsum themselves
    if parser is not None:
        replaced.append((parser, "get_shape", functools.partial(_numbers_of_shape, parser.get_shape)))
    before = [vars(owner)[name] for owner, name, _ in replaced]
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    level = logger.level
    logger.setLevel(logging.ERROR)
    for owner, name, function in replaced:
        setattr(owner, name, function)
    try:
        with contextlib.redirect_stderr(_WithoutGraphs(sys.stderr)), _WithoutQuestions():
            yield
    finally:
        logger.setLevel(level)
        for (owner, name, _), function in zip(replaced, before):
            setattr(owner, name, function)


class _WithoutQuestions(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """The same for functions of C++."""

    def __init__(self) -> None:
        super().__init__()
        self._masks = _selected.Masks()

    def __torch_function__(self, function: Any, _types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        if name in ("__getitem__", "masked_select") and len(arguments) == 2:
            selected = self._masks.index(*arguments)
            if selected is not None and (name == "__getitem__" or arguments[0].ndim == arguments[1].ndim):
                return selected
        if name == "__setitem__" and isinstance(arguments[2], _selected.Selected):
            return self._masks.put(*arguments)
        made = _shapeless.FUNCTIONS.get(function, function)(*arguments, **(keywords or {}))
        if not keywords:
            self._masks.see(function, arguments, made)
        return made


class _WithoutGraphs(io.TextIOBase):
    """A stream without the graph, of hundreds of lines, that torch.export prints before it raises an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if "def forward(self, arg0_1" in text else self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def _numbers_of_shape(own: Any, tensor: Any) -> tuple[int, ...]:
    """The sizes by which the order of the products of an einsum is chosen, where the batch is that of the example."""
    return tuple(n.node.hint if isinstance(n, torch.SymInt) else n for n in own(tensor))


def _distances(x1: Any, x2: Any, p: float = 2.0, compute_mode: Optional[str] = None) -> Any:
    """torch.cdist, which multiplies matrices for more than 25 points."""
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def _normalized(layer: Any, own: Any, images: Any) -> Any:
    """The forward of a batch normalisation. With momentum=None its running statistics are means of all batches, of
    whose number PyTorch makes a number of Python."""
    if layer.momentum is not None or not layer.training or layer.running_mean is None:
        return own(layer, images)
    layer._check_input_dim(images)
    mean, variance = layer.running_mean.clone(), layer.running_var.clone()
    made = torch.nn.functional.batch_norm(images, mean, variance, layer.weight, layer.bias, True, 1.0, layer.eps)
    layer.num_batches_tracked.add_(1)
    share = 1 / layer.num_batches_tracked.float()
    for running, new in ((layer.running_mean, mean), (layer.running_var, variance)):
        running.copy_(running + (new - running) * share)
    return made


def _is_said_to_be_causal(mask: Any, is_causal: Optional[bool] = None, size: Optional[int] = None) -> bool:
    """Whether the caller says that a mask is causal. PyTorch looks at its elements where the caller says nothing; the
    mask is applied in any case."""
    return is_causal is True


def _gaussian_nll(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
                  reduction: str = "mean") -> Any:
    """PyTorch's, which raises an error for negative variances, and raises the others to `eps` without a gradient."""
    if isinstance(var, float):
        var = torch.full_like(input, var)
    elif var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    var = torch.clamp(var, min=eps).detach() + (var - var.detach())
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0.0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss
