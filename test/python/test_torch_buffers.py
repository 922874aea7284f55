# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: buffers that forward changes: spectral norms, code books that follow averages, counters, statistics."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mtc
import mtc.torch

torch.set_num_threads(1)


class CodeBook(nn.Module):
    """A vector quantization whose codes are running means of what is near them."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(10, 4), nn.Linear(4, 10)
        for name, value in (("codes", torch.randn(6, 4)), ("counts", torch.ones(6)), ("sums", torch.randn(6, 4))):
            self.register_buffer(name, value)

    def forward(self, x):
        z = self.encoder(x)
        nearest = F.one_hot(torch.cdist(z, self.codes).argmin(1), 6).float()
        chosen = nearest @ self.codes
        if self.training:
            with torch.no_grad():
                self.counts.mul_(0.9).add_(nearest.sum(0), alpha=0.1)
                self.sums.mul_(0.9).add_(nearest.T @ z, alpha=0.1)
                self.codes.copy_(self.sums / (self.counts[:, None] + 1e-5))
        return self.decoder(z + (chosen - z).detach()) + 0.25 * (z - chosen.detach()).square().sum(-1, keepdim=True)


class Assigned(nn.Module):
    """Buffers that are assigned, one of them a number and one a whole number."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(10, 10)
        self.register_buffer("mean", torch.zeros(10))
        self.register_buffer("decay", torch.ones(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
            self.decay = self.decay * 0.9
            self.steps += 1
        return self.layer(x - self.mean) * self.decay / (1 + 0.1 * self.steps)


class Twice(nn.Module):
    """One batch normalisation at two places."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(10, 10, bias=False), nn.BatchNorm1d(10)

    def forward(self, x):
        return self.norm(self.layer(self.norm(x)))


def normed(layer, old=False):
    return (nn.utils.spectral_norm if old else nn.utils.parametrizations.spectral_norm)(layer)


MODULES = {
    "code book": CodeBook, "assigned": Assigned, "twice": Twice,
    "spectral norm": lambda: nn.Sequential(normed(nn.Linear(10, 8)), nn.ReLU(), normed(nn.Linear(8, 10))),
    "spectral norm by hooks": lambda: nn.Sequential(normed(nn.Linear(10, 10), old=True)),
    "spectral norm of a convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 10)), normed(nn.Conv1d(1, 4, 3)), nn.Flatten(), nn.Linear(32, 10)),
}


def train(module, batches, devices):
    """The losses, and the module with what the step has made of its buffers."""
    optimizer = torch.optim.Adam(module.parameters(), 0.01)
    step = mtc.torch.compile(module, batches[0], loss=F.mse_loss, optimizer=optimizer, devices=devices, verbose=0)
    losses = [step.train_on_batch(batch)["loss"] for batch in batches]
    predicted = step.predict(batches[0][0])
    return losses, predicted, step.to_module()


@pytest.mark.parametrize("name", MODULES)
def test_buffers_change_as_in_pytorch(name):
    torch.manual_seed(3)
    module = MODULES[name]()
    module(torch.randn(8, 10))  # a parametrization has its first power iterations
    batches = [(torch.randn(n, 10), torch.randn(n, 10)) for n in (8, 8, 8, 5)]
    theirs = copy.deepcopy(module) if name != "spectral norm by hooks" else MODULES[name]()
    theirs.load_state_dict(module.state_dict())
    other = MODULES[name]()
    other.load_state_dict(module.state_dict())
    losses, predicted, mine = train(module, batches, "cpu:1")
    optimizer = torch.optim.Adam(theirs.parameters(), 0.01)
    for batch, loss in zip(batches, losses):
        optimizer.zero_grad()
        expected = F.mse_loss(theirs(batch[0]), batch[1])
        expected.backward()
        optimizer.step()
        assert loss == pytest.approx(float(expected.detach()), rel=1e-4)
    for (key, a), b in zip(mine.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-4, err_msg=key)
    theirs.eval()
    with torch.no_grad():
        np.testing.assert_allclose(predicted, theirs(batches[0][0]).numpy(), rtol=1e-3, atol=1e-4)
    *_, again = train(other, batches, "cpu:3")  # the same bits
    for key, value in mine.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key


def test_an_optimizer_of_mtc_is_refused():
    with pytest.raises(mtc.ModelError, match="expected a torch.optim.Optimizer for a module that changes buffers in a "
                                             "step, mean, decay, steps, found optimizer=\"adam\""):
        mtc.torch.compile(Assigned(), (torch.randn(4, 10), torch.randn(4, 10)), loss=F.mse_loss, verbose=0)


def test_a_buffer_of_another_shape_is_refused():
    class Grows(nn.Linear):
        def __init__(self):
            super().__init__(3, 3)
            self.register_buffer("seen", torch.zeros(1, 3))

        def forward(self, x):
            self.seen = torch.cat([self.seen, x[:1].detach()])
            return super().forward(x)

    with pytest.raises(mtc.ModelError, match="the buffer seen: expected a tensor of .1, 3. and torch.float32, as it "
                                             "is, found that forward assigns one of .2, 3."):
        mtc.torch.compile(Grows(), (torch.randn(4, 3), torch.randn(4, 3)), loss=F.mse_loss, verbose=0)


LOSSES = {
    "nll of a logarithm": lambda x, y: F.nll_loss(x.softmax(-1).clamp(1e-6).log(), y),
    "nll of sums": lambda x, y: F.nll_loss(x.softmax(-1).cumsum(-1).clamp(1e-6).log(), y),
    "nll of a softmax": lambda x, y: F.nll_loss(x.log_softmax(-1), y),
}


@pytest.mark.parametrize("name", LOSSES)
def test_labels_are_ignored(name):
    torch.manual_seed(0)
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 1, 0])
    module = nn.Linear(4, 5)
    step = mtc.torch.compile(module, (x, y), loss=LOSSES[name], optimizer=torch.optim.SGD(module.parameters(), 0.1),
                             verbose=0)
    ignored = y.clone()
    ignored[2:5] = -100
    if name == "nll of a softmax":  # no label of the example is ignored, so that all must be classes
        with pytest.raises(mtc.DataError, match="-100"):
            step.test_on_batch((x, ignored))
    else:
        expected = LOSSES[name](module(x), ignored)
        assert step.test_on_batch((x, ignored))["loss"] == pytest.approx(float(expected.detach()), rel=1e-5)


def test_an_encoder_and_a_decoder():
    class Translation(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.scores = nn.Embedding(30, 16), nn.Linear(16, 30)
            self.blocks = nn.Transformer(16, 4, 1, 1, 32, 0.0, batch_first=True)

        def forward(self, x, y):
            causal = self.blocks.generate_square_subsequent_mask(y.shape[1])
            return self.scores(self.blocks(self.tokens(x), self.tokens(y), tgt_mask=causal,
                                           src_key_padding_mask=x == 0))

    torch.manual_seed(0)
    x, y = torch.randint(1, 30, (4, 7)), torch.randint(1, 30, (4, 5))
    x[2:, 5:] = 0
    module = Translation()
    step = mtc.torch.compile(module, ((x, y), y), loss=lambda o, t: F.cross_entropy(o.transpose(1, 2), t),
                             optimizer=torch.optim.SGD(module.parameters(), 0.1), verbose=0)
    expected = F.cross_entropy(module(x, y).transpose(1, 2), y)
    assert step.train_on_batch(((x, y), y))["loss"] == pytest.approx(float(expected.detach()), rel=1e-5)


def test_what_looks_at_the_data_is_one_line(capfd):
    class Asking(nn.Linear):
        def forward(self, x):
            made = super().forward(x)
            return made / float(made.abs().max())

    module = Asking(3, 3)
    with pytest.raises(mtc.ModelError, match="its code looks at the data"):
        mtc.torch.compile(module, (torch.randn(4, 3), torch.randn(4, 3)), loss=F.mse_loss,
                          optimizer=torch.optim.SGD(module.parameters(), 0.1), verbose=0)
    assert "def forward" not in capfd.readouterr().err
