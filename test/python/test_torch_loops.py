# SPDX-License-Identifier: Apache-2.0
"""Loops of torch._higher_order_ops, which mtc.torch checks beside PyTorch, on several numbers of devices."""

import importlib

import mtc
import mtc.torch
import pytest
import torch
from mtc._trace import loops

scan = importlib.import_module("torch._higher_order_ops.scan").scan
while_loop = importlib.import_module("torch._higher_order_ops.while_loop").while_loop


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.own = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4)

    def forward(self, x):
        def step(h, part):
            h = torch.tanh(self.into(part) + self.own(h))
            return h, h * 2

        last, rows = scan(step, torch.zeros(x.shape[0], 4), x, dim=1, reverse=True)
        return last + rows.sum(1)


class Counted(Recurrent):
    """The step computes with its counter."""

    def forward(self, x):
        return while_loop(lambda i, h: i < 6, lambda i, h: (i + 2, torch.tanh(self.own(h)) + 0.1 * i),
                          (torch.tensor(0), self.into(x[:, 0])))[1]


class Looking(Recurrent):
    """The step looks up a place by its counter, so its steps are made one after the other."""

    def forward(self, x):
        rows = self.into(x)
        return while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, torch.tanh(self.own(h)) + torch.index_select(
            rows, 1, i.reshape(1))[:, 0]), (torch.tensor(0), torch.tanh(rows[:, 0])))[1]


class Converging(Recurrent):
    def forward(self, x):
        return while_loop(lambda i, h: h.sum() < 9, lambda i, h: (i + 1, self.own(h)),
                          (torch.tensor(0), self.into(x[:, 0])))[1]


@pytest.fixture
def built(monkeypatch):
    """Whether each loop that is asked for is one."""
    found, original = [], loops.scan

    def counting(*arguments, **keywords):
        made = original(*arguments, **keywords)
        found.append(made is not None)
        return made

    monkeypatch.setattr(loops, "scan", counting)
    return found


def example():
    torch.manual_seed(0)
    return torch.randn(8, 5, 3), torch.randn(8, 4)


@pytest.mark.parametrize("kind, are_loops", [(Recurrent, True), (Counted, True), (Looking, False)])
def test_one_result(kind, are_loops, built):
    batch = example()
    module = kind()
    start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    step = mtc.torch.compile(module, example=batch, loss=torch.nn.MSELoss(), batch_size=8, shards=8, devices="cpu:1",
                             optimizer=torch.optim.SGD(module.parameters(), 0.1))
    assert set(built) == ({True} if are_loops else set())
    trained = set()
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        with mtc.Session(step.plan, devices) as session:
            for name, tensor in start.items():
                session.variables[name] = tensor.numpy()
            session.train_on_batch(*(array.numpy() for array in batch))
            trained.add(b"".join(session.variables[name].tobytes() for name in start))
    assert len(trained) == 1


def test_data_decide():
    module = Converging()
    with pytest.raises(mtc.ModelError, match="number of steps the data decide.*a counter's alone"):
        mtc.torch.compile(module, example=example(), loss=torch.nn.MSELoss(), batch_size=8,
                          optimizer=torch.optim.SGD(module.parameters(), 0.1))
