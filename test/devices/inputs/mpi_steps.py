# SPDX-License-Identifier: Apache-2.0
"""mpi_steps.py torch|jax|whole FOLDER

Makes steps of PyTorch or JAX, which mpirun may do in several processes. Each prints a hash of all results. Process 0
also prints what each process computed."""
import hashlib
import os
import sys

import numpy as np

import mtc

what, folder = sys.argv[1:3]
numbers = np.random.default_rng(0)
x, y = numbers.normal(size=(51, 12)).astype("float32"), numbers.integers(0, 3, 51)
BATCHES = [slice(0, 16), slice(16, 32), slice(32, 48), slice(48, 51)]  # the last is short


def of_torch():
    import mtc.torch
    import torch

    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    step = mtc.torch.compile(module, (inputs[:16], labels[:16]), loss=torch.nn.CrossEntropyLoss(),
                             optimizer=torch.optim.Adam(module.parameters(), 0.01), devices="cpu:1")
    logs = [step.train_on_batch(inputs[part], labels[part]) for part in BATCHES]
    logs.append(step.test_on_batch(inputs[:16], labels[:16]))
    predicted = step.predict(inputs[:7]).numpy().tobytes()
    step.save(os.path.join(folder, "torch.safetensors"))
    return step.session, [logs, predicted]


def loss_of(parameters, batch):
    import jax
    import jax.numpy as jnp

    logits = jnp.maximum(batch["x"] @ parameters["a"], 0) @ parameters["b"]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(batch["y"], 3), axis=-1))


def parameters():
    drawn = np.random.default_rng(1)
    return {"a": drawn.normal(size=(12, 16)).astype("float32"), "b": drawn.normal(size=(16, 3)).astype("float32")}


def batch(part):
    return {"x": x[part], "y": y[part].astype("int32")}


def of_jax():
    import mtc.jax
    import optax

    step = mtc.jax.compile(loss_of, parameters(), batch(BATCHES[0]), optimizer=optax.adam(0.01), batch_size=16,
                           devices="cpu:1")
    return step.session, [step.train_on_batch(batch(part)) for part in BATCHES]


def of_whole():
    import jax
    import mtc.jax

    def train(state, given):
        loss, gradients = jax.value_and_grad(loss_of)(state, given)
        return jax.tree.map(lambda p, g: p - 0.1 * g, state, gradients), {"loss": loss}

    state = parameters()
    step = mtc.jax.step(train, state, batch(BATCHES[0]), devices="cpu:1")
    logs = []
    for part in BATCHES[:3]:
        state, metrics = step(state, batch(part))
        logs.append(float(metrics["loss"]))
    return step.session, logs


session, results = {"torch": of_torch, "jax": of_jax, "whole": of_whole}[what]()
variables = b"".join(np.asarray(value).tobytes() for value in dict(session.variables).values())
digest = hashlib.sha256(repr(results).encode() + variables).hexdigest()
computed = [(each["rows"], min(each["received_bytes"], 1)) for each in session.activities()]
sys.stdout.write(f"process {mtc.process()}: results {digest}\n" +
                 (f"computed {computed}\n" if mtc.process() == 0 and mtc.processes() > 1 else ""))
