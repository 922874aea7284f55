# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: what depends on the numbers of the samples, and places in samples that are stacked, as atoms are."""

import mtc
import mtc.torch
import pytest
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
ATOMS = 4
PAIRS = torch.tensor([(i, j) for i in range(ATOMS) for j in range(ATOMS) if i != j] + [(0, 1)])
TURNED = torch.tensor([3, 1, 0, 2])


def first(n):
    """The number of each sample's first atom."""
    return torch.arange(n)[:, None] * ATOMS


def left(n):
    return (first(n) + PAIRS[:, 0]).reshape(-1)


def right(n):
    return (first(n) + PAIRS[:, 1]).reshape(-1)


def molecule(n):
    return torch.arange(n)[:, None].expand(n, ATOMS).reshape(-1)


def like(h, ids):
    return ids[:, None].expand(-1, h.shape[1])


# Of numbers of samples: [n].
NUMBERS = {
    "remainder": lambda n: torch.arange(n) % 5, "quotient": lambda n: torch.arange(n) // 5,
    "clamped": lambda n: torch.arange(n).clamp(max=4), "compared": lambda n: torch.arange(n) > 4,
    "squared": lambda n: torch.arange(n) ** 2, "counted": lambda n: torch.ones(n).cumsum(0) - 1,
}
# Of the atoms of all samples [n * ATOMS, 5]: [n * anything, ...].
STACKED = {
    "index": lambda h, n: torch.tanh(h[left(n)] * h.index_select(0, right(n))),
    "index_add": lambda h, n: torch.zeros_like(h).index_add(0, right(n), h[left(n)]),
    "scatter_add": lambda h, n: torch.zeros_like(h).scatter_add(0, like(h, right(n)), torch.sin(h)[left(n)]),
    "sums of molecules": lambda h, n: torch.zeros(n, 5).index_add(0, molecule(n), h),
    "of numbers": lambda h, n: h.new_zeros(n).scatter_add(0, molecule(n), h.sum(1)),
    "largest": lambda h, n: torch.zeros(n, 5).scatter_reduce(0, like(h, molecule(n)), h, "amax", include_self=False),
    "means": lambda h, n: torch.zeros_like(h).scatter_reduce(0, like(h, right(n)), h[left(n)], "mean"),
    "to atoms": lambda h, n: torch.zeros(n, 5).index_add(0, molecule(n), h)[molecule(n)],
    "index_put": lambda h, n: torch.zeros_like(h).index_put((right(n),), h[left(n)], accumulate=True),
    "index_copy": lambda h, n: h.index_copy(0, (first(n) + TURNED).reshape(-1), h.tanh()),
    "two axes": lambda h, n: h[torch.stack([left(n), right(n)], 1)],
    "embedding": lambda h, n: F.embedding(left(n), h), "gather": lambda h, n: h.gather(0, like(h, left(n))),
    "columns": lambda h, n: h.T[:, left(n)].T,
}


class Net(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(3, 5), function


class OfNumbers(Net):
    def forward(self, x):
        return self.layer(x) + self.function(x.shape[0]).float()[:, None] * 0.1


class OfAtoms(Net):
    def forward(self, x):
        made = self.function(self.layer(x.reshape(-1, 3)), x.shape[0])
        return made.reshape(x.shape[0], -1).square().mean(1)


class Forces(Net):
    """The slope by the stacked places themselves."""

    def forward(self, x):
        places = x.reshape(-1, 3).requires_grad_()
        energy = self.function(torch.sin(self.layer(places)), x.shape[0]).square().sum()
        slope, = torch.autograd.grad(energy, places, create_graph=True)
        return slope.reshape(x.shape)


def assert_alike(make, x, y):
    torch.manual_seed(2)
    theirs = make()
    mine = make()
    mine.load_state_dict(theirs.state_dict())
    optimizer = torch.optim.SGD(mine.parameters(), 0.01)
    step = mtc.torch.compile(mine, (x, y), loss=F.mse_loss, optimizer=optimizer, devices="cpu:3", verbose=0)
    optimizer = torch.optim.SGD(theirs.parameters(), 0.01)
    for rows in (len(x), len(x) - 4):
        optimizer.zero_grad()
        loss = F.mse_loss(theirs(x[:rows]), y[:rows])
        loss.backward()
        optimizer.step()
        assert step.train_on_batch((x[:rows], y[:rows]))["loss"] == pytest.approx(float(loss.detach()), rel=1e-4)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_samples(name):
    assert_alike(lambda: OfNumbers(NUMBERS[name]), torch.randn(11, 3), torch.randn(11, 5))


@pytest.mark.parametrize("name", STACKED)
def test_places_in_samples(name):
    assert_alike(lambda: OfAtoms(STACKED[name]), torch.randn(9, ATOMS, 3), torch.randn(9))


def test_forces_by_stacked_places():
    assert_alike(lambda: Forces(STACKED["index_add"]), torch.randn(9, ATOMS, 3), torch.randn(9, ATOMS, 3))


@pytest.mark.parametrize("function", (lambda n: torch.arange(n) * 3 // n, lambda n: torch.arange(n).flip(0)),
                         ids=("share", "reversed"))
def test_what_the_number_of_samples_changes_is_refused(function):
    with pytest.raises(mtc.ModelError, match="a constant of a sample that depends on how many samples there are"):
        mtc.torch.compile(OfNumbers(function), (torch.randn(8, 3), torch.randn(8, 5)), loss=F.mse_loss,
                          optimizer="sgd", verbose=0)


def test_an_einsum_of_three_operands():
    class Einsum(nn.Linear):
        def forward(self, x):
            return torch.einsum("bi,oi,o->bo", x, self.weight, self.bias)

    assert_alike(lambda: Einsum(3, 5), torch.randn(8, 3), torch.randn(8, 5))
