# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: functions of an element, in value and gradient, also where one of them is infinite or not a number."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from test_torch_ops import assert_alike as assert_steps_alike
from test_torch_ops import follow
from torch.nn import functional as F

import mtc
import mtc.torch

torch.set_num_threads(1)
INF, NAN = math.inf, math.nan
POINTS = torch.tensor([0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e-4, -1e-4, 0.3, -0.7, 0.9999, -0.9999, 1.0001, 7.3, -8.9,
                       15, -30, 1e10, -1e10, INF, -INF, NAN, -0.0, 2.5, -1.5, 0.25, 60])
OTHERS = torch.tensor([0.0, 1, -1, 0.3, -0.3, 2, 3, -2, -2, 0, 5, -0.7, 0.1, 1, 1, 0.1, -0.1, 2, 4, 7, 1e5, 3, 2, INF,
                       1, -0.0, 0, -INF, -0.1, 7])
LIMITS = torch.tensor([-1.0, 0, 0.5, 2])

# What each makes of x and y, the points and the others.
CASES = {
    "atan": lambda x, y: torch.atan(x), "asin": lambda x, y: torch.asin(x), "acos": lambda x, y: torch.acos(x),
    "tan": lambda x, y: torch.tan(x.clamp(-1.5, 1.5)), "atan2": torch.atan2, "sinh": lambda x, y: torch.sinh(x),
    "cosh": lambda x, y: torch.cosh(x), "asinh": lambda x, y: torch.asinh(x), "acosh": lambda x, y: torch.acosh(x),
    "atanh": lambda x, y: torch.atanh(x), "hypot": torch.hypot, "erfc": lambda x, y: torch.erfc(x),
    "erfcx": lambda x, y: torch.special.erfcx(x), "log_ndtr": lambda x, y: torch.special.log_ndtr(x.clamp(-50, 50)),
    "fmod": lambda x, y: torch.fmod(x, y), "fmod by a number": lambda x, y: torch.fmod(x, 0.7),
    "remainder": lambda x, y: torch.remainder(x, y), "remainder of a number": lambda x, y: x * (5.5 % x.detach()),
    "remainder by a number": lambda x, y: x % -0.3, "floor_divide": lambda x, y: x * (x.detach() // 0.1),
    "quotients": lambda x, y: x * (x.detach() // y.detach()), "half": lambda x, y: x.detach() // -2 + x,
    "trunc": lambda x, y: x + torch.div(x, y, rounding_mode="trunc"), "copysign": torch.copysign,
    "copysign of a number": lambda x, y: torch.copysign(x, -2.0), "signbit": lambda x, y: x.exp() * torch.signbit(y),
    "angle": lambda x, y: x.exp() * torch.angle(y), "ldexp": lambda x, y: torch.ldexp(x, y.clamp(-5, 5).round()),
    "decimals": lambda x, y: x * torch.round(x, decimals=2), "tens": lambda x, y: x * torch.round(x, decimals=-1),
    "bucketize": lambda x, y: x * torch.bucketize(x, LIMITS),
    "bucketize right": lambda x, y: x * torch.bucketize(x, LIMITS, right=True),
    "searchsorted": lambda x, y: x * torch.searchsorted(LIMITS, x, side="right"),
    "poles": lambda x, y: torch.lgamma(torch.where(x.abs() < 4, x.round(), 1.5)),
    "rrelu": lambda x, y: F.rrelu(x, 0.1, 0.3), "conjugate": lambda x, y: x.conj_physical(),
    "elu": lambda x, y: 1e4 * F.elu(x, 0.7), "celu": lambda x, y: 1e4 * F.celu(x, 1.3),
    "selu": lambda x, y: 1e4 * F.selu(x),
}
# Of lines of 6 elements.
LINES = {
    "median": lambda x: x.median(-1)[0], "median and place": lambda x: x * x.median(1, keepdim=True)[1],
    "kthvalue": lambda x: x.kthvalue(2, -1)[0],
    "kthvalue kept": lambda x: x - x.kthvalue(5, keepdim=True)[0], "cumprod": lambda x: (x * 0.5).cumprod(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1), "dist": lambda x: torch.dist(x, x.flip(-1), 2),
    "dist of 1": lambda x: torch.dist(x, x.flip(-1), 1), "scatter": lambda x: x.scatter(
        -1, x.detach().abs().long(), 3.0),
    "scatter one": lambda x: x.scatter(1, x.argmax(1, keepdim=True), x.sum(1, keepdim=True)),
    "scatter_add": lambda x: torch.zeros_like(x).scatter_add(-1, x.detach().abs().long(), x),
    "one-hot": lambda x: x * torch.zeros_like(x).scatter_(1, x.argmax(1, keepdim=True), 1),
    "logcumsumexp of -inf": lambda x: torch.where(x > 1, -INF, x).logcumsumexp(-1).exp(),
    "integers": lambda x: x * (x.detach() * 7).long().remainder(4) + x * ((x.detach() * 7).long() // -3),
    "fmod of integers": lambda x: x * torch.fmod((x.detach() * 7).int(), 4) + x * ((x.detach() * 7).int() % 5),
    "gaussian": lambda x: F.gaussian_nll_loss(x, x.flip(1), x.abs(), full=True, reduction="none"),
}


class Function(nn.Module):
    def __init__(self, function, points, *others):
        super().__init__()
        self.function, self.p = function, nn.Parameter(points.nan_to_num(0, INF, -INF))
        self.register_buffer("none", points.isnan())
        self.others = nn.ParameterList([nn.Parameter(o.clone()) for o in others])

    def forward(self, d):
        by = d.reshape(-1, *[1] * self.p.ndim)
        none = torch.where(self.none, NAN, 0.0)  # a parameter has numbers alone
        return self.function(by * self.p + none, *(by * p for p in self.others))


def weighted(made, d):
    """A loss whose gradient is a finite number at each element."""
    weight = torch.linspace(0.5, 1.5, made[0].numel()).reshape(made[0].shape) if made.ndim else 1.0
    return (made * weight).sum()


def both(module):
    """Predictions and gradients, in MTC and in PyTorch."""
    d = torch.ones(2)
    optimizer = torch.optim.SGD(module.parameters(), 0.0001, momentum=0.9)
    wanted = module.eval()(d).detach()
    theirs = torch.autograd.grad(weighted(module(d), d), list(module.parameters()), allow_unused=True)
    step = mtc.torch.compile(module, (d, d), loss=weighted, optimizer=optimizer, check=False, verbose=0,
                             devices="cpu:1")
    found = step.predict(d) if wanted.ndim else wanted
    step.test_on_batch((d, d))
    step.train_on_batch((d, d), allow_nan=True)
    step.to_module()
    step.close()
    mine = [optimizer.state[p].get("momentum_buffer", torch.zeros_like(p)) for p in module.parameters()]
    return found, wanted, mine, [torch.zeros_like(m) if t is None else t for m, t in zip(mine, theirs)]


def assert_alike(points, found, wanted, mine, theirs):
    """Gradients are compared at finite points where the value is a number: at others PyTorch's are often none."""
    finite = points.isfinite() & (~wanted[0].isnan() if wanted.ndim > 1 and wanted[0].shape == points.shape else True)
    assert np.allclose(found, wanted, rtol=2e-6, atol=1e-6, equal_nan=True), (found - wanted)
    for a, b in zip(mine, theirs):
        a, b = (torch.where(finite, g, 0) if g.shape == finite.shape else g for g in (a, b))
        assert np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True), (a - b)


@pytest.mark.parametrize("name", list(CASES))
def test_functions_are_those_of_pytorch(name):
    assert_alike(POINTS, *both(Function(CASES[name], POINTS, OTHERS)))


TIES = torch.tensor([[-2.0, -1, 0, 1, 2, 1], [0, 0, 1, 1, -1, -1], [3, -3, 3, 2, -2, 0], [1, 1, 1, 1, 1, 1]])

# Of a matrix [5, 4] of parameters, at places that are known.
AT = torch.tensor([0, 3, 1, 3])
PLACES = {
    "index_put": lambda w: w.index_put((AT, torch.tensor([1, 0, 2, 0])), torch.ones(4)) ** 2,
    "accumulated": lambda w: w.index_put((AT, torch.tensor([1, 0, 2, 0])), w[0] * 2, accumulate=True) ** 2,
    "scatter": lambda w: w.scatter(0, torch.tensor([[4, 1, 1, 0], [2, 0, 3, 1]]), w[:2] * 3) ** 2,
    "scatter_reduce": lambda w: torch.cat([w.scatter_reduce(1, AT.expand(5, 4), w ** 2, how, include_self=own)
                                           for how in ("prod", "mean", "amax", "amin") for own in (True, False)]),
    "index_reduce": lambda w: w.index_reduce(1, AT, w ** 2, "prod"), "masked_scatter": lambda w: w.masked_scatter(
        torch.arange(20).reshape(5, 4) % 3 == 0, w.flip(0) * 2) ** 2,
    "shares of ties": lambda w: torch.cat([
        *(w.round().scatter_reduce(1, AT.expand(5, 4), w.round(), how, include_self=own)
          for how in ("amax", "amin") for own in (True, False)),
        w.round().index_reduce(1, AT, w.round().flip(0), "amax")]) * w.repeat(5, 1),
    "index_fill and copy": lambda w: w.index_fill(1, AT, 2.0) * w.index_copy(0, AT[:3], w[2:] ** 2),
    "as_strided": lambda w: (w * 2).as_strided((3, 4), (5, 2), 1) ** 2, "unfold": lambda w: w.unfold(0, 3, 2) ** 2,
    "put and take": lambda w: torch.cat([w.put(AT[:3], w[0, :3] ** 2).flatten(), w.take(AT) ** 2]),
    "splits": lambda w: torch.cat([torch.hsplit(w, 2)[1].ravel(), torch.gradient(w, dim=1)[0].ravel()]) ** 2,
    "cumulative extremes": lambda w: torch.cat([(v * at) for v, at in (
        torch.cummax(w.round(), 1), torch.cummin(w, 0))]) * w.repeat(2, 1),
    "pdist": lambda w: torch.cat([torch.pdist(torch.cat([w, w[:1]]), p) for p in (1.0, 2.0, 3.0)]),
    "sort of 100": lambda w: (w[:, None] * torch.linspace(-1, 1, 25)[:, None]).reshape(5, 100).sort(
        -1, descending=True)[0] * torch.arange(100),
    "places of 100": lambda w: w.sum() * (w.detach()[:, None] * torch.linspace(-1, 1, 25)[:, None]).reshape(
        5, 100).argsort(-1) * torch.arange(100),
}
# Of a matrix [4, 4] that is not symmetric, whose elimination exchanges rows.
MATRICES = {
    "inverse": torch.linalg.inv, "solve": lambda w: torch.linalg.solve(w, w[:, :2] ** 2),
    "of several": lambda w: torch.linalg.solve(w, torch.stack([w, w * 2, w ** 2, w.T])),
    "by a factor": lambda w: torch.cholesky_solve(w ** 2, w.tril() + w.triu(1) * 0.1) + torch.cholesky_solve(
        w[:, 1:2], torch.stack([w + 3 * torch.eye(4)] * 4), upper=True),
    "inverse by a factor": lambda w: torch.cholesky_inverse(w + 2 * torch.eye(4), upper=True),
    "of the left": lambda w: torch.linalg.solve(w, w ** 2, left=False), "det": lambda w: torch.linalg.det(w),
    "slogdet": lambda w: torch.linalg.slogdet(w)[1],
    "lu": lambda w: torch.cat([part.ravel() for part in torch.linalg.lu(w[:, :3])]),
    "factors": lambda w: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(w), w[:, :2] ** 2),
    "adjoint": lambda w: torch.linalg.lu_solve(*torch.linalg.lu_factor(w), w[:, :2], adjoint=True),
    "qr": lambda w: torch.cat(list(torch.linalg.qr(w[:, :3]))),
    "wide": lambda w: torch.cat(list(torch.linalg.qr(w[:3])), 1),
    "complete": lambda w: torch.linalg.qr(w, "complete")[0] * w,
}


class OfMatrix(nn.Module):
    def __init__(self, function, start):
        super().__init__()
        self.function, self.w = function, nn.Parameter(start)

    def forward(self, d):
        made = self.function(self.w)
        return (d[:, None] * (made * torch.linspace(1, 2, made.numel()).reshape(made.shape)).sum()).mean()


@pytest.mark.parametrize("name", [*PLACES, *MATRICES])
def test_functions_of_a_matrix(name):
    torch.manual_seed(2)
    start = torch.randn(5, 4) if name in PLACES else torch.randn(4, 4)
    module = OfMatrix({**PLACES, **MATRICES}[name], start)
    optimizer = torch.optim.SGD(module.parameters(), 1e-4, momentum=0.9)
    d = torch.linspace(0.5, 1.5, 4)
    wanted = torch.autograd.grad(module(d), module.w)[0]
    step = mtc.torch.compile(module, {"d": d}, optimizer=optimizer, check=False, verbose=0, devices="cpu:1")
    step.train_on_batch({"d": d})
    step.to_module()
    step.close()
    found = optimizer.state[module.w]["momentum_buffer"]
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * wanted.abs().max())


# Matrices that LAPACK leaves as they are, in part, and those that have no rank.
FULL = torch.tensor([[1.0, 2, -1], [0.5, -3, 2], [2, 1, 1.5]])
UPPER = torch.tensor([[2.0, 1, 3], [0, -1, 0.5], [0, 0, 4]])
SPECIAL = {"identity": torch.eye(3), "diagonal": torch.diag(torch.tensor([2.0, -3, 0.5])), "upper": UPPER,
           "lower": UPPER.T, "permuted": torch.eye(3).roll(1, 0), "small": FULL * 2.0**-80, "large": FULL * 2.0**80}
DEFICIENT = {"zeros": torch.zeros(3, 3), "hollow": torch.tensor([[0.0, 1, 2], [0, 4, 1], [0, 2, 0.5]]),
             "equal columns": FULL[:, [0, 0, 2]], "one rank": torch.tensor([[1.0, 2, -1], [2, 4, -2], [-1, -2, 1]])}
LINEAR = {
    "qr": torch.linalg.qr, "qr of tall ones": lambda w: torch.linalg.qr(w[..., :2]),
    "qr of wide ones": lambda w: torch.linalg.qr(w[..., :2, :]), "lu": torch.linalg.lu,
    "lu of tall ones": lambda w: torch.linalg.lu(w[..., :2]),
    "lu of wide ones": lambda w: torch.linalg.lu(w[..., :2, :]),
    "det": lambda w: (torch.linalg.det(w),), "slogdet": lambda w: [f(a) for f, a in zip((torch.neg, torch.exp),
                                                                                     torch.linalg.slogdet(w))],
    "inverse": lambda w: (torch.linalg.inv(w),),
}


class OfMatrices(nn.Module):
    def __init__(self, function, matrices):
        super().__init__()
        self.function, self.matrices = function, nn.ParameterDict(matrices)

    def forward(self, d):
        parts = [part for w in self.matrices.values() for part in self.function(w)]
        return d.mean() * sum((part * torch.linspace(1, 2, part.numel()).reshape(part.shape)).sum() for part in parts)


@pytest.mark.parametrize("name", LINEAR)
def test_special_matrices(name):
    """Their decompositions have LAPACK's signs and zeros; a gradient is PyTorch's where that is finite."""
    cases = {n: w for n, w in {**SPECIAL, **DEFICIENT}.items() if not (
        name.startswith("qr") and n in ("equal columns", "one rank") or name == "inverse" and n in DEFICIENT or
        not name.startswith("qr") and n in ("small", "large"))}  # rounding decides, PyTorch raises, other ranges
    module = OfMatrices(LINEAR[name], {n: torch.stack([w, FULL]) for n, w in cases.items()})
    optimizer, d = torch.optim.SGD(module.parameters(), 1e-4, momentum=0.9), torch.ones(2)
    value = module(d)
    wanted = torch.autograd.grad(value, list(module.parameters()))
    step = mtc.torch.compile(module, {"d": d}, optimizer=optimizer, check=False, verbose=0, devices="cpu:1")
    found = step.train_on_batch({"d": d}, allow_nan=True)
    step.to_module()
    step.close()
    assert found["loss"] == pytest.approx(value.item(), rel=1e-5)
    for (n, w), gradient in zip(module.matrices.items(), wanted):
        buffer = optimizer.state[w]["momentum_buffer"]
        for a, b in zip(buffer, gradient):
            assert torch.isfinite(b).all() == torch.isfinite(a).all(), n
            assert not torch.isfinite(b).all() or np.allclose(a, b, rtol=1e-3, atol=1e-4 * b.abs().max()), n


@pytest.mark.parametrize("name", list(LINES))
def test_functions_of_lines_are_those_of_pytorch(name):
    points = TIES + torch.linspace(0, 0.1, 24).reshape(4, 6) * ("scatter" not in name)
    assert_alike(points, *both(Function(LINES[name], points)))


class Regions(nn.Module):
    """Values without a gradient, of trained and of frozen parameters, behind torch.no_grad()."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)
        self.b.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            scale = self.a(x).abs().amax(-1, keepdim=True)
            target, places = self.b(x), self.a(x).argmax(-1)
        return self.a(x) / (scale + 1) - target * places[:, None]


def test_regions_without_gradients():
    torch.manual_seed(1)
    batches = [(torch.randn(4, 4), torch.randn(4, 3)) for _ in range(3)]
    assert_steps_alike(*follow(Regions(), [((x,), y) for x, y in batches], F.mse_loss))


CLASSES = torch.tensor([0.5, 1, 2, 0, 1.5])


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"ignore_index": 2}])
def test_smoothed_labels_with_weights_of_classes(options):
    torch.manual_seed(1)
    batches = [((torch.randn(6, 4),), torch.tensor([0, 1, 2, 3, 4, 2])) for _ in range(2)]
    loss = nn.CrossEntropyLoss(CLASSES, label_smoothing=0.3, **options)
    assert_steps_alike(*follow(nn.Linear(4, 5), batches, loss, 0.1))


def test_probabilities_with_weights_of_classes():
    torch.manual_seed(1)
    batches = [((torch.randn(6, 4),), torch.rand(6, 5).softmax(-1)) for _ in range(2)]
    assert_steps_alike(*follow(nn.Linear(4, 5), batches, nn.CrossEntropyLoss(CLASSES, label_smoothing=0.3), 0.1))


class Draws(nn.Module):
    """Random numbers of each kind."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(4, 200))

    def forward(self, d):
        x = d[:, None, None] * self.p
        return [x * torch.empty_like(x).uniform_(-1, 3), torch.normal(2 * x.detach(), 0.5) * x,
                x + torch.empty_like(x).normal_(-1, 2), x * torch.empty_like(x).exponential_(2.0),
                x * torch.randint(3, 7, x.shape).float(), F.rrelu(-x, 0.2, 0.6),
                (F.gumbel_softmax(x + torch.arange(200) // 150, hard=True) * torch.arange(200)).sum(-1)]


class Moment(nn.Module):
    def __init__(self, draws, place, power):
        super().__init__()
        self.draws, self.place, self.power = draws, place, power

    def forward(self, d):
        return (self.draws(d)[self.place] ** self.power).mean() + 0 * self.draws.p.sum()


@pytest.mark.parametrize("place", range(7))
def test_random_numbers_have_the_distribution(place):
    """The check has the same numbers for all of them, and steps have the mean and the square of PyTorch's."""
    torch.manual_seed(1)
    d = torch.ones(16)
    for power in (1, 2):
        module = Moment(Draws(), place, power)
        wanted = torch.tensor([float(module(d)) for _ in range(40)])
        step = mtc.torch.compile(module, {"d": d}, optimizer="sgd,learning_rate=0.0", verbose=0, devices="cpu:1")
        found = torch.tensor([step.train_on_batch({"d": d})["loss"] for _ in range(40)])
        step.close()
        assert abs(found.mean() - wanted.mean()) <= 6 * (found.std() + wanted.std()) / 40**0.5 + 1e-5


class Sampled(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options, self.w = options, nn.Parameter(torch.tensor([[1.1, 0.2], [-0.3, 0.4], [0.7, -0.6]]))

    def forward(self, x):
        if not self.options:  # a spatial transformer
            turn = x.mean((1, 2, 3))[:, None, None] * self.w[:2]
            angles = torch.cat([turn, self.w[2, :, None].expand(x.shape[0], 2, 1)], 2)
            grid = F.affine_grid(angles, list(x.shape), align_corners=False)
            return F.grid_sample(x, grid, align_corners=False).square().mean()
        grid = 1.4 * torch.tanh(x[:, 0, :3, :2, None] * self.w[0] + self.w[1])  # some are outside
        return F.grid_sample(x * self.w[2, 0], grid, **self.options).square().mean()


@pytest.mark.parametrize("options", [
    {}, {"align_corners": False}, {"padding_mode": "border", "align_corners": True},
    {"mode": "nearest", "align_corners": False}, {"padding_mode": "reflection", "align_corners": False},
    {"padding_mode": "reflection", "align_corners": True}], ids=str)
def test_grid_sample(options):
    torch.manual_seed(3)
    batch = {"x": torch.randn(6, 2, 4, 5)}
    mtc.torch.compile(Sampled(**options), batch, batch_size=6, verbose=0, devices="cpu:1").close()


class Connectionist(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.line, self.loss = nn.Linear(3, 5), nn.CTCLoss(**options)

    def forward(self, x, labels, steps, sizes):
        return self.loss(self.line(x).log_softmax(-1).transpose(0, 1), labels, steps, sizes)


@pytest.mark.parametrize("options", [{}, {"blank": 4, "reduction": "sum"}, {"zero_infinity": True}], ids=str)
def test_ctc_loss(options):
    torch.manual_seed(4)
    labels = torch.tensor([[1, 2, 2], [3, 1, 2], [2, 2, 2], [1, 1, 3]]) - int("blank" in options)
    batch = {"x": torch.randn(4, 7, 3), "labels": labels, "steps": torch.tensor([7, 6, 5, 4]),
             "sizes": torch.tensor([3, 2, 3, 1])}
    if "zero_infinity" in options:
        batch["steps"][2] = 3  # too few for three labels and the blanks between them
    mtc.torch.compile(Connectionist(**options), batch, batch_size=4, verbose=0, devices="cpu:1").close()


def of_numbers(x, y):
    """Numbers that Python makes of the number of samples are those of each batch."""
    n, e = x.shape[0], (x - y) ** 2
    made = e.sum() * (1.0 / n) + e.sum() / n ** 0.5 + (10.5 - n) * e.mean() - (n / 2) * x.mean() + (1.0 / n) ** 2
    made = made + torch.where(y > 0, e, 1.0 / n).sum() + (e * torch.full_like(y, 1.0 / n)).sum() * -(3.0 / n)
    return made + (e * torch.full((n,), n + 0.5)).mean() + torch.tensor(1.0 / n) * x.new_full((1,), n).sum() * e.sum()


def test_numbers_of_samples_in_python():
    module = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    x = torch.linspace(-1, 1, 24).reshape(8, 3).sin()
    batches = [((x[:n],), x[:n, 0].cos() - 0.7) for n in (8, 5, 1)]
    found, wanted, weights = follow(module, batches, loss=of_numbers, rate=1e-3)
    assert_steps_alike(found, wanted, weights)


def test_a_parameter_made_of_the_number_of_samples_is_refused():
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    with pytest.raises(mtc.ModelError, match="negative_slope that is made of the number of samples: give a number"):
        mtc.torch.compile(nn.Linear(3, 1), (x, x), loss=lambda o, y: F.leaky_relu(o, 1.0 / o.shape[0]).mean(),
                          check=False, verbose=0)
