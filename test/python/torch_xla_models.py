# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch that torch-xla has written as StableHLO, with a batch of any size: the files in inputs.

MODELS has a module, the shape of a sample (None: a text of whole numbers), and the names of the parameters in the order
of the arguments of the file; "" is the input. To write the files again, with torch 2.9.0 and torch_xla 2.9.0:

    EXPERIMENTAL_XLA_UNBOUNDED_DYNAMISM=1 PJRT_DEVICE=CPU python test/python/torch_xla_models.py OUT

MTC reads MLIR in the generic form, which is not what torch-xla writes: `stablehlo-opt --mlir-print-op-generic`, or the
parser of jaxlib, as in `stablehlo_text.py`, makes it.
"""

import pathlib
import sys

import torch
from torch import nn


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, stride=2), nn.Linear(6, 3)

    def forward(self, x):
        return self.c(torch.relu(self.b(torch.relu(self.a(x)))).mean((2, 3)))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.l = nn.Embedding(11, 8), nn.Linear(8, 3)

    def forward(self, ids):
        return self.l(torch.tanh(self.t(ids)).mean(1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.o = nn.LayerNorm(8), nn.Linear(8, 3)
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.n(x)
        scores = torch.softmax(self.q(y) @ self.k(y).transpose(1, 2) / 8**0.5, -1)
        return self.o(x + scores @ self.v(y))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(4, 6)

    def forward(self, x):
        return torch.sigmoid(self.b(nn.functional.gelu(self.a(x))))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        x = x + nn.functional.silu(self.a(x))
        return self.c(x + nn.functional.silu(self.b(x)))


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


MODELS = {
    "mlp": (mlp, (6,), ["2.bias", "2.weight", "0.bias", "0.weight", ""]),
    "cnn": (Convolutions, (2, 9, 9), ["c.bias", "c.weight", "b.bias", "b.weight", "a.bias", "a.weight", ""]),
    "words": (Words, None, ["l.bias", "l.weight", "", "t.weight"]),
    "attention": (Attention, (5, 8), ["", "o.bias", "o.weight", "v.bias", "v.weight", "n.bias", "n.weight", "k.bias",
                                      "k.weight", "q.bias", "q.weight"]),
    "autoencoder": (Autoencoder, (6,), ["b.bias", "b.weight", "a.bias", "a.weight", ""]),
    "residual": (Residual, (6,), ["c.bias", "c.weight", "b.bias", "b.weight", "a.bias", "a.weight", ""]),
}


def batch(shape, rows, seed):
    """Inputs of a module."""
    generator = torch.Generator().manual_seed(seed)
    if shape is None:
        return torch.randint(0, 11, (rows, 7), generator=generator, dtype=torch.int32)
    return torch.randn(rows, *shape, generator=generator)


def write(folder):
    from torch_xla.stablehlo import exported_program_to_stablehlo

    for name, (make, shape, _) in MODELS.items():
        program = torch.export.export(make().eval(), (batch(shape, 4, 0),),
                                      dynamic_shapes=({0: torch.export.Dim("batch")},))
        text = exported_program_to_stablehlo(program).get_stablehlo_text()
        (pathlib.Path(folder) / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    write(sys.argv[1])
