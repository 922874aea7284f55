# SPDX-License-Identifier: Apache-2.0
"""Traced models have the same bits on any number of devices, with micro-batches, and after a short last batch."""

import jax
import jax_models
import mtc
import mtc.jax
import mtc.torch
import pytest
import torch
import torch_models

BATCH, SHORT = 8, 5
TORCH = [torch_models.mlp, torch_models.gpt, torch_models.recurrent, torch_models.encoder, torch_models.hf_gpt2,
         torch_models.hf_bert]
JAX = [jax_models.mlp, jax_models.cnn, jax_models.gpt, jax_models.vae, jax_models.tokens]
# Statistics of the whole batch, and tables of all samples, need all samples at once: these have no micro-batches.
WHOLE = [torch_models.cnn, torch_models.resnet18, torch_models.contrastive, jax_models.resnet,
         jax_models.contrastive]


def make(function, micro_batches):
    """A step, and the tensors of a whole batch and of a short one by their names in the plan."""
    options = {"batch_size": BATCH, "shards": BATCH, "check": False, "verbose": 0, "devices": "cpu:1"}
    if micro_batches > 1:
        options["micro_batches"] = micro_batches
    if function.__module__ == "jax_models":
        model = function()
        step = mtc.jax.compile(model.loss, model.params, model.some(4), state=model.state, optimizer=mtc.jax.adam(0.01),
                               **options)
        return step, [step._bind(model.some(BATCH)), step._bind(model.some(SHORT, BATCH))]
    module, example, loss = torch_models.build(function)
    step = mtc.torch.compile(module, example, loss=loss, optimizer="adam", **options)
    rows = jax.tree.map(lambda *parts: torch.cat(parts), example, *(torch_models.other(example, i) for i in (1, 2)))
    return step, [step._bound((jax.tree.map(lambda t, span=span: t[span], rows),))
                  for span in (slice(BATCH), slice(BATCH, BATCH + SHORT))]


def trained(step, devices, batches):
    """All variables after a step for each batch, from those that the step has."""
    with step.plan.session(devices) as session:
        for name, value in step.session.variables.items():
            session.variables[name] = value
        for batch in batches:
            session.train_step(batch)
        return {name: value.tobytes() for name, value in session.variables.items()}


@pytest.mark.parametrize("function", TORCH + JAX + WHOLE, ids=lambda f: f"{f.__module__}-{f.__name__}")
def test_one_result(function):
    wanted = None
    for micro_batches in (1,) if function in WHOLE else (1, 2, 4):
        step, batches = make(function, micro_batches)
        for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:1x2"):
            found = trained(step, devices, batches)
            wanted = wanted or found
            assert found == wanted, f"{devices}, {micro_batches} micro-batches"
        step.close()


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f"{f.__module__}-{f.__name__}")
def test_statistics_of_the_batch_have_no_micro_batches(function):
    with pytest.raises(mtc.ModelError, match="micro"):
        make(function, 2)
