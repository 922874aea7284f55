# SPDX-License-Identifier: Apache-2.0
"""The GPTs that `benchmarks/run` times: examples/gpt.py writes them for mtc, and here they are for PyTorch.

    gpt.py MODEL FILE            writes FILE.mlir

    gpt        4 blocks of 256 channels, 8 heads, 128 tokens of 512
    gpt2       GPT-2 with 124M parameters (Radford et al., 2019), 64 tokens of 50,257
    gpt2-long  the same, 1,024 tokens

PyTorch's form is its users' best: one product for queries, keys and values, scaled_dot_product_attention, a fused
AdamW.
"""
import pathlib
import subprocess
import sys

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


def torch_step(name, batch, compiled):
    import images
    import numpy as np
    import torch
    tokens, vocabulary = SIZES[name][3:]
    model = torch_model(name)
    rate = torch.tensor(6e-4) if compiled else 6e-4  # a tensor: else the rate is compiled in
    optimizer = torch.optim.AdamW(model.parameters(), rate, (0.9, 0.99), weight_decay=0.1,
                                  fused=None if compiled else True)
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, vocabulary, (batch, tokens + 1)))

    def backward():
        loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        return loss

    return images.torch_step_of(backward, optimizer, compiled)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2] + ".mlir")
