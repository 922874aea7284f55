# SPDX-License-Identifier: Apache-2.0
"""Times one training step of a model in float32 as a user of another system runs it.

    peers.py jax|torch|torch-compile|keras-tensorflow mlp|convnet|cnn|resnet20|resnet50|lstm|gpt|... BATCH [STEPS]

The MNIST MLP (784-256-256-10, ReLU, Adam 1e-3) is here, the GPTs (PyTorch only) are in gpt.py, the others in images.py.

Prints one JSON line. Inputs are in memory, the same batch each step; every step is waited for, as `mtrun benchmark`
does.
"""
import json
import resource
import sys
import time

START = time.perf_counter()
import numpy as np  # noqa: E402  (imports count towards the first step)

LEARNING_RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
SIZES = (784, 256, 256, 10)


def inputs(batch):
    random = np.random.default_rng(0)
    return random.random((batch, SIZES[0]), dtype=np.float32), random.integers(0, SIZES[-1], batch).astype(np.int32)


def weights():
    random = np.random.default_rng(1)
    for fan_in, fan_out in zip(SIZES, SIZES[1:]):
        limit = (6 / (fan_in + fan_out)) ** 0.5
        yield random.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32), np.zeros(fan_out, np.float32)


def jax_step(batch, wait=True):
    """One jitted function from state to state; buffers are donated. Loss and accuracy come out as a fit loop shows
    them."""
    import jax
    import jax.numpy as jnp

    def forward(parameters, x):
        for kernel, bias in parameters[:-1]:
            x = jax.nn.relu(x @ kernel + bias)
        kernel, bias = parameters[-1]
        return x @ kernel + bias

    def loss(parameters, x, y):
        logits = forward(parameters, x)
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=-1)
        return -picked.mean(), (logits.argmax(-1) == y).mean()

    def step(parameters, first, second, count, x, y):
        (value, accuracy), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, x, y)
        count = count + 1
        rate = LEARNING_RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
        first = jax.tree.map(lambda m, g: m + (g - m) * (1 - BETA_1), first, gradients)
        second = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - BETA_2), second, gradients)
        parameters = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, first, second)
        return parameters, first, second, count, value, accuracy

    step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    parameters = jax.tree.map(jnp.asarray, list(weights()))
    state = [parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters),
             jnp.float32(0)]
    x, y = map(jax.device_put, inputs(batch))

    def run():
        state[:] = step(*state, x, y)[:4]
        return jax.block_until_ready(state) if wait else state[0]
    return run


def torch_step(batch, compiled):
    import images
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    with torch.no_grad():
        for layer, (kernel, bias) in zip((model[0], model[2], model[4]), weights()):
            layer.weight.copy_(torch.from_numpy(kernel.T.copy()))
            layer.bias.copy_(torch.from_numpy(bias))
    rate = torch.tensor(LEARNING_RATE) if compiled else LEARNING_RATE  # a tensor: else the rate is compiled in
    optimizer = torch.optim.Adam(model.parameters(), rate, (BETA_1, BETA_2), EPSILON, fused=None if compiled else True)
    x, y = map(torch.from_numpy, inputs(batch))
    y = y.long()
    return images.torch_run(model, optimizer, lambda: x, y, compiled)


def step_of(system, model, batch):
    compiled = system == "torch-compile"
    if model == "mlp":
        return jax_step(batch) if system == "jax" else torch_step(batch, compiled)
    import gpt
    import images
    if model in gpt.SIZES:
        return gpt.torch_step(model, batch, compiled)
    if system == "keras-tensorflow":
        return images.keras_tensorflow_step(model, batch)
    return images.jax_step(model, batch) if system == "jax" else images.torch_step(model, batch, compiled)


def main():
    system, model, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    steps = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    run = step_of(system, model, batch)
    run()
    first = time.perf_counter() - START
    for _ in range(max(3, steps // 10)):
        run()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    times.sort()
    print(json.dumps({"system": system, "model": model, "batch": batch, "steps": steps,
                      "median_us": times[len(times) // 2] * 1e6, "min_us": times[0] * 1e6,
                      "first_step_s": first,
                      "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
