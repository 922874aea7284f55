# SPDX-License-Identifier: Apache-2.0
"""mtc.torch on models of torchvision, timm and transformers: training, and gradients in float64.

Images are 64 x 64, or 32 x 32 for a ViT, and a batch has four. The models of torchvision and timm have all their layers
and channels; the ViT of torchvision has 12 layers, but is narrow. Models of transformers have three layers of width 32.

Training takes 5 to 45 seconds per model, most of them in the compiler. The interpreter takes a second and a half for a
million weights, most of it to read and print them: 65 seconds for Swin-T. So two models are tried, or all with
MTC_ALL_MODELS=1, which takes ten minutes.
"""

import copy
import os

import numpy as np
import pytest
import torch

pytest.importorskip("torchvision")
pytest.importorskip("timm")
pytest.importorskip("transformers")

import interpreter  # noqa: E402
import mtc.torch  # noqa: E402
import torch_zoo as zoo  # noqa: E402
from mtc.torch import _compile, _step  # noqa: E402

torch.set_num_threads(1)

MODELS = list(zoo.ALL) if os.environ.get("MTC_ALL_MODELS") else ["mobilenetv4", "qwen2"]
STEPS = 5
# Small enough that PyTorch's own losses in float32 and float64 agree: these models learn four images in a step or two.
RATES = {"resnet50": 1e-8, "dla34": 1e-8, "mobilenetv4": 1e-7, "swin_t": 1e-5, "convnext_t": 1e-5, "mixer": 1e-5}
OPTIMIZER = f"mt.sgd <{{learning_rate = 1.0 : f32, momentum = {interpreter.MOMENTUM} : f32}}>"


def loss_of(module, example, loss):
    return module(**example).loss if isinstance(example, dict) else loss(module(example[0]), example[1])


def optimizer_of(module, rate):
    """AdamW for transformers; SGD where the batch is normalised, as Adam divides by gradients that are roundings."""
    if any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        return torch.optim.SGD(module.parameters(), rate, momentum=0.9, weight_decay=1e-3)
    return torch.optim.AdamW(module.parameters(), rate)


@pytest.mark.parametrize("name", MODELS)
def test_training_is_that_of_pytorch(name, cache):
    """The check passes, and the losses of five steps are PyTorch's."""
    module, example, loss = zoo.build(name)
    twin, rate = copy.deepcopy(module), RATES.get(name, 1e-3)
    step = mtc.torch.compile(module, example, loss=loss, optimizer=optimizer_of(module, rate), check=True,
                             verbose=0, devices="cpu:1")
    optimizer = optimizer_of(twin, rate)
    found, expected = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss_of(twin, example, loss)
        value.backward()
        optimizer.step()
        expected.append(float(value.detach()))
        found.append(step.train_on_batch(example)["loss"])
    step.close()
    for plan in cache.iterdir():  # of a hundred MB each
        if plan.is_file():
            plan.unlink()
    assert expected[-1] < expected[0]
    difference = np.abs(np.subtract(found, expected)) / np.abs(expected)
    print(f"{name}: losses {difference.max():.1e}")
    assert difference.max() <= 1e-3, (found, expected)


def in_double(module, example, loss, variables):
    """A step in PyTorch in float64, with the names and axes that the plan has."""
    twin = copy.deepcopy(module).double()

    def convert(tensor):
        return tensor.double() if tensor.is_floating_point() else tensor

    batch = {k: convert(v) for k, v in example.items()} if isinstance(example, dict) else tuple(map(convert, example))
    value = loss_of(twin, batch, loss)
    value.backward()
    gradients = {n: np.transpose(p.grad.numpy(), variables.stored[n]) for n, p in twin.named_parameters()
                 if p.grad is not None}
    buffers = dict(twin.named_buffers())
    state = {variable: buffers[n].numpy() * share for n, (variable, share) in variables.statistics.items()}
    return interpreter.Step(float(value.detach()), gradients, state)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_in_float64(name, tmp_path):
    """The reference interpreter runs a step in float64: loss, gradients and buffers are within 1e-5 of PyTorch's."""
    module, example, loss = zoo.build(name)
    work = _compile._Work(module, example, loss, False)
    model = work.convert(len(work.example.tensors[0]), set())
    variables = _step.Variables(model.stored, model.statistics)
    expected = in_double(module, example, loss, variables)
    errors = interpreter.errors(
        tmp_path / "model.mlir", _compile._text(model, OPTIMIZER), zip(work.example.names, work.example.tensors),
        (variables.to_plan(n, work.tensors[n]) for n in variables.names()), expected)
    worst = max(expected.gradients, key=errors.get)
    print(f"{name}: loss {errors['loss']:.1e}, {len(expected.gradients)} gradients {errors[worst]:.1e} ({worst}), "
          f"{len(expected.state)} buffers {max([errors[b] for b in expected.state], default=0):.1e}")
    assert not {k: e for k, e in errors.items() if not e <= interpreter.TOLERANCE}
