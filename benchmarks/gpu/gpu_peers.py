# SPDX-License-Identifier: Apache-2.0
"""Times one training step of a model on one GPU as a user of another system runs it, with the settings that make it
fastest.

    gpu_peers.py torch-compile|torch-graph|jax mlp|cnn|resnet20|resnet50|transformer|gpt2 BATCH f32|tf32|bf16 [STEPS
                 [TURN]]

    torch-compile   forward, backward and the optimizer by torch.compile(mode="max-autotune"), which uses CUDA graphs
                    itself
    torch-graph     the same compiled without graphs, then the whole step recorded as one CUDA graph
    jax             one jitted function from state to state

gpt2 is PyTorch's alone. With TURN, a file, it compiles at once, but does not time before the file is there and no other
process holds a lock on it: several can compile at a time, and are timed one after the other.

Prints one JSON line: the median step where each is waited for, and the mean step where all are enqueued first. Inputs
are on the GPU, the same batch each step. f32 forbids TF32; bf16 computes in 16 bit with variables in float32 (autocast;
Keras' mixed_bfloat16).
"""
import fcntl
import json
import os
import pathlib
import sys
import time

START = time.perf_counter()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import images  # noqa: E402
import peers  # noqa: E402


def torch_parts(name, batch):
    import torch
    from torch import nn
    if name == "gpt2":
        import gpt
        model, ids = gpt.torch_model("gpt2-long").cuda(), torch.randint(0, 50257, (batch, 1025), device="cuda")
        rate = torch.tensor(6e-4, device="cuda")
        optimizer = torch.optim.AdamW(gpt.torch_groups(model), rate, (0.9, 0.99), capturable=True)
        return model, optimizer, ids[:, :-1].contiguous(), ids[:, 1:].flatten()
    x, y = (torch.from_numpy(a).cuda() for a in (peers.inputs(batch) if name == "mlp" else images.inputs(name, batch)))
    if name == "mlp":
        model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
    elif name == "transformer":
        model, x, y = images.torch_transformer().cuda(), x.long(), y.flatten()
    else:
        model = images.torch_model(name).cuda().to(memory_format=torch.channels_last)
        x = x.permute(0, 3, 1, 2)
    if name == "resnet20":
        return model, torch.optim.SGD(model.parameters(), torch.tensor(images.RATES[name], device="cuda"),
                                      momentum=0.9), x, y.long()
    rate = torch.tensor(1e-3 if name == "mlp" else images.RATES[name],
                        device="cuda")  # a tensor: else the rate is compiled in
    return model, torch.optim.Adam(model.parameters(), rate, eps=1e-7, capturable=True), x, y.long()


def torch_step(system, name, batch, precision):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "f32"
    torch.backends.cudnn.benchmark = True
    model, optimizer, x, y = torch_parts(name, batch)

    def backward():
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            logits = model(x).flatten(0, -2)
        torch.nn.functional.cross_entropy(logits.float(), y).backward()
        return (logits.argmax(-1) == y).float().mean()

    mode = "max-autotune" if system == "torch-compile" else "max-autotune-no-cudagraphs"
    compiled, update = torch.compile(backward, mode=mode), torch.compile(optimizer.step, mode=mode)

    def step():
        optimizer.zero_grad(set_to_none=True)
        compiled()
        update()

    if system == "torch-graph":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            compiled()
            update()
        return graph.replay, torch.cuda.synchronize, torch.cuda.max_memory_reserved
    return step, torch.cuda.synchronize, torch.cuda.max_memory_reserved


def jax_step(name, batch, precision):
    os.environ["KERAS_BACKEND"] = "jax"
    import jax
    jax.config.update("jax_default_matmul_precision",
                      "highest" if precision == "f32" else "tensorfloat32" if precision == "tf32" else "default")
    if precision == "bf16":
        import keras
        keras.config.set_dtype_policy("mixed_bfloat16")
    run = peers.jax_step(batch, wait=False) if name == "mlp" else images.jax_step(name, batch, wait=False)
    peak = lambda: (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    state = []

    def step():
        state[:] = [run()]

    return step, lambda: jax.block_until_ready(state), peak


def wait_for_turn(path):
    print(f"compiled after {time.perf_counter() - START:.0f} s", file=sys.stderr, flush=True)
    while not path.exists():
        time.sleep(0.05)
    file = path.open()
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    system, name, batch, precision = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    steps = int(sys.argv[5]) if len(sys.argv) > 5 else 200
    if system == "jax" and name == "gpt2":
        sys.exit("expected a model that is written for JAX, found gpt2")
    step, wait, peak = jax_step(name, batch,
                                precision) if system == "jax" else torch_step(system, name, batch, precision)
    step()
    wait()
    first = time.perf_counter() - START
    turn = wait_for_turn(pathlib.Path(sys.argv[6])) if len(sys.argv) > 6 else None  # held until the end
    for _ in range(max(10, steps // 10)):
        step()
    wait()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    queued = (time.perf_counter() - begin) / steps
    times.sort()
    print(json.dumps({"system": system, "model": name, "batch": batch, "precision": precision,
                      "median_us": times[len(times) // 2] * 1e6,
                      "queued_us": queued * 1e6, "first_step_s": first, "peak_bytes": peak()}), flush=True)
    del turn


main()
