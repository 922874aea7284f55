# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch that look at sizes or at data, written without these questions.

torch.export makes the number of samples a constant where such a function compares it with another number, although its
result does not depend on the answer.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Sequence

from mtc.torch._einsum import einsum
from mtc.torch._framework import torch


def _covariance(given: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """As torch.cov, which looks whether the weights are good ones."""
    x = given.reshape(1, -1) if given.ndim < 2 else given
    weights = [w for w in (fweights, aweights) if w is not None]
    each = math.prod(weights) if weights else torch.ones(x.shape[1])
    total = each.sum()
    x = x - ((x * each).sum(1) / total)[:, None]
    lost = correction if aweights is None else correction * (each * aweights).sum() / total
    return ((x * each) @ x.mT.conj() / (total - lost).clamp(min=0)).squeeze()


def _correlation(given: Any) -> Any:
    found = _covariance(given)
    if found.ndim == 0:
        return found / found
    size = found.diagonal().sqrt()
    return found / size[:, None] / size[None, :]


def _take_along_dim(given: Any, indices: Any, dim: Any = None) -> Any:
    """torch.take_along_dim, which broadcasts the two, and counts indices below 0 from the end."""
    if dim is None:
        return _take_along_dim(given.reshape(-1), indices.reshape(-1), 0)
    axis = dim % given.ndim
    if given.ndim != indices.ndim:
        return _OWN["take_along_dim"](given, indices, dim)
    for i in range(given.ndim):
        if i != axis and given.shape[i] == 1:
            given = given.expand(*given.shape[:i], indices.shape[i], *given.shape[i + 1:])
        elif i != axis and indices.shape[i] == 1:
            indices = indices.expand(*indices.shape[:i], given.shape[i], *indices.shape[i + 1:])
    return torch.gather(given, axis, torch.where(indices < 0, indices + given.shape[axis], indices))


def _multi_dot(tensors: Sequence[Any], *, out: Any = None) -> Any:
    """torch.linalg.multi_dot, from the left: PyTorch compares what each order costs."""
    return functools.reduce(torch.matmul, tensors)


def _gradient(given: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """torch.gradient with numbers as spacing."""
    axes = list(range(given.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacing = 1 if spacing is None else spacing
    steps = [spacing] * len(axes) if isinstance(spacing, (int, float)) else list(spacing)
    if any(isinstance(step, torch.Tensor) for step in steps):
        return _OWN["gradient"](given, spacing=spacing, dim=dim, edge_order=edge_order)
    return [_slope(given.movedim(axis, -1), step, edge_order).movedim(-1, axis) for axis, step in zip(axes, steps)]


def _slope(x: Any, step: float, order: int) -> Any:
    """Central differences along the last axis, and one-sided ones at its ends."""
    inner = (x[..., 2:] - x[..., :-2]) / (2 * step)
    if order == 1:
        first, last = (x[..., 1:2] - x[..., :1]) / step, (x[..., -1:] - x[..., -2:-1]) / step
    else:
        first = (-1.5 * x[..., :1] + 2 * x[..., 1:2] - 0.5 * x[..., 2:3]) / step
        last = (1.5 * x[..., -1:] - 2 * x[..., -2:-1] + 0.5 * x[..., -3:-2]) / step
    return torch.cat([first, inner, last], -1)


def _kron(a: Any, b: Any) -> Any:
    """torch.kron: of each element of `a` a copy of `b` times it."""
    rank = max(a.ndim, b.ndim)
    a, b = (x.reshape(*[1] * (rank - x.ndim), *x.shape) for x in (a, b))
    shape = [n * m for n, m in zip(a.shape, b.shape)]
    for i in range(rank):
        a, b = a.unsqueeze(2 * i + 1), b.unsqueeze(2 * i)
    return (a * b).reshape(shape)


_OWN = {"take_along_dim": torch.take_along_dim, "gradient": torch.gradient}
FUNCTIONS = {
    torch.einsum: einsum, torch.cov: _covariance, torch.Tensor.cov: _covariance, torch.corrcoef: _correlation,
    torch.Tensor.corrcoef: _correlation, torch.take_along_dim: _take_along_dim,
    torch.Tensor.take_along_dim: _take_along_dim, torch.linalg.multi_dot: _multi_dot, torch.chain_matmul:
    lambda *tensors: _multi_dot(tensors), torch.gradient: _gradient, torch.kron: _kron, torch.Tensor.kron: _kron,
}
