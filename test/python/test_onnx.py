# SPDX-License-Identifier: Apache-2.0
"""ONNX files that PyTorch exports: predictions and training beside PyTorch's own."""

import os

import mtc
import numpy as np
import onnx_models
import pytest
import torch

BATCH, STEPS, RATE = 8, 5, 0.05
LOSS = "sparse_categorical_crossentropy,from_logits=true"


def labels_for(y, generator):
    return torch.randint(0, y.shape[-1], y.shape[:-1], generator=generator)


def exports():
    """The models, and the exporters that they are tried with."""
    for name in onnx_models.MODELS:
        for dynamo, exporter in ((False, "script"), (True, "dynamo")):
            if (name in onnx_models.SCRIPTED) != dynamo or os.environ.get("MTC_ALL_MODELS"):
                yield pytest.param(name, dynamo, id=f"{name}-{exporter}")


@pytest.mark.parametrize("name, dynamo", exports())
def test_trains_as_pytorch(name, dynamo, tmp_path):
    module, sample = onnx_models.make(name)
    generator = torch.Generator().manual_seed(1)
    x = sample(BATCH, generator)
    path = tmp_path / "model.onnx"
    onnx_models.export(module, x, path, dynamo)
    plan = mtc.compile(path, batch_size=BATCH, loss=LOSS, optimizer=f"sgd,learning_rate={RATE}")
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    with mtc.Session(plan, "cpu:1") as session:
        module.eval()
        with torch.no_grad():
            expected = module(x).numpy()
        found = session.predict(x.numpy())
        assert np.abs(found - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
        module.train()
        for step in range(STEPS):
            x = sample(BATCH, generator)
            optimizer.zero_grad()
            y = module(x)
            labels = labels_for(y, generator)
            loss = torch.nn.functional.cross_entropy(y.flatten(0, -2), labels.flatten())
            loss.backward()
            optimizer.step()
            logs = session.train_on_batch(x.numpy(), labels.numpy())
            assert abs(logs["loss"] - loss.item()) <= 2e-5 * abs(loss.item()), f"step {step}"


class Pooled(torch.nn.Module):
    """A class for a sequence: the mean of what a layer makes of its tokens, without the padding, whose id is 1."""

    def __init__(self):
        super().__init__()
        self.tokens, self.layer, self.classes = torch.nn.Embedding(30, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def forward(self, ids, mask):
        x = torch.tanh(self.layer(self.tokens(ids))) * mask.unsqueeze(-1)
        return self.classes(x.sum(1) / mask.sum(1, keepdim=True))


def test_an_axis_with_a_name_is_the_length(tmp_path):
    torch.manual_seed(1)
    module = Pooled()
    ids, mask = torch.randint(2, 30, (BATCH, 12)), torch.ones(BATCH, 12)
    for row in range(BATCH):
        mask[row, row // 2 + 1:] = 0
    ids = torch.where(mask > 0, ids, 1)
    axes = {name: {0: "batch", 1: "sequence"} for name in ("ids", "mask")}
    torch.onnx.export(module, (ids, mask), tmp_path / "model.onnx", input_names=["ids", "mask"],
                      output_names=["scores"], dynamic_axes=axes, dynamo=False)
    plan = mtc.compile(tmp_path / "model.onnx", batch_size=BATCH, lengths=[4, 12], length_input="mask", loss=LOSS,
                       optimizer=f"sgd,learning_rate={RATE}")
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    with mtc.Session(plan, "cpu:1") as session:
        for step in range(STEPS):
            labels = torch.randint(0, 3, (BATCH,))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(ids, mask), labels)
            loss.backward()
            optimizer.step()
            logs = session.train_step([ids.int().numpy(), mask.numpy(), labels.int().numpy()])
            assert abs(logs["loss"] - loss.item()) <= 1e-5
        assert session.length_steps() == {4: STEPS, 12: 0}
