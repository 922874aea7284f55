# SPDX-License-Identifier: Apache-2.0
"""Step.fit: checkpoints in the middle of an epoch, and metrics of a validation."""
import pytest
import torch

import mtc
import mtc.torch

NN = torch.nn


class Stop(Exception):
    pass


class Data(torch.utils.data.Dataset):
    """Noisy samples: each time that one is read it differs, by PyTorch's random numbers."""

    def __init__(self, stop_at=None):
        draw = torch.Generator().manual_seed(5)
        self.x, self.y = torch.randn(52, 6, generator=draw), torch.randint(0, 3, (52,), generator=draw)
        self.left = stop_at

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Stop
        return self.x[i] + 0.1 * torch.randn(6), self.y[i]


def make(stop_at=None, own_generator=False):
    """A step with dropout, batch normalisation, momentum and a schedule, and a shuffled loader."""
    torch.manual_seed(0)
    model = NN.Sequential(NN.Linear(6, 16), NN.BatchNorm1d(16), NN.ReLU(), NN.Dropout(0.3), NN.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    data = Data(stop_at)
    generator = torch.Generator().manual_seed(9) if own_generator else None
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, generator=generator)
    step = mtc.torch.compile(model, (data.x[:8], data.y[:8]), loss=NN.functional.cross_entropy, optimizer=optimizer,
                             check=False, devices="cpu:2", verbose=0)
    torch.manual_seed(1)
    return step, loader, scheduler


@pytest.mark.parametrize("own_generator", [False, True])
def test_goes_on_in_an_epoch_to_the_same_bits(tmp_path, own_generator):
    file = tmp_path / "training.pt"

    def fit(stop_at, **options):
        step, loader, scheduler = make(stop_at, own_generator)
        history = step.fit(loader, epochs=3, scheduler=scheduler, scheduler_every="step", verbose=0, **options)
        return history, step.module.state_dict(), step._optimizer.source.state_dict(), scheduler.last_epoch

    whole = fit(None)
    with pytest.raises(Stop):  # in the fifth batch of the second epoch
        fit(52 + 37, checkpoint=file, every_steps=3)
    torch.manual_seed(77)
    history, weights, state, last = fit(None, checkpoint=file, every_steps=3, resume=True)
    assert history == whole[0] and last == whole[3]
    for name, value in weights.items():
        assert torch.equal(value, whole[1][name]), name
    for i, slots in state["state"].items():
        assert torch.equal(slots["momentum_buffer"], whole[2]["state"][i]["momentum_buffer"])
    assert fit(None, checkpoint=file, resume=True)[0] == whole[0]  # nothing is left to do
    step, loader, _ = make()
    with pytest.raises(mtc.DataError, match="found another one: its parameter groups or its scheduler"):
        step.fit(loader, checkpoint=file, resume=True)


def test_metrics_of_the_validation():
    class Count:
        def reset(self):
            self.right = 0

        def update(self, outputs, labels):
            self.right += int((outputs.argmax(-1) == labels).sum())

        def compute(self):
            return self.right

    step, loader, _ = make()
    clean = torch.utils.data.TensorDataset(loader.dataset.x, loader.dataset.y)
    plain = torch.utils.data.DataLoader(clean, batch_size=8)
    metrics = {"accuracy": lambda outputs, labels: (outputs.argmax(-1) == labels).float().mean(), "right": Count()}
    history = step.fit(loader, epochs=2, validation=plain, metrics=metrics, verbose=0)
    model = step.module.eval()
    right = int((model(loader.dataset.x).argmax(-1) == loader.dataset.y).sum())
    assert history["val_right"][-1] == right
    assert history["val_accuracy"][-1] == pytest.approx(right / 52)
