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
