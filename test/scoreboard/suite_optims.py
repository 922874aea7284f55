# SPDX-License-Identifier: Apache-2.0
"""PyTorch's OptimizerInfo: each optimizer with each of its listed options, NAME/NUMBER.

Compared are the losses of five steps and the weights after them, then those of two more steps that PyTorch makes from
the state which MTC leaves.
"""

import copy

import numpy as np
import torch
import torch_cases  # isort: skip - what comes next needs it
from torch.testing._internal.common_optimizers import optim_db

import mtc
import mtc.torch

assert torch_cases
STEPS, MORE = 5, 2
DB = {f"{info.optim_cls.__name__}/{i}": (info.optim_cls, given.kwargs)
      for info in optim_db for i, given in enumerate(info.optim_inputs_func("cpu"))}


def cases():
    return sorted(DB, key=lambda name: int(name.rpartition("/")[2]))


def made(name, double=False):
    """A module, and an optimizer of its parameters; Muon takes matrices alone."""
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    module = module.double() if double else module
    kind, options = DB[name]
    if kind.__name__ == "Muon":
        for parameter in module.parameters():
            parameter.requires_grad_(parameter.ndim == 2)
    return module, kind([p for p in module.parameters() if p.requires_grad], **copy.deepcopy(options))


def trained(module, optimizer, batches):
    """The losses of steps in PyTorch."""
    losses, kind = [], next(module.parameters()).dtype
    for x, y in batches:
        def closure(x=x.to(kind), y=y.to(kind)):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(module(x), y)
            loss.backward()
            return loss
        losses.append(float(torch.as_tensor(optimizer.step(closure)).detach()))
    return losses


def weights(module):
    return [p.detach().double().numpy().copy() for p in module.parameters()]


def reference(name, batches, double):
    """Losses of all steps, weights after those of MTC and after all."""
    module, optimizer = made(name, double)
    losses = trained(module, optimizer, batches[:STEPS])
    return losses, weights(module), trained(module, optimizer, batches[STEPS:]), weights(module)


def run(name):
    numbers = torch.Generator().manual_seed(4)
    batches = [tuple(torch.randn(6, n, generator=numbers) for n in (6, 3)) for _ in range(STEPS + MORE)]
    try:
        exact, single = reference(name, batches, True), reference(name, batches, False)
    except Exception as error:  # PyTorch cannot do it
        return {"status": "na", "message": f"{type(error).__name__}: {error}"[:200]}
    module, optimizer = made(name)
    start = weights(module)
    step = mtc.torch.compile(module, batches[0], loss=torch.nn.functional.mse_loss, optimizer=optimizer, check=False,
                             verbose=0, devices="cpu:1")
    found = [[step.train_on_batch(batch)["loss"] for batch in batches[:STEPS]]]
    step.to_module()
    step.close()
    found += [weights(module), trained(module, optimizer, batches[STEPS:]), weights(module)]
    problems = []
    for what, a, b, c in zip(("losses", "weights", "losses in PyTorch", "weights in PyTorch"), found, exact, single):
        sizes = [abs(v) for v in b] if "losses" in what else [np.abs(v - s).max() for v, s in zip(b, start)]
        error, own = (max(np.abs(p - q).max() / (size + 1e-6) for p, q, size in zip(values, b, sizes))
                      for values in (a, c))
        if not error <= 1e-3 + 8 * own:
            problems.append(f"{what}: {error:.1e}, PyTorch's float32 {own:.1e}")
    return {"status": "wrong" if problems else "right", "message": "\n".join(problems)}
