# SPDX-License-Identifier: Apache-2.0
"""Losses of sequences without an alignment, as operations that a trace can have."""

from __future__ import annotations

from typing import Any

from mtc.torch._framework import torch

_NEVER = -1e30  # the logarithm of a probability of 0


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Any:
    """As `torch.nn.functional.ctc_loss` (Graves et al. 2006): the probabilities of all alignments are added step by
    step. Of [T, N, C] and targets [N, S] or one after the other, or of one sample, [T, C] and [S]."""
    if log_probs.ndim == 2:
        input_length, length = (torch.as_tensor(n).reshape(1) for n in (input_lengths, target_lengths))
        made = ctc_loss(log_probs[:, None], targets[None], input_length, length, blank, reduction, zero_infinity)
        return made[0] if reduction == "none" else made
    if targets.ndim == 1:
        targets = _in_rows(targets, target_lengths)
    steps, rows, classes = log_probs.shape
    size = targets.shape[1]
    lengths = (input_lengths, target_lengths)
    input_lengths, target_lengths = (torch.as_tensor(n, device=log_probs.device) for n in lengths)
    # Blanks between, before and behind the labels.
    labels = torch.stack([torch.full_like(targets, blank), targets], 2).flatten(1)
    labels = torch.cat([labels, labels[:, :1]], 1).clamp(0, classes - 1)
    # From a label to the next one without a blank between them, where they differ.
    skips = torch.nn.functional.pad((targets[:, 1:] != targets[:, :-1]).to(log_probs.dtype), (1, 0))
    skips = torch.stack([torch.zeros_like(skips), skips], 2).flatten(1)
    skips = torch.cat([skips, torch.zeros_like(skips[:, :1])], 1) > 0
    places = torch.arange(2 * size + 1, device=log_probs.device)
    chosen = log_probs.transpose(0, 1).gather(2, labels[:, None, :].expand(rows, steps, 2 * size + 1))
    sums = torch.where(places < 2, chosen[:, 0], _NEVER)
    for step in range(1, steps):
        before = torch.nn.functional.pad(sums, (2, 0), value=_NEVER)
        ways = torch.stack([sums, before[:, 1:-1], torch.where(skips, before[:, :-2], _NEVER)])
        sums = torch.where(step < input_lengths[:, None], chosen[:, step] + ways.logsumexp(0), sums)
    ends = (places == 2 * target_lengths[:, None]) | (places == 2 * target_lengths[:, None] - 1)
    loss = -torch.where(ends, sums, _NEVER).logsumexp(1)
    # PyTorch's gradient is that behind a log_softmax, for any log_probs: the probabilities themselves are added to it.
    # Above 80 they would overflow, and the loss would be no number.
    inside = torch.arange(steps, device=log_probs.device)[:, None] < input_lengths.reshape(1, -1)
    total = torch.where(inside, log_probs.clamp(max=80).exp().sum(2), 0.0).sum(0)
    loss = loss + (total - total.detach())
    loss = torch.where(loss > -_NEVER / 2, 0.0 if zero_infinity else float("inf"), loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss


def _in_rows(targets: Any, lengths: Any) -> Any:
    """[N, S] of the targets of all samples one after the other, with any labels behind those of a sample."""
    known = not isinstance(lengths, torch.Tensor)
    most = max(lengths, default=0) if known else targets.shape[0]
    lengths = torch.as_tensor(lengths, device=targets.device)
    places = (lengths.cumsum(0) - lengths)[:, None] + torch.arange(most, device=targets.device)
    return targets[places.clamp(max=targets.shape[0] - 1)]
