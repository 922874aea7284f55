# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module in MTC beside PyTorch: loss and gradients in float64, bits of two devices, a short batch."""

import copy
import os
import sys
import types
import unittest

# PyTorch's lists of samples import a package for assertions, which no case makes.
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).TestCase = unittest.TestCase
os.environ.setdefault("MTC_CACHE", "off")
import mtc
import mtc.torch
import numpy as np
import torch
from mtc._session import Session
from mtc.torch import _check, _compile
from mtc.torch._export import Example, TracedStep
from mtc.torch._step import Variables
from torch.utils import _pytree as pytree

torch.set_num_threads(1)
ROWS = torch.tensor([1.0, 0.987, 0.974, 0.961, 0.948, 0.935])  # factors, one of each sample
TOLERANCE = 1e-4


class OpModule(torch.nn.Module):
    """A function on a sample of arguments, whose floats are parameters.

    Scheme D: the function on a batch along the first axis of its arguments, where it works row by row. Scheme V: for
    each sample by itself, by vmap. Scheme P: once, and the loss is the mean of a factor of each sample times it.
    """

    def __init__(self, function, sample, scheme, process=None):
        super().__init__()
        leaves, self.tree = pytree.tree_flatten((sample.input, list(sample.args), sample.kwargs))
        self.kinds = []
        for i, leaf in enumerate(leaves):
            if not isinstance(leaf, torch.Tensor):
                self.kinds.append((False, leaf))
                continue
            leaf, learned = leaf.detach().clone(), leaf.is_floating_point() and leaf.numel() > 0
            if learned:
                self.register_parameter(f"p{i}", torch.nn.Parameter(leaf))
            else:
                self.register_buffer(f"b{i}", leaf)
            self.kinds.append((True, f"{'p' if learned else 'b'}{i}"))
        self.first = next(name for tensor, name in self.kinds if tensor and name.startswith("p"))
        self.function, self.process, self.scheme, self.also = function, process, scheme, False
        with torch.no_grad():
            self._weigh(self._call(getattr(self, self.first)))

    def _weigh(self, outputs):
        numbers = torch.Generator().manual_seed(3)
        for i, o in enumerate(outputs):
            self.register_buffer(f"w{i}", torch.randn(o.shape, generator=numbers) + 0.1)

    def _outputs_of(self, leaves):
        first, args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        out = self.function(first, *args, **kwargs)
        out = self.process(out) if self.process is not None else out
        outs = [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor)]
        return tuple(o for o in (torch.view_as_real(o) if o.is_complex() else o for o in outs) if o.is_floating_point())

    def _call(self, first):
        return self._outputs_of([first if n == self.first else getattr(self, n) if t else n for t, n in self.kinds])

    def _rows(self, d):
        lead, leaves = getattr(self, self.first).shape[0], []
        for tensor, name in self.kinds:
            value = getattr(self, name) if tensor else name
            if tensor and (name == self.first or (self.also and value.ndim and value.shape[0] == lead)):
                value = value[:1].expand(d.shape[0], *value.shape[1:])
                if name == self.first:
                    value = d.reshape(-1, *[1] * (value.ndim - 1)) * value
            leaves.append(value)
        return self._outputs_of(leaves)

    def works_by_rows(self):
        """Whether it does; then the weights are those of a row."""
        if getattr(self, self.first).ndim < 2:
            return False
        for self.also in (False, True):
            try:
                with torch.no_grad():
                    full, part = self._rows(ROWS), self._rows(ROWS[:4])
            except Exception:  # noqa: S112 - the function does not take such arguments
                continue
            if full and all(o.ndim and len(o) == len(ROWS) and torch.allclose(o[:4], q, equal_nan=True, atol=1e-5)
                            for o, q in zip(full, part)):
                self._weigh([o[0] for o in full])
                return True
            if len(full) == 1 and full[0].ndim == 0:  # a loss over the samples
                self.register_buffer("w0", torch.tensor(1.0))
                return True
        return False

    def forward(self, d):
        first = getattr(self, self.first)
        if self.scheme == "D":
            outputs = self._rows(d)
        elif self.scheme == "V":
            outputs = torch.func.vmap(self._call)(d.reshape(-1, *[1] * first.ndim) * first)
        else:
            outputs = self._call(first)
        total = sum((o * getattr(self, f"w{i}")).mean() for i, o in enumerate(outputs))
        return (d * total).mean() if self.scheme == "P" else total


def chosen(samples, rank, most=6):
    """The rank-th of `most` samples that are spread over a list; None: there are fewer."""
    if len(samples) > most:
        samples = [samples[i * (len(samples) - 1) // (most - 1)] for i in range(most)]
    return samples[rank] if rank < len(samples) else None


def _reference(step, arrays, names, double):
    step, arrays = copy.deepcopy(step), [a.clone() for a in arrays]
    if double:
        step, arrays = step.double(), [a.double() if a.is_floating_point() else a for a in arrays]
    step.module.train()
    tensors = step.tensors()
    loss = step(*arrays)[0]
    gradients = torch.autograd.grad(loss, [tensors[n] for n in names], allow_unused=True)
    return {"loss": float(loss.detach()), **{n: np.zeros(tuple(tensors[n].shape)) if g is None else
                                             g.detach().to_dense().double().numpy() for n, g in zip(names, gradients)}}


def _differences(found, exact, single):
    """What is further from float64 than a tolerance and eight times PyTorch's own float32."""
    largest = max((np.abs(v[np.isfinite(v)]).max(initial=0) for k, v in exact.items() if k != "loss"), default=0)
    if largest < 1e-6 * abs(exact["loss"]):  # gradients of 0 but for roundings, as of a line of one that is normalized
        largest = 1e3 * abs(exact["loss"])
    wrong = []
    for name, wanted in exact.items():
        a, b, c = (np.asarray(v[name], "f8") for v in (found, exact, single))
        # A loss near 0 is a difference of numbers near 1.
        size = np.abs(b[np.isfinite(b)]).max(initial=0)
        # A gradient of 0 but for roundings is a difference of gradients as large as others.
        part = 1 if name == "loss" else largest * (20 if size < 1e-6 * largest else 1)
        scale = size + 1e-3 * part + 1e-12
        with np.errstate(all="ignore"):
            same = (np.isnan(a) & np.isnan(b)) | (a == b)
            error = np.where(same, 0, np.abs(a - b)).max(initial=0) / scale
            own = np.where((np.isnan(c) & np.isnan(b)) | (c == b), 0, np.abs(c - b)).max(initial=0) / scale
        if not error <= TOLERANCE + 8 * own:
            wrong.append(f"{name}: {error:.1e}, PyTorch's float32 {own:.1e}")
    return wrong


def judge(module, example=None):
    """The result of a case. `example`: the keyword arguments of the module, whose loss is a number."""
    example = {"d": ROWS.clone()} if example is None else example
    module.train()
    try:
        given = Example(example, module, None)
        step = TracedStep(module, None, given)
        names = [n for n, t in step.parameters_by_name().items() if t.requires_grad]
        torch.manual_seed(1)
        single = _reference(step, given.tensors, names, False)
        torch.manual_seed(2)
        again = _reference(step, given.tensors, names, False)
    except mtc.Error:
        raise
    except Exception as error:  # PyTorch cannot do it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}
    draws = any(not np.array_equal(single[k], again[k], equal_nan=True) for k in single)
    try:
        exact = single if draws else _reference(step, given.tensors, names, True)
    except Exception:  # noqa: BLE001 - not in float64
        exact = single
    work = _compile._Work(module, example, None, False)
    rows = len(given.tensors[0])
    model = work.convert(rows, set())
    _check.keep_gradients(model.graph)
    plan = work.compile(_compile._text(model), {"batch": rows, "cpu": "native"})
    variables = Variables(model.stored, model.statistics)

    def run(devices, first):
        with Session(plan, devices) as session:
            for name in variables.names():
                variable, array = variables.to_plan(name, work.tensors[name])
                session.variables[variable] = array
            logs = session.train_step({k: t[:first] for k, t in zip(work.example.names, work.example.tensors)})
            made = {n: variables.from_plan(n, session.variables[f"gradient/{n}"])
                    for n in model.stored if n in work.parameters and f"gradient/{n}" in session.variables}
        return {"loss": logs["loss"], **{n: np.asarray(made.get(n, np.zeros_like(single[n]))) for n in names}}

    mine = run("cpu:1", rows)
    if draws:
        return {"status": "right", "message": "draws random numbers"}
    problems = _differences(mine, exact, single)
    if problems and not all(np.isfinite(v).all() for v in exact.values()):
        problems = _differences(mine, single, single)  # what is not finite follows float32
    two = run("cpu:2", rows)
    problems += [f"{k}: other bits on two devices" for k in mine
                 if np.asarray(mine[k]).tobytes() != np.asarray(two[k]).tobytes()]
    if not problems:
        part = [t[:-1] for t in given.tensors]
        problems = [f"short batch: {p}" for p in _differences(
            run("cpu:1", rows - 1), _reference(step, part, names, True) if exact is not single else
            _reference(step, part, names, False), _reference(step, part, names, False))]
    return {"status": "wrong" if problems else "right", "message": "\n".join(problems)[:1500]}
