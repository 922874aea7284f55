# SPDX-License-Identifier: Apache-2.0
"""StableHLO as torch-xla writes it: predictions and training are those of PyTorch."""

import pathlib

import mtc
import numpy as np
import pytest
import torch
import torch_xla_models

ROWS, STEPS, RATE = 8, 5, 0.05


@pytest.mark.parametrize("name", list(torch_xla_models.MODELS))
def test_trains_as_pytorch(name):
    make, shape, names = torch_xla_models.MODELS[name]
    path = pathlib.Path(__file__).parent / "inputs" / f"{name}.stablehlo.mlir"
    plan = mtc.compile(path, batch_size=ROWS, loss="mse", optimizer=f"sgd,learning_rate={RATE}")
    torch.manual_seed(1)
    module = make()
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    with plan.session("cpu:1") as session:
        state = module.state_dict()
        for i, parameter in enumerate(names):
            if parameter:
                session.variables[f"arg{i}"] = state[parameter].numpy()
        for step in range(STEPS):
            x = torch_xla_models.batch(shape, ROWS, step)
            predicted = module(x)
            assert np.allclose(session.predict(x.numpy()), predicted.detach().numpy(), rtol=1e-5, atol=1e-6)
            y = torch.randn(predicted.shape, generator=torch.Generator().manual_seed(step))
            loss = torch.nn.functional.mse_loss(predicted, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            assert session.train_on_batch(x.numpy(), y.numpy())["loss"] == pytest.approx(float(loss), rel=2e-5), step

