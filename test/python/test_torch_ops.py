# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: operations where an easy formula is not PyTorch's: ties, bounds, singular points, overloads, types."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mtc
import mtc.torch

torch.set_num_threads(1)
INF = float("inf")
TIES = torch.tensor([[-2.0, -1, 0, 1, 2, 1], [0, 0, 1, 1, -1, -1], [3, -3, 3, 2, -2, 0], [1, 1, 1, 1, 1, 1]])
OTHER = torch.tensor([[-1.0, -1, 0, 0, 2, 2], [1, 0, 1, -1, -1, 0], [2, -3, 1, 2, 0, 0], [1, 0, 1, 2, 1, -1]])
SIGNS = torch.where(OTHER > 0, 1.0, -1.0)
IDS = torch.tensor([1, 0, 2, 0])
MASK = torch.tensor([[0, 1, 0, 0, 0, 1], [0] * 6, [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]]).bool()
PLACES = torch.tensor([[0], [2], [3], [4]])


TAPS = torch.linspace(-1, 1, 32).reshape(2, 2, 2, 2, 2)


def cube(x):
    """Images of three axes: [n, 1, 2, 2, 6]."""
    return x.unflatten(1, (2, 2))[:, None]


def definite(x):
    """[n, 4, 4]: symmetric and positive definite."""
    return 0.1 * x @ x.mT + 3 * torch.eye(4)


def of_several(x, function):
    """A function of images [4 * n, 1, 2, 3], four for each sample."""
    return function(x.unflatten(2, (2, 3)).flatten(0, 1)[:, None]).unflatten(0, (x.shape[0], 4))


def holes(x, value=-INF):
    """x with this value where MASK is."""
    return torch.where(MASK, value, x)


def filled(x):
    """x with numbers for what is none."""
    return torch.where(torch.isnan(x), 7.0, x.clamp(-9, 8))


APART = torch.eye(4, 6) * torch.tensor([[9.0], [18], [31], [47]])  # so that eigenvalues differ
# What each makes of x, [n, 4, 6], a parameter that is full of ties times a number of each sample.
CASES = {
    "clamp": lambda x: x.clamp(-1, 1), "clamp min": lambda x: x.clamp(min=1), "clamp max": lambda x: x.clamp(max=-1),
    "clamp above": lambda x: x.clamp(1, 0), "clamp_min": lambda x: (x - 1).clamp_min(0), "hardtanh": F.hardtanh,
    "clamp_max": lambda x: x.clamp_max(0), "relu6": lambda x: F.relu6(x * 3), "relu": F.relu, "abs": torch.abs,
    "clamp by tensors": lambda x: torch.clamp(x, -OTHER.abs(), OTHER.abs()),
    "clamp by itself": lambda x: torch.clamp(x, x.flip(-1), x.flip(-1) + OTHER),
    "maximum": lambda x: torch.maximum(x, x.flip(-1)), "minimum": lambda x: torch.minimum(x, OTHER),
    "max of two": lambda x: torch.max(x, OTHER), "max and a number": lambda x: torch.max(x, torch.tensor(1.0)),
    "min and zeros": lambda x: torch.min(x, torch.zeros_like(x)), "fmax": lambda x: torch.fmax(x, x.flip(-1)),
    "amax": lambda x: x.amax(-1), "amin of two axes": lambda x: x.amin((-1, -2)),
    "max of an axis": lambda x: x.max(-1)[0],
    "min of an axis": lambda x: x.min(1)[0], "max and place": lambda x: x.max(-1)[0] * x.max(-1)[1],
    "max kept": lambda x: x - x.max(1, keepdim=True)[0], "argmin": lambda x: x * x.argmin(-1, keepdim=True),
    "sort": lambda x: x.sort(-1)[0], "sort descending": lambda x: x.sort(-1, descending=True)[0],
    "margin ranking": lambda x: F.margin_ranking_loss(x, x.flip(-1), SIGNS.expand_as(x), margin=1.0, reduction="none"),
    "hinge": lambda x: F.hinge_embedding_loss(x, SIGNS.expand_as(x), reduction="none"),
    "multi margin": lambda x: F.multi_margin_loss(x.flatten(0, 1), torch.zeros_like(x.flatten(0, 1)[:, 0]).long(),
                                                  reduction="none"),
    "smooth l1": lambda x: F.smooth_l1_loss(x, OTHER.expand_as(x), reduction="none"),
    "huber": lambda x: F.huber_loss(x, OTHER.expand_as(x), reduction="none"),
    "bce at 0 and 1": lambda x: F.binary_cross_entropy((x.clamp(-2, 2) + 2) / 4, (SIGNS.expand_as(x) + 1) / 2,
                                                       reduction="none"),
    "bce saturated": lambda x: F.binary_cross_entropy(torch.sigmoid(x * 60), (SIGNS.expand_as(x) + 1) / 2,
                                                      reduction="none"),
    "norm 0": lambda x: (x * 0).norm(dim=-1), "norm 1": lambda x: x.norm(p=1, dim=-1),
    "norm 3": lambda x: x.norm(p=3, dim=-1), "norm 1.5 of 0": lambda x: (x * 0).norm(p=1.5, dim=-1),
    "norm inf": lambda x: x.norm(p=INF, dim=-1), "normalize 0": lambda x: F.normalize(x * 0, dim=-1),
    "cosine 0": lambda x: F.cosine_similarity(x * 0, x, dim=-1), "std 0": lambda x: (x * 0).std(-1),
    "prod": lambda x: x.prod(-1), "prod of one 0": lambda x: (x + 3).prod(1), "power 0": lambda x: x + x ** 0,
    "power 3": lambda x: x ** 3, "power 20": lambda x: (x / 3) ** 20, "power by tensor": lambda x: x ** OTHER.abs(),
    "power of a number": lambda x: 0 ** x.abs() + x, "logsumexp -inf": lambda x: torch.cat(
        [x, torch.full_like(x[:, :1], -INF)], 1).logsumexp(1),
    "safe softmax": lambda x: torch.ops.aten._safe_softmax(
        torch.where(OTHER.sum(-1, keepdim=True) > 0, torch.where(OTHER > 0, x, -INF), -INF), -1),
    "var": lambda x: x.var((1, 2), unbiased=False), "std with dim": lambda x: x.std(-1, False),
    "softplus": lambda x: F.softplus(x, 2, -1), "softplus beta": lambda x: F.softplus(x, 3, 0.2),
    "sum of a type": lambda x: x + x.detach().round().int().sum(-1, keepdim=True, dtype=torch.float32),
    "three axes of attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "attention, an empty row": lambda x: F.scaled_dot_product_attention(x, x, x, OTHER[:, :4] > 0.5),
    "attention, an empty row of floats": lambda x: F.scaled_dot_product_attention(
        x[:, None], x[:, None], x[:, None], torch.where(OTHER[:, :4] > 0.5, 0.0, -INF)),
    "avg_pool1d": lambda x: F.avg_pool1d(x.flatten(1), 3, 2), "max_pool1d": lambda x: F.max_pool1d(x.flatten(1), 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2), "max_pool2d": lambda x: F.max_pool2d(x, 2, 1),
    "max_pool2d dilated": lambda x: F.max_pool2d(x[:, None], 2, 1, dilation=2, padding=1),
    "max_pool3d": lambda x: F.max_pool3d(cube(x), 2, 1), "avg_pool3d": lambda x: F.avg_pool3d(cube(x), 2, 1, padding=1),
    "conv3d": lambda x: F.conv3d(cube(x), TAPS[:, :1], padding=(1, 0, 2), stride=(1, 1, 2), dilation=(1, 1, 2)),
    "conv3d in groups": lambda x: F.conv3d(cube(x).expand(-1, 2, -1, -1, -1), TAPS[:, :1], groups=2),
    "conv_transpose3d": lambda x: F.conv_transpose3d(cube(x), TAPS[:1], stride=2, padding=1, output_padding=1),
    "conv1d without samples": lambda x: x + F.conv1d(x.sum(0), TAPS[:, :, 0, 0].repeat(2, 2, 1)).sum(),
    "conv_transpose1d without samples": lambda x: x + F.conv_transpose1d(
        x.sum(0), TAPS[:, :, 0, 0].repeat(2, 2, 1), stride=2, padding=1).sum(),
    "conv2d of several images": lambda x: of_several(x, lambda y: F.conv2d(y, TAPS[:, :1, 0], stride=2, padding=1)),
    "max_pool2d of several images": lambda x: of_several(x, lambda y: F.max_pool2d(y, 2, 1, padding=1)),
    "avg_pool2d of several images": lambda x: of_several(x, lambda y: F.avg_pool2d(y, (2, 3), padding=(0, 1))),
    "cholesky": lambda x: torch.linalg.cholesky(definite(x)) @ x,
    "upper cholesky": lambda x: torch.linalg.cholesky(definite(x), upper=True),
    "solve_triangular": lambda x: torch.linalg.solve_triangular(definite(x), x, upper=False),
    "solve_triangular from the right": lambda x: torch.linalg.solve_triangular(
        definite(x), x.mT, upper=True, left=False, unitriangular=True),
    "cholesky_solve": lambda x: torch.cholesky_solve(x, torch.linalg.cholesky(definite(x))),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(torch.linalg.cholesky(definite(x), upper=True), upper=True),
    "eigvalsh, whose gradient both triangles have": lambda x: torch.linalg.eigvalsh(x[..., :4] + APART[:, :4]),
    "eigvalsh of the upper triangle": lambda x: torch.linalg.eigvalsh(x[..., :4] + APART[:, :4], UPLO="U"),
    "householder_product": lambda x: torch.linalg.householder_product(x.mT / 4, APART[0, :3] / 9 + x[:, :3, 0] / 8),
    "svdvals": lambda x: torch.linalg.svdvals(x + APART),
    "diagonal": lambda x: x[:, :, :4].diagonal(1, 1, 2), "diagonal below": lambda x: torch.diagonal(x, -2, -1, -2),
    "meshgrid": lambda x: sum(torch.meshgrid(TIES[0], TIES[1, :4], indexing="xy")) * x,
    "atleast_3d": lambda x: x * torch.atleast_3d(TIES[0])[..., 0], "unsafe_split": lambda x: x.unsafe_split(3, 2)[1],
    "lgamma": lambda x: torch.lgamma(x * 0.3 + 1.6), "digamma": lambda x: torch.digamma(x.abs() + 0.7),
    "nearest to other sizes": lambda x: F.interpolate(x[:, None], (3, 8)),
    "nearest exact": lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"),
    "nearest of 3 axes": lambda x: F.interpolate(cube(x), (3, 4, 5)),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x[:, None], (3, 4)),
    "adaptive of 3 axes": lambda x: F.adaptive_avg_pool3d(cube(x), (1, 2, 4)),
    **{f"pad {mode}": lambda x, mode=mode: F.pad(x[:, None], (2, 3, 1, 0), mode=mode)
       for mode in ("reflect", "replicate", "circular")},
    "pad reflect and cut": lambda x: F.pad(x, (-1, 2), mode="reflect"),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 2)), "lp_pool1d": lambda x: F.lp_pool1d(x.flatten(1) + 4, 2, 3),
    "antialias": lambda x: F.interpolate(x[:, None], (3, 4), mode="bilinear", antialias=True),
    "antialias up": lambda x: F.interpolate(x[:, None], (7, 3), mode="bicubic", antialias=True),
    "bilinear": lambda x: F.interpolate(x[:, None], (3, 9), mode="bilinear"),
    "layer norm's mean": lambda x: x * torch.add(*torch.native_layer_norm(x * x, (6,), None, None, 1e-5)[1:]),
    "no axes": lambda x: x + x.mean().softmax(0) + x.mean().cumsum(0) + x.mean().max(0)[0] + x.mean().topk(1)[0],
    "no places": lambda x: x + x[:, :, :0] @ x[:, :0] + x.mean().gather(0, torch.tensor(0)),
    "no axes either": lambda x: x + x.mean().transpose(0, -1) + x.mean().sort()[0] + x.mean().sum(0),
    "integers of 8 bits": lambda x: x + ((x.detach() * 60 + 130).to(torch.uint8) - 200).float(),
    "a derivative at data": lambda x: torch.autograd.grad(((y := x.detach().requires_grad_()) ** 2 * x).sum(), y,
                                                          create_graph=True)[0] if x.requires_grad else x,
    "a derivative": lambda x: torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0] if x.requires_grad else x,
    "signed integers": lambda x: x + ((x.detach() * 40).to(torch.int8) * 3 + 100).float(),
    "gather among infinities": lambda x: holes(x).gather(-1, PLACES.expand(x.shape[0], 4, 1)),
    "gather two among infinities": lambda x: holes(x).gather(-1, torch.stack(
        [PLACES[:, 0], torch.arange(2, 6)], 1).expand(x.shape[0], 4, 2)),
    "gather along another axis": lambda x: holes(x).gather(1, torch.tensor([[1, 1, 3, 2, 0, 1]]).expand(
        x.shape[0], 1, 6)),
    "labels among masked classes": lambda x: holes(x).log_softmax(-1).gather(-1, PLACES.expand(x.shape[0], 4, 1)),
    "sort NaN": lambda x: filled(holes(x, math.nan).sort(-1)[0]),
    "sort NaN descending": lambda x: filled(holes(x, math.nan).sort(-1, descending=True)[0]),
    "argsort NaN": lambda x: x * torch.argsort(holes(x, math.nan), dim=-1, stable=True),
    "topk NaN": lambda x: filled(holes(x + torch.arange(6) * 0.1, math.nan).topk(3)[0]),
    "topk of the smallest, NaN": lambda x: filled(holes(x + torch.arange(6) * 0.1, math.nan).topk(
        5, largest=False)[0]),
    "sinc": lambda x: torch.sinc(x) + torch.sinc(x + 0.3), "isinf": lambda x: x * torch.isinf(holes(x)),
    "log2": lambda x: torch.log2(x.abs() + 0.5), "log10": lambda x: torch.log10(x.abs() + 0.5), "exp2": torch.exp2,
    "xlogy": lambda x: torch.xlogy(x.clamp(min=0), TIES.clamp(min=0)),
    "pad by -inf": lambda x: F.pad(x, (1, 2), value=-INF).softmax(-1),
    "xlog1py": lambda x: torch.special.xlog1py(x * 0, TIES / 3), "entropy": lambda x: torch.special.entr(x.abs() + 0.5),
    "integers of 16 bits": lambda x: x + ((x.detach() * 9000).to(torch.int16) + 20000).float(),
}


class Cases(nn.Module):
    """Each case has a parameter of its own, so its gradients tell which one is wrong."""

    def __init__(self, names):
        super().__init__()
        self.names = names
        self.p = nn.ParameterList([nn.Parameter(TIES.clone()) for _ in names])
        with torch.no_grad():
            generator = torch.Generator().manual_seed(3)
            for i, name in enumerate(names):
                made = CASES[name](torch.ones(5, 1, 1) * TIES)
                self.register_buffer(f"w{i}", torch.randn(made.shape[1:], generator=generator) + 0.2)

    def forward(self, d):
        parts = []
        for i, (name, p) in enumerate(zip(self.names, self.p)):
            x = CASES[name](d[:, None, None] * p)
            w = getattr(self, f"w{i}")
            parts.append((x * w).mean() if x.shape[1:] == w.shape else (x.reshape(len(d), -1) * w).mean())
        return torch.stack(parts).sum()


def step_of(module, example, loss=None):
    optimizer = torch.optim.SGD(module.parameters(), 1.0)
    return mtc.torch.compile(module, example, loss=loss, optimizer=optimizer, devices="cpu:1", check=False, verbose=0)


def gradients(module, example, loss=None):
    """The loss and gradients of a step in MTC, and in PyTorch."""
    before = [p.detach().clone() for p in module.parameters()]
    twin = copy.deepcopy(module)
    value = twin(**example) if isinstance(example, dict) else loss(twin(example[0]), example[1])
    theirs = torch.autograd.grad(value, list(twin.parameters()))
    step = step_of(module, example, loss)
    mine = step.train_on_batch(example)["loss"]
    step.to_module()
    step.close()
    return mine, [b - p.detach() for b, p in zip(before, module.parameters())], float(value), theirs


class Powers(nn.Module):
    """a ^ b, both trained, where one of the formulas of the gradients has no value."""

    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor(a)), nn.Parameter(torch.tensor(b))

    def forward(self, d):
        return (d[:, None] * self.a ** self.b).mean()


class Behind(nn.Module):
    """Parameters that the loss has no gradient to: PyTorch's is 0, and their decay goes on."""

    def __init__(self):
        super().__init__()
        self.p, self.q = nn.Parameter(TIES.clone() + 0.3), nn.Parameter(torch.ones(6))

    def forward(self, d):
        return ((d[:, None] * self.q) * (self.p.floor() + self.p.sign() + self.p.round() + self.p ** 0).sum(0)).mean()


NAMES = list(CASES)


@pytest.mark.parametrize("names", [NAMES[i::4] for i in range(4)], ids=range(4))
def test_operations_are_those_of_pytorch(names):
    mine, found, theirs, wanted = gradients(Cases(names), {"d": torch.ones(5)})
    wrong = {}
    for name, a, b in zip(names, found, wanted):
        if not np.allclose(a, b, rtol=1e-4, atol=2e-6 * (1 + float(b.abs().max())), equal_nan=True):
            wrong[name] = float((a - b).abs().max())
    assert not wrong
    assert mine == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("a, b", [([0.0, 0, 0, 2, 3, 0.5, 0], [0.0, 2, 1, 0, -1, -3, 0.5]), ([-2.0, -2], [2.0, 3]),
                                  ([-2.0, 1], [1.5, 1])])
def test_powers_of_zero_and_of_negative_numbers(a, b):
    module, d = Powers(a, b), torch.ones(3)
    wanted = torch.autograd.grad(module(d), [module.a, module.b])
    before = [p.detach().clone() for p in module.parameters()]
    step = step_of(module, {"d": d})
    step.train_on_batch({"d": d}, allow_nan=True)
    step.to_module()
    for p, q, gradient in zip(before, module.parameters(), wanted):
        assert np.allclose(p - q.detach(), gradient, rtol=1e-5, equal_nan=True)


def test_without_a_gradient_the_decay_goes_on():
    assert_alike(*follow(Behind(), [{"d": torch.ones(3)}] * 3, weight_decay=0.1, momentum=0.5))


class Labels(nn.Module):
    """A loss whose labels may all be ignored."""

    def __init__(self, **options):
        super().__init__()
        self.e, self.o, self.options = nn.Embedding(10, 8), nn.Linear(8, 10), options

    def forward(self, ids, y):
        logits = self.o(self.e(ids)).flatten(0, 1)
        if "nll" in self.options:
            return F.nll_loss(logits.log_softmax(-1), y.flatten(), **self.options["nll"])
        return F.cross_entropy(logits, y.flatten(), **self.options)


class Masked(nn.Module):
    """Attention over sequences of which some may be empty."""

    def __init__(self):
        super().__init__()
        self.a, self.o = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 1)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x, pad):
        h = self.layer(x, src_key_padding_mask=pad) + self.a(x, x, x, key_padding_mask=pad, need_weights=False)[0]
        kept = (~pad).float().unsqueeze(-1)
        return self.o((h * kept).sum(1) / kept.sum(1).clamp(min=1))


class Padded(nn.Module):
    """Rows of a table, some of padding, by ids that are constants and by ids of the data."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(4, 3, padding_idx=0)
        nn.init.ones_(self.e.weight)
        self.register_buffer("ids", torch.tensor([1, 0, 2, 0]))

    def forward(self, ids):
        return self.e(self.ids) * self.e(ids)


def follow(module, batches, loss=None, rate=0.5, allow_nan=False, **options):
    """Losses and weights after steps, in MTC and in PyTorch."""
    torch.manual_seed(0)
    twin = copy.deepcopy(module)
    theirs = torch.optim.SGD(twin.parameters(), rate, **options)
    step = mtc.torch.compile(module, batches[0], loss=loss, optimizer=torch.optim.SGD(module.parameters(), rate,
                             **options), devices="cpu:1", check=False, verbose=0)
    found = [step.train_on_batch(batch, allow_nan=allow_nan)["loss"] for batch in batches]
    step.to_module()
    step.close()
    wanted = []
    for batch in batches:
        theirs.zero_grad()
        value = twin(**batch) if isinstance(batch, dict) else loss(twin(*batch[0]), batch[1])
        value.backward()
        theirs.step()
        wanted.append(float(value))
    return found, wanted, zip(module.parameters(), twin.parameters())


def assert_alike(found, wanted, weights):
    assert np.allclose(found, wanted, rtol=1e-4, equal_nan=True), (found, wanted)
    for a, b in weights:
        assert np.allclose(a.detach(), b.detach(), rtol=1e-3, atol=1e-5, equal_nan=True)


WEIGHT = torch.linspace(0.5, 1.5, 10)


@pytest.mark.parametrize("options, decay", [
    ({}, 0.0), ({"label_smoothing": 0.1}, 0.1), ({"weight": WEIGHT}, 0.0), ({"nll": {}}, 0.0),
    ({"nll": {"weight": WEIGHT}}, 0.1)])
def test_a_batch_without_labels_has_no_loss_and_changes_nothing(options, decay):
    """The loss is not a number, as in PyTorch, and its gradient is 0."""
    ids = torch.randint(0, 10, (4, 6), generator=torch.Generator().manual_seed(1))
    some, none = ids.clone(), torch.full((4, 6), -100)
    some[:, 3:] = -100
    batches = [{"ids": ids, "y": y} for y in (some, none, some)]
    found, wanted, weights = follow(Labels(**options), batches, weight_decay=decay)
    assert np.isnan(found).tolist() == [False, True, False]
    assert_alike(found, wanted, weights)


def test_classes_without_weight():
    """The mean of labels whose classes all have the weight 0 is 0 / 0 in PyTorch, and so is its gradient."""
    ids = torch.tensor([[1, 2], [3, 4]])
    module = Labels(weight=torch.tensor([0.0] + 9 * [1.0]))
    batches = [{"ids": ids, "y": y} for y in (torch.tensor([[0, 1], [2, -100]]), torch.tensor([[0, 0], [0, 0]]))]
    assert_alike(*follow(module, batches, allow_nan=True))


def test_empty_sequences_of_attention():
    torch.manual_seed(1)
    x, y, pad = torch.randn(4, 5, 8), torch.randn(4, 1), torch.zeros(4, 5, dtype=torch.bool)
    pad[1, 3:] = True
    empty = pad.clone()
    empty[2] = True
    assert_alike(*follow(Masked(), [((x, pad), y), ((x, empty), y), ((x, pad), y)], F.mse_loss, 0.1))


def test_rows_of_padding_have_no_gradient():
    ids = torch.tensor([[1, 0, 3, 2], [2, 2, 0, 1]])
    assert_alike(*follow(Padded(), [((ids,), torch.zeros(2, 4, 3))] * 2, F.mse_loss))


class Whole(nn.Module):
    """Reductions over all axes, by overloads whose first argument is no axis."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        w = self.w
        return (torch.tensordot(x, w, dims=([1], [0])) * w.var(False) + w.std(False) + w.var(True)
                + w.sum(dtype=torch.float32) + w.mean(dtype=torch.float32) + w.prod(dtype=torch.float32))


def test_reductions_over_all_axes():
    torch.manual_seed(4)
    x, y = torch.randn(5, 4), torch.randn(5, 3)
    assert_alike(*follow(Whole(), [((x,), y), ((x * 2,), y)], F.mse_loss, 0.1))


class Pairs(nn.Module):
    """The contrastive loss of docs/pytorch.md."""

    def __init__(self, most):
        super().__init__()
        self.encoder, self.most = nn.Linear(4, 8), most

    def forward(self, x, y):
        a, b = self.encoder(x), self.encoder(y)
        n = x.shape[0]
        every = torch.zeros(self.most, 8).index_add(0, torch.arange(n), b)
        logits = (a @ every.T).masked_fill(torch.arange(self.most) >= n, -1e9)
        return F.cross_entropy(logits, torch.arange(n))


def test_losses_of_all_pairs():
    torch.manual_seed(2)
    x, y = torch.randn(6, 4), torch.randn(6, 4)
    assert_alike(*follow(Pairs(6), [{"x": x[:n], "y": y[:n]} for n in (6, 4, 6)], rate=0.1))


def test_experts_of_transformers():
    """Those that sort the samples are traced in another form; the module's configuration stays."""
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    config = MixtralConfig(vocab_size=20, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                           num_attention_heads=2, num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=2)
    module, ids = MixtralForCausalLM(config), torch.randint(0, 20, (3, 4))
    before = config._experts_implementation
    mtc.torch.compile(module, {"input_ids": ids, "labels": ids}, optimizer="sgd", verbose=0)
    assert config._experts_implementation == before


class Refused(nn.Module):
    """What is refused, with the reason."""

    def __init__(self, function):
        super().__init__()
        self.p, self.function = nn.Parameter(torch.ones(4)), function

    def forward(self, d):
        return self.function(d[:, None] * self.p, self.p).mean()


@pytest.mark.parametrize("function, reason", [
    (lambda x, p: x.to(torch.bfloat16).float(), r"torch.bfloat16 amid float32.*precision=\"bf16\""),
    (lambda x, p: x.half().float(), r"torch.float16 amid float32"),
    (lambda x, p: x * (x.detach().to(torch.int16) * x.detach().to(torch.int16)), "integers of 16 bits.*torch.int32"),
    (lambda x, p: torch.native_layer_norm(x, (4,), None, None, 1e-5)[0] * F.max_pool2d_with_indices(
        x[:, None, None], (1, 2))[1].sum(), "result 1 of max_pool2d_with_indices"),
    (lambda x, p: x.max(0)[0], "over the batch.*docs/pytorch.md#losses-of-all-pairs-of-samples"),
    (lambda x, p: x.sort(0)[0], "order of the samples.*docs/pytorch.md#losses-of-all-pairs-of-samples"),
    (lambda x, p: x @ x.T, "every sample with every other.*docs/pytorch.md#losses-of-all-pairs-of-samples"),
    (lambda x, p: x.sum() / len(x), "x.shape.0.*docs/pytorch.md#losses-of-all-pairs-of-samples"),
    (lambda x, p: x * float(p.sum()), "looks at the data.*torch.where"),
    (lambda x, p: F.mse_loss(x.sum(1, keepdim=True), x.detach()[:, 0]), "every sample with every other one.*as many"),
    (lambda x, p: x * torch.randn(4, generator=torch.Generator()), "no tensor, such as a torch.Generator.*seed="),
    (lambda x, p: torch.tensor_split(x, torch.tensor([1, 3]), 1)[1], "a place that a tensor says")])
def test_what_is_refused_says_why(function, reason):
    with pytest.raises(mtc.ModelError, match=reason) as caught:
        step_of(Refused(function), {"d": torch.ones(3)})
    assert len(str(caught.value)) < 700


def test_an_error_that_nobody_has_foreseen_is_a_refusal(monkeypatch):
    def fails(*_):
        raise IndexError("out of range")

    monkeypatch.setitem(mtc.torch._handlers.HANDLERS, "cos", fails)
    with pytest.raises(mtc.ModelError, match=r"_ops.py:\d+: .*cos: an error in MTC.*IndexError: out of range"):
        step_of(Refused(lambda x, p: x.cos()), {"d": torch.ones(3)})
