# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: lookups and updates at places that depend on the data, and functions that ask PyTorch for sizes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mtc
import mtc.torch

torch.set_num_threads(1)
EYE = torch.eye(4) + 0.1


def samples(h):
    return torch.arange(h.shape[0])


def assigned(h, places, value):
    h = h.clone()
    h[places] = value
    return h


# Of h [b, 4] and ids [b, 3] from 0 to 3, of which some are equal.
PLACES = {
    "one of each sample": lambda h, k: h[samples(h), k[:, 0]][:, None],
    "several of each sample": lambda h, k: h[samples(h)[:, None], k],
    "from the end": lambda h, k: h[torch.arange(h.size(0)), -1 - k[:, 0]][:, None],
    "of two axes": lambda h, k: h.reshape(-1, 2, 2)[samples(h)[:, None], k % 2, (k // 2) % 2],
    "of axes with one between": lambda h, k: h.reshape(-1, 2, 1, 2)[samples(h), k[:, 0] % 2, :, k[:, 1] % 2],
    "ids and a constant": lambda h, k: h.reshape(-1, 2, 2)[samples(h), 1, k[:, 0] % 2][:, None],
    "rows of each sample": lambda h, k: h.reshape(-1, 2, 2)[samples(h), k[:, 0] % 2],
    "set": lambda h, k: assigned(h, (samples(h), k[:, 0]), 0.5),
    "set from the end": lambda h, k: assigned(h, (samples(h), k[:, 0] - 4), h[:, 1] * 2),
    "set several": lambda h, k: assigned(h, (samples(h)[:, None], torch.stack([k[:, 0], 3 - k[:, 0]], 1)), h[:, :2]),
    "set rows": lambda h, k: assigned(h.reshape(-1, 2, 2), (samples(h), k[:, 0] % 2), h[:, :2]),
    "set a known column": lambda h, k: assigned(h, (samples(h), 2), h[:, 0]),
    "set by a mask": lambda h, k: assigned(h, h < 0, 0.25), "rows by a mask": lambda h, k: assigned(
        h, k[:, 0] > 1, torch.arange(4.0)),
    "added by a mask": lambda h, k: torch.index_put(h, (h > 0,), torch.tensor(1.0), accumulate=True),
    "set by a known mask": lambda h, k: assigned(h.T, torch.tensor([True, False, True, False]), 1.0).T,
    "added": lambda h, k: torch.index_put(h, (samples(h), k[:, 0]), h[:, 0], accumulate=True),
    "added several": lambda h, k: torch.index_put(h, (samples(h)[:, None], k), h[:, :3], accumulate=True),
    "index_add along columns": lambda h, k: h.index_add(1, torch.tensor([0, 2, 0]), h[:, :3], alpha=2),
    "masked_scatter": lambda h, k: h.masked_scatter(torch.tensor([True, False, True, False]), h[:, 1:3] * 2),
    **{f"scatter_reduce {how} {own}": lambda h, k, how=how, own=own: h.scatter_reduce(1, k, h[:, :3], how,
                                                                                   include_self=own)
       for how in ("sum", "mean", "prod", "amax", "amin") for own in (True, False)},
}
SIZES = {
    "take_along_dim": lambda h, k: torch.take_along_dim(h, torch.cat([k, k - 4], 1), 1),
    "kron": lambda h, k: torch.kron(h, torch.ones(1, 2)),
    "take_along_dim of one": lambda h, k: h.reshape(-1, 1, 4).take_along_dim(k.reshape(-1, 3, 1), 2),
    "ellipsis": lambda h, k: torch.einsum("...i,ij->...j", h, EYE),
    "ellipsis in the middle": lambda h, k: torch.einsum("b...i,ij->b...j", h.reshape(-1, 2, 1, 2), EYE[:2, :2]),
    "three operands": lambda h, k: torch.einsum("bi,ij,jk->bk", h, EYE, EYE),
    "diagonal": lambda h, k: torch.einsum("bii->bi", h[:, :, None] * h[:, None]),
    "without a result": lambda h, k: torch.einsum("bi,ij", h, EYE),
    "lists of axes": lambda h, k: torch.einsum(h, [0, 1], EYE, [1, 2], [0, 2]),
    "axes of size 1": lambda h, k: torch.einsum("bi,bi->bi", h, h[:, :1]),
    "multi_dot": lambda h, k: torch.linalg.multi_dot([h, EYE, EYE]),
    "gradient": lambda h, k: torch.gradient(h, spacing=0.5, dim=1)[0],
    "gradient of order 2": lambda h, k: torch.gradient(h, dim=1, edge_order=2)[0],
}


def symmetric(h):
    m = h.reshape(-1, 2, 2)
    return m @ m.mT + torch.diag_embed(h[:, :2])


def singular(h):
    """What does not depend on the signs of the vectors."""
    u, s, v = torch.linalg.svd(h, full_matrices=False)
    return torch.cat([(u * u).flatten(1), s, (v * v).flatten(1), (u @ v).flatten(1)], 1)


def eigenvectors(h):
    w, v = torch.linalg.eigh(symmetric(h))
    return torch.cat([w, (v * v).flatten(1), (v @ torch.diag_embed(w.sigmoid()) @ v.mT).flatten(1)], 1)


SPECTRAL = {
    "eigenvectors": lambda h, k: eigenvectors(h), "singular vectors": lambda h, k: singular(h.reshape(-1, 2, 2)),
    "of wide ones": lambda h, k: singular(torch.cat([h, h.sigmoid() + EYE[1]], 1).reshape(-1, 2, 4)),
    "of tall ones": lambda h, k: singular(torch.cat([h, h.sigmoid() + EYE[1]], 1).reshape(-1, 2, 4).mT),
    "pinv with bounds": lambda h, k: torch.linalg.pinv(torch.diag_embed(h.sigmoid() + EYE[0]), rtol=0.5),
    "pinv": lambda h, k: torch.linalg.pinv(torch.cat([h, h.sigmoid() + EYE[1]], 1).reshape(-1, 2, 4)),
}


class Functions(nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.layer, self.functions = nn.Linear(4, 4), functions

    def forward(self, x, k):
        h = self.layer(x)
        return torch.cat([f(h, k).flatten(1) for f in self.functions.values()], 1)


@pytest.mark.parametrize("functions", [PLACES, SIZES, SPECTRAL], ids=["places", "sizes", "spectral"])
def test_as_in_pytorch(functions):
    torch.manual_seed(0)
    module = Functions(functions)
    x, k = torch.randn(6, 4), torch.randint(0, 4, (6, 3))
    y = torch.randn_like(module(x, k))
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    with mtc.torch.compile(module, ((x, k), y), loss=F.mse_loss, optimizer=optimizer, verbose=0, check="full") as step:
        found = step.predict((x, k))
    torch.testing.assert_close(torch.as_tensor(found), module(x, k).detach(), rtol=1e-5, atol=1e-6)


class Unused(nn.Module):
    """With a convolution and a normalization whose results nothing reads."""

    def __init__(self, norm):
        super().__init__()
        self.head, self.aside, self.norm = nn.Linear(4, 3), nn.Conv1d(4, 2, 1), nn.BatchNorm1d(4) if norm else None

    def forward(self, x):
        self.aside(x[:, :, None])
        if self.norm:
            self.norm(x)
        return self.head(x)


def test_results_that_nothing_reads():
    x, y = torch.randn(8, 4), torch.randn(8, 3)
    module = Unused(False)
    before = module.aside.weight.detach().clone()
    optimizer = torch.optim.AdamW(module.parameters(), 0.1, weight_decay=0.5)
    with mtc.torch.compile(module, (x, y), loss=F.mse_loss, optimizer=optimizer, verbose=0) as step:
        step.train_on_batch(x, y)
    assert torch.equal(module.aside.weight, before)  # without a gradient there is no decay either
    module = Unused(True)
    with pytest.raises(mtc.ModelError, match="norm.running_mean: no loss or prediction depends on its batch norm"):
        mtc.torch.compile(module, (x, y), loss=F.mse_loss, optimizer=torch.optim.SGD(module.parameters()), verbose=0)


def by_mask(h, mask, change):
    h = h.clone()
    h[mask] = change(h[mask])
    return h


def added(h, mask):
    h = h.clone()
    h[mask] += 2
    return h


def mean_by_hand(o, t):
    chosen = (o - t).abs()[t > 0]
    return chosen.sum() / chosen.numel()


# Of outputs o [b, 4], targets t [b, 4] and labels [b], of which some are -1.
SELECTED = {
    "mean": lambda o, t, k: ((o - t) ** 2)[t > 0].mean(), "sum": lambda o, t, k: (o - t)[t > 0].square().sum(),
    "masked_select": lambda o, t, k: torch.masked_select((o - t).abs(), t > 0).mean(),
    "one mask written twice": lambda o, t, k: F.mse_loss(o[t > 0], t[t > 0]),
    "rows": lambda o, t, k: F.l1_loss(o[t[:, 0] > 0], t[t[:, 0] > 0]),
    "logarithms of numbers above 0": lambda o, t, k: torch.log(o[o > 0]).mean(),
    "root of a square": lambda o, t, k: torch.sqrt((o[t > 0] - t[t > 0]) ** 2).mean(),
    "numel": lambda o, t, k: mean_by_hand(o, t), "other": lambda o, t, k: o[~(t > 0)].tanh().mean(),
    "labels": lambda o, t, k: F.cross_entropy(o[k != -1], k[k != -1]),
    "smoothed labels": lambda o, t, k: nn.CrossEntropyLoss(label_smoothing=0.1)(o[k != -1], k[k != -1]),
    "layer": lambda o, t, k: F.linear(o[k != -1], EYE).square().mean(), "compared": lambda o, t, k: (
        F.binary_cross_entropy_with_logits(o[t > 0], (t[t > 0] > 1).float())),
    "along the rest": lambda o, t, k: o[k != -1].softmax(1).square().sum(1).sum(),
    "added in place": lambda o, t, k: added(o, t > 0).square().mean(),
    "changed": lambda o, t, k: by_mask(o, t > 0, lambda x: -x.exp()).mean(),
}


def test_rows_that_a_mask_selects():
    torch.manual_seed(0)
    module, x, t = nn.Linear(4, 4), torch.randn(7, 4), torch.randn(7, 4)
    k = torch.tensor([0, -1, 2, 3, -1, 1, 0])

    def loss(o, t, k):
        return sum(f(o, t, k) for f in SELECTED.values())

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = module

        def forward(self, x, t, k):
            o = self.layer(x)
            return {"loss": loss(o, t, k), "output": o}

    both = Both()
    optimizer = torch.optim.SGD(both.parameters(), 0.1)
    mtc.torch.compile(both, {"x": x, "t": t, "k": k}, optimizer=optimizer, verbose=0).close()
    with pytest.raises(mtc.ModelError, match=r"selected by different masks: write x\[mask\] and y\[mask\]"):
        mtc.torch.compile(module, (x, t), loss=lambda o, t: (o[t > 0] - t[t < 0]).mean(), optimizer=optimizer,
                          verbose=0)
    with pytest.raises(mtc.ModelError, match=r"len: as many .* or mask.sum\(\) for their number"):
        mtc.torch.compile(module, (x, t), loss=lambda o, t: o.sum() / len(o[t > 0]), optimizer=optimizer, verbose=0)
    with mtc.torch.compile(module, (x, t), loss=lambda o, t: (o - t)[t > 9].mean(), optimizer=optimizer, verbose=0,
                           check=False) as step:
        before = module.weight.detach().clone()
        step.train_on_batch(x, t)  # NaN without a gradient, as in PyTorch
        assert torch.equal(module.weight, before)
