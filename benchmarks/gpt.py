# SPDX-License-Identifier: Apache-2.0
"""The GPTs that `benchmarks/run` times: examples/gpt.py writes them for mtc, and here they are for PyTorch.

    gpt.py MODEL FILE                       writes FILE.mlir
    gpt.py losses MODEL BATCH STEPS         first losses from the same weights, here and in PyTorch

    gpt        4 blocks of 256 channels, 8 heads, 128 tokens of 512
    gpt2       GPT-2 with 124M parameters (Radford et al., 2019), 64 tokens of 50,257
    gpt2-long  the same, 1,024 tokens

PyTorch's form is its users' best: one product for queries, keys and values, scaled_dot_product_attention, a fused
AdamW.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

# Blocks, channels, heads, tokens of a sample, vocabulary.
SIZES = {"gpt": (4, 256, 8, 128, 512), "gpt2": (12, 768, 12, 64, 50257), "gpt2-long": (12, 768, 12, 1024, 50257)}
EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "gpt.py"


def write(name, path):
    options = [f"--{word}={size}" for word, size in zip(("layers", "width", "heads", "tokens", "vocabulary"),
                                                        SIZES[name])]
    with open(path, "w") as file:
        subprocess.run([sys.executable, EXAMPLE, *options], stdout=file, check=True)


def torch_model(name):
    import torch
    from torch import nn
    from torch.nn import functional as F

    blocks, width, heads, tokens, vocabulary = SIZES[name]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).split(width, dim=-1))
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).flatten(2))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(blocks))), nn.LayerNorm(width)
            self.register_buffer("numbers", torch.arange(tokens))

        def forward(self, ids):
            x = self.norm(self.blocks(self.table(ids) + self.places(self.numbers)))
            return x @ self.table.weight.T  # tied

    torch.manual_seed(0)
    model = Gpt()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02)
    return model


def torch_groups(model):
    """Biases and norms do not decay, as in examples/gpt.py."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]


def torch_step(name, batch, compiled):
    import images
    import numpy as np
    import torch
    tokens, vocabulary = SIZES[name][3:]
    model = torch_model(name)
    rate = torch.tensor(6e-4) if compiled else 6e-4  # a tensor: else the rate is compiled in
    optimizer = torch.optim.AdamW(torch_groups(model), rate, (0.9, 0.99), fused=None if compiled else True)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, vocabulary, (batch, tokens + 1)))

    def backward():
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        return loss

    return images.torch_step_of(backward, optimizer, compiled)


def save_variables(model, path):
    """The weights of torch_model, as a file for `mtrun --load FILE:partial`."""
    import numpy as np
    weights = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    out = {"embedding/embeddings": weights["table.weight"], "positions/embeddings": weights["places.weight"],
           "norm/gamma": weights["norm.weight"], "norm/beta": weights["norm.bias"]}
    for i in range(len(model.blocks)):
        def parts(layer, names):
            matrix, bias = weights[f"blocks.{i}.{layer}.weight"], weights[f"blocks.{i}.{layer}.bias"]
            for name, m, b in zip(names, np.split(matrix, len(names)), np.split(bias, len(names))):
                out[f"block{i}/{name}/kernel"], out[f"block{i}/{name}/bias"] = m.T, b
        parts("qkv", ("query", "key", "value"))
        for layer in ("project", "up", "down"):
            parts(layer, (layer,))
        for norm in ("norm1", "norm2"):
            out[f"block{i}/{norm}/gamma"] = weights[f"blocks.{i}.{norm}.weight"]
            out[f"block{i}/{norm}/beta"] = weights[f"blocks.{i}.{norm}.bias"]
    header, end = {}, 0
    for name, value in out.items():
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [end, end + value.nbytes]}
        end += value.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in out.values():
            file.write(np.ascontiguousarray(value, "<f4").tobytes())


def first_losses(name, batch, steps):
    """Steps on one batch, with PyTorch's formula of AdamW in both."""
    import numpy as np
    import torch
    tokens, vocabulary = SIZES[name][3:]
    model = torch_model(name)
    data = np.random.default_rng(0).integers(0, vocabulary, batch * tokens + 1)
    ids = torch.from_numpy(np.stack([data[i * tokens:(i + 1) * tokens + 1] for i in range(batch)]))
    programs = EXAMPLE.parents[1] / "build" / "release" / "bin"
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        write(name, base / "model.mlir")
        text = (base / "model.mlir").read_text()
        (base / "model.mlir").write_text(text.replace(
            "weight_decay = 1.0e-1 : f32", "weight_decay = 1.0e-1 : f32, epsilon = 1.0e-8 : f32, "
                                           "epsilon_after_correction"))
        save_variables(model, base / "first.safetensors")
        data.astype("<u2").tofile(base / "tokens.bin")
        subprocess.run([programs / "mtc", "compile", base / "model.mlir", "-o", base / "model.mtp", "--batch",
                        str(batch)], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([programs / "mtrun", "train", base / "model.mtp", "--data",
                               f"tokens:{base / 'tokens.bin'},length={tokens}", "--epochs", str(steps), "--load",
                               f"{base / 'first.safetensors'}:partial", "--devices", "cpu:1x2", "--json-logs"],
                              check=True, capture_output=True, text=True, cwd=base)
    logs = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [log["loss"] for log in logs if "loss" in log][::2]  # a step, and the epoch of that step
    optimizer = torch.optim.AdamW(torch_groups(model), 6e-4, (0.9, 0.99))
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step + 1}: mtc {ours[step]:.7f}, PyTorch {loss.item():.7f}, "
              f"difference {abs(ours[step] - loss.item()):.1e}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "losses":
        first_losses(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        write(sys.argv[1], sys.argv[2] + ".mlir")
