# SPDX-License-Identifier: Apache-2.0
"""Random modules of PyTorch: chains of 3 to 9 operations on samples of 1 to 4 axes, and a layer behind them.

The case "seed 7" is the module that `Program(7)` makes. Training and prediction are compared with PyTorch by the check
of mtc.torch, on its own examples too.
"""

import random
import warnings

import mtc
import mtc.torch
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
SAMPLES = 6
MOST = 6000  # elements of a value
FUNCTIONS = [
    torch.relu, torch.tanh, torch.sigmoid, F.gelu, F.silu, F.softplus, torch.abs, torch.sin, torch.cos, torch.erf,
    F.elu, F.selu, F.celu, F.hardtanh, F.hardsigmoid, F.hardswish, F.leaky_relu, F.mish, F.logsigmoid, F.softsign,
    F.relu6,
    F.hardshrink, F.softshrink, F.tanhshrink, torch.frac, torch.atan, torch.asinh, torch.sinc, torch.nan_to_num,
    torch.square, torch.neg, lambda x: torch.exp(x.clamp(-5, 5)), lambda x: torch.sqrt(x * x + 1),
    lambda x: torch.rsqrt(x * x + 0.5), lambda x: torch.log1p(x.abs()), lambda x: x + torch.floor(x),
    lambda x: x - torch.round(x), lambda x: x * torch.sign(x), lambda x: 1 / (x.abs() + 0.5),
    lambda x: torch.remainder(x, 1.3), lambda x: torch.fmod(x, 0.7), lambda x: x.clamp(-0.5, 0.8),
    lambda x: torch.where(x > 0, x, x.clamp(max=5).exp()), lambda x: x.masked_fill(x > 1, 0.5),
    lambda x: torch.lgamma(x.abs() + 1), lambda x: torch.xlogy(x.abs(), x.abs() + 0.2), lambda x: x * (x > 0.1)]
PAIRS = [
    torch.add, torch.mul, torch.sub, torch.maximum, torch.minimum, torch.logaddexp, lambda a, b: a / (b.abs() + 0.5),
    lambda a, b: torch.atan2(a, b.abs() + 0.3), lambda a, b: (a.abs() + 0.2) ** b.clamp(-2, 2),
    lambda a, b: torch.lerp(a, b, 0.3), lambda a, b: torch.where(a > b, a, b * 2),
    lambda a, b: torch.addcmul(a, a, b, value=0.5)]
REDUCTIONS = [
    torch.sum, torch.mean, torch.amax, torch.amin, torch.logsumexp, torch.nansum, torch.linalg.vector_norm,
    lambda x, axes, keepdim: torch.var(x, axes, correction=0, keepdim=keepdim)]
OF_AN_AXIS = [
    lambda x, axis: F.softmax(x, axis), lambda x, axis: F.log_softmax(x, axis), lambda x, axis: x.cumsum(axis),
    lambda x, axis: x.clamp(-2, 2).cumprod(axis), lambda x, axis: x.cummax(axis)[0], lambda x, axis: x.flip(axis),
    lambda x, axis: x.logcumsumexp(axis), lambda x, axis: x.sort(axis)[0], lambda x, axis: x.roll(2, axis),
    lambda x, axis: x.median(axis)[0], lambda x, axis: x.prod(axis, keepdim=True),
    lambda x, axis: F.normalize(x, 2, axis),
    lambda x, axis: x.max(axis, keepdim=True)[0], lambda x, axis: x.argmax(axis, keepdim=True) * x,
    lambda x, axis: x.repeat_interleave(2, axis), lambda x, axis: (x > x.mean(axis, keepdim=True)) * x,
    lambda x, axis: torch.gather(x, axis, x.argsort(axis, stable=True)), lambda x, axis: x.unsqueeze(axis),
    lambda x, axis: x.topk(1, axis)[0], lambda x, axis: x.unfold(axis, 2, 1), lambda x, axis: x.diff(dim=axis),
    lambda x, axis: x.unflatten(axis, (2, -1)), lambda x, axis: x.select(axis, -1)]
OF_MATRICES = [torch.tril, torch.triu, lambda x: x @ x.mT, lambda x: torch.diagonal(x, 0, -2, -1),
               lambda x: x.flatten(1, 2), lambda x: F.scaled_dot_product_attention(x, x * 0.5, x + 1, is_causal=True)]


class Program(nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.random = random.Random(seed)
        self.weights, self.layers, self.steps = nn.ParameterList(), nn.ModuleList(), []
        self.x = torch.randn(SAMPLES, *(self.random.randint(1, 6) for _ in range(self.random.randint(1, 4))))
        self.values = [self.x]
        count = self.random.randint(3, 9)
        for _ in range(60):
            if len(self.steps) < count:
                self.try_step(self.random.choice(CHOICES))
        last = self.layer(nn.Linear(self.values[-1][0].numel(), 3))
        self.steps.append((lambda p, x: p.layers[last](x.flatten(1)), [len(self.values) - 1]))
        self.steps = self.needed()

    def try_step(self, choice):
        """Adds an operation if its result is finite and of the samples alone."""
        place = len(self.values) - 1 if self.random.random() < 0.75 else self.random.randrange(len(self.values))
        x, layers, weights = self.values[place], len(self.layers), len(self.weights)
        try:
            function, places = choice(self, x, place)
            made = function(self, *(self.values[i] for i in places)).detach()
            good = (made.is_floating_point() and 2 <= made.dim() <= 6 and 0 < made.numel() <= MOST
                    and len(made) == SAMPLES and bool(torch.isfinite(made).all()) and float(made.abs().max()) < 1e3)
        except (RuntimeError, IndexError, ValueError, TypeError):  # not for this shape
            good = False
        if good:
            self.steps.append((function, places))
            self.values.append(made)
        else:
            self.layers, self.weights = self.layers[:layers], self.weights[:weights]

    def needed(self):
        """The steps that the result depends on, in order; places of the others are those of nothing."""
        wanted = {len(self.steps)}
        for i in range(len(self.steps), 0, -1):
            wanted |= set(self.steps[i - 1][1]) if i in wanted else set()
        return [step if i + 1 in wanted else None for i, step in enumerate(self.steps)]

    def layer(self, layer):
        self.layers.append(layer)
        return len(self.layers) - 1

    def weight(self, *shape):
        self.weights.append(nn.Parameter(torch.randn(shape) * 0.4))
        return len(self.weights) - 1

    def axis(self, x):
        return self.random.randrange(1, x.dim())

    def like(self, fits):
        """The place of a value that fits."""
        return self.random.choice([i for i, value in enumerate(self.values) if fits(value)])

    def forward(self, x):
        values = [x]
        for step in self.steps:
            values.append(None if step is None else step[0](self, *(values[i] for i in step[1])))
        return values[-1]


def function(p, x, place):
    f = p.random.choice(FUNCTIONS)
    return lambda p, x: f(x), [place]


def pair(p, x, place):
    f = p.random.choice(PAIRS)
    other = p.like(lambda y: y.dim() == x.dim() and all(n in (1, m) or m == 1 for n, m in zip(y.shape, x.shape)))
    return lambda p, a, b: f(a, b), [place, other]


def reduction(p, x, place):
    f, keepdim = p.random.choice(REDUCTIONS), p.random.random() < 0.5
    axes = tuple(p.random.sample(range(1, x.dim()), p.random.randint(1, x.dim() - 1)))
    return lambda p, x: f(x, axes, keepdim=keepdim), [place]


def of_axis(p, x, place):
    f, axis = p.random.choice(OF_AN_AXIS), p.axis(x)
    return lambda p, x: f(x, axis), [place]


def of_matrix(p, x, place):
    f = p.random.choice(OF_MATRICES)
    return lambda p, x: f(x), [place] if x.dim() > 2 else []


def order(p, x, place):
    axes = list(range(1, x.dim()))
    p.random.shuffle(axes)
    return lambda p, x: x.permute(0, *axes), [place]


def part(p, x, place):
    axis = p.axis(x)
    size = x.shape[axis]
    start, stop, step = p.random.randint(-size, size - 1), p.random.choice([None, size, -1]), p.random.choice([1, 2])
    return lambda p, x: x[(slice(None),) * axis + (slice(start, stop, step),)], [place]


def listed(p, x, place):
    axis = p.axis(x)
    ids = [p.random.randrange(-x.shape[axis], x.shape[axis]) for _ in range(p.random.randint(1, 4))]
    return lambda p, x: x[(slice(None),) * axis + (ids,)], [place]


def joined(p, x, place):
    axis = p.axis(x)
    other = p.like(lambda y: y.dim() == x.dim() and all(
        i == axis or n == m for i, (n, m) in enumerate(zip(y.shape, x.shape))))
    return lambda p, a, b: torch.cat([a, b], axis), [place, other]


def padded(p, x, place):
    low, high, mode = p.random.randint(-1, 2), p.random.randint(0, 2), p.random.choice(
        ["constant", "reflect", "replicate", "circular"])
    return lambda p, x: F.pad(x, (low, high), mode), [place] if x.dim() == 3 or mode == "constant" else []


def convolution(p, x, place):
    classes = [nn.Conv1d, nn.Conv2d, nn.Conv3d] if p.random.random() < 0.7 else [
        nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d]
    groups = p.random.choice([1, 1, x.shape[1]])
    number = p.layer(classes[x.dim() - 3](
        x.shape[1], groups * p.random.randint(1, 3), p.random.randint(1, 3), stride=p.random.randint(1, 2),
        padding=p.random.randint(0, 2), groups=groups, bias=p.random.random() < 0.7))
    return lambda p, x: p.layers[number](x), [place]


def pool(p, x, place):
    axes, size, stride, up = x.dim() - 3, p.random.randint(1, 3), p.random.randint(1, 2), p.random.random() < 0.4
    f = p.random.choice([
        lambda x: [F.max_pool1d, F.max_pool2d, F.max_pool3d][axes](x, size, stride, size // 2, ceil_mode=up),
        lambda x: [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][axes](x, size, stride, size // 2, up, not up),
        lambda x: [F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d][axes](x, size),
        lambda x: F.interpolate(x, scale_factor=1.5, mode=["linear", "bilinear", "trilinear"][axes], align_corners=up)])
    return lambda p, x: f(x), [place]


def norm(p, x, place):
    axis = p.axis(x)
    kinds = [lambda: nn.LayerNorm(x.shape[axis:]), lambda: nn.GroupNorm(1, x.shape[1]),
             lambda: [nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d][x.dim() - 2](x.shape[1])]
    number = p.layer(p.random.choice(kinds)())
    return lambda p, x: p.layers[number](x), [place]


def linear(p, x, place):
    number = p.layer(nn.Linear(x.shape[-1], p.random.randint(1, 5), bias=p.random.random() < 0.7))
    return lambda p, x: p.layers[number](x), [place]


def einsum(p, x, place):
    number = p.weight(x.shape[2], 3, x.shape[1])
    equation = p.random.choice(["bij,jki->bk", "bij,jki->bik", "bij,jki->bkj", "bij,jki->bijk"])
    return lambda p, x: torch.einsum(equation, x, p.weights[number]), [place]


def scaled(p, x, place):
    number = p.weight(*x.shape[1:])
    return lambda p, x: x * p.weights[number] + p.weights[number], [place]


CHOICES = [function] * 4 + [pair] * 2 + [reduction] * 2 + [of_axis] * 6 + [
    of_matrix, order, part, part, listed, joined, padded, convolution, convolution, pool, norm, linear, einsum, scaled]


def cases():
    return [f"seed {i}" for i in range(1000)]


def run(name):
    seed = int(name.split()[1])
    program = Program(seed)
    loss, targets = ((F.mse_loss, torch.randn(SAMPLES, 3)) if seed % 3
                     else (F.cross_entropy, torch.randint(0, 3, (SAMPLES,))))
    optimizer = (torch.optim.SGD(program.parameters(), 0.01) if seed % 2
                 else torch.optim.AdamW(program.parameters(), 1e-3))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step = mtc.torch.compile(program, (program.x, targets), loss=loss, optimizer=optimizer,
                                     devices="cpu:2", check="full", verbose=0)
        step.close()
    except mtc.Error as error:
        text = str(error)
        return {"status": "wrong" if "expected what PyTorch computes" in text else "refused", "message": text[:500]}
    return {"status": "right", "message": ""}
