# SPDX-License-Identifier: Apache-2.0
"""Code that cannot be compiled is refused with one error, which has the user's file and line and a reason.

Each case has one line with the mark HERE, which the error must name.
"""

import inspect
import re

import jax
import jax.experimental
import jax.numpy as jnp
import keras
import numpy as np
import pytest
import torch
from torch import nn

import mtc
import mtc.jax
import mtc.torch

ROWS = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
CASES = {}  # name -> (what compiles it, the marked code, a pattern of the reason, the wrong error that it has today)


def case(compiler, reason, today=None):
    """Adds a function, a module or a layer to the cases."""
    def add(code):
        name = f"{compiler.__name__}-{code.__name__}"
        assert name not in CASES
        CASES[name] = (compiler, code, reason, today)
        return code
    return add


def by_jax(function):
    """The function gets h [n, 4], which depends on the parameters, and x [n, 4]."""
    mtc.jax.compile(lambda params, x: jnp.mean(function(x @ params, x)), np.eye(4, dtype="float32"), ROWS,
                    optimizer="sgd", devices="cpu:1", check=False, verbose=0)


def by_torch(module):
    """The mean of the module's output is the loss."""
    loss = getattr(module, "loss", lambda y, _: y.mean())
    example = torch.tensor(ROWS), torch.zeros(len(ROWS))
    mtc.torch.compile(module(), example, loss=loss, devices="cpu:1", check=False, verbose=0)


def by_keras(layer):
    """The layer is the first of two, which MTC builds."""
    model = keras.Sequential([layer(name="odd"), keras.layers.Dense(1)], name="net")
    model.compile("sgd", "mse")
    mtc.fit(model, ROWS, ROWS[:, :1], verbose=0, by="trace", devices="cpu:1", cpu="native")


def marked_line(code):
    """The number of the marked line."""
    lines, first = inspect.getsourcelines(code)
    (at,) = (i for i, line in enumerate(lines) if line.rstrip().endswith("# HERE"))
    return first + at


def all_cases():
    """Those with a wrong error are expected to fail, so that the mark goes away when they pass."""
    for name, (*parts, today) in CASES.items():
        marks = [pytest.mark.xfail(strict=True, reason=today)] if today else []
        yield pytest.param(*parts, id=name, marks=marks)


# Calls of Python in the step


@case(by_jax, "pure_callback: a call of Python during the step")
def numpy_callback(h, x):
    y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)  # HERE
    return h * y


@case(by_jax, "io_callback: a call of Python during the step")
def ordered_callback(h, x):
    jax.experimental.io_callback(print, None, h.sum(), ordered=True)  # HERE
    return h


@case(by_jax, "debug_callback: a call of Python during the step")
def callback_for_debugging(h, x):
    jax.debug.callback(print, h.sum())  # HERE
    return h


@case(by_jax, "debug_print: a call of Python during the step")
def print_for_debugging(h, x):
    jax.debug.print("{}", h.sum())  # HERE
    return h


class Linear(nn.Module):
    """What the modules begin with."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)


# Loops and branches that depend on the data


@case(by_jax, "while: a loop whose number of steps depends on the data")
def loop_until(h, x):
    return jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y * 0.9, h)  # HERE


@case(by_jax, "a loop of 200000 steps of 2 operations: its steps are unrolled")
def long_loop(h, x):
    return jax.lax.fori_loop(0, 200000, lambda i, y: y * 0.9, h)  # HERE


@case(by_torch, "looks at the data")
class Branch(Linear):
    def forward(self, x):
        h = self.first(x)
        if h.sum() > 0:  # HERE
            return h
        return -h


@case(by_torch, "looks at the data")
class Loop(Linear):
    def forward(self, x):
        h = self.first(x)
        while h.sum() > 1:  # HERE
            h = h / 2
        return h


@case(by_jax, "bool")
def branch(h, x):
    if h.sum() > 0:  # HERE
        return h
    return -h


@case(by_jax, "bool")
def python_loop(h, x):
    while h.sum() > 1:  # HERE
        h = h / 2
    return h


@case(by_jax, "index|integer")
def python_range(h, x):
    for _ in range(jnp.argmax(x.sum(0))):  # HERE
        h = 2 * h
    return h


@case(by_torch, "cond: MTC has nothing for it")
class Conditional(Linear):
    def forward(self, x):
        h = self.first(x)
        return torch.cond(h.sum() > 0, lambda y: 2 * y, lambda y: y - 1, (h,))  # HERE


# Numbers of the data in Python


@case(by_torch, "item: ")
class Item(Linear):
    def forward(self, x):
        scale = x.mean().item()  # HERE
        return self.first(x) * scale


@case(by_torch, "item: ")
class ToList(Linear):
    def forward(self, x):
        scales = x.mean(0).tolist()  # HERE
        return self.first(x) * scales[0]


@case(by_torch, "numpy")
class ToNumPy(Linear):
    def forward(self, x):
        scale = float(x.numpy().mean())  # HERE
        return self.first(x) * scale


@case(by_torch, "numpy")
class AsArray(Linear):
    def forward(self, x):
        y = torch.from_numpy(np.sin(np.asarray(x)))  # HERE
        return self.first(x) * y


@case(by_jax, "float")
def python_float(h, x):
    return h * float(x.mean())  # HERE


@case(by_jax, "item")
def item(h, x):
    return h * x.mean().item()  # HERE


@case(by_jax, "tolist")
def to_list(h, x):
    return h * x.mean(0).tolist()[0]  # HERE


@case(by_jax, "__array__|NumPy")
def as_array(h, x):
    return h * np.asarray(x).mean()  # HERE


@case(by_jax, "__array__|NumPy")
def function_of_numpy(h, x):
    return h * np.sin(x)  # HERE


# Shapes that depend on the data


@case(by_torch, "_unique2: ")
class Unique(Linear):
    def forward(self, x):
        return self.first(x) * torch.unique(x).mean()  # HERE


@case(by_torch, "nonzero")
class NonZero(Linear):
    def forward(self, x):
        rows = torch.nonzero(x[:, 0] > 0)[:, 0]  # HERE
        return self.first(x)[rows]


@case(by_torch, "a module that returns as many rows as a mask is true for")
class MaskedSelect(Linear):
    def forward(self, x):
        return torch.masked_select(self.first(x), x > 0)  # HERE


@case(by_torch, "return all rows, and select them in the loss")
class BooleanIndex(Linear):
    def forward(self, x):
        return self.first(x)[x > 0]  # HERE


@case(by_torch, "repeat_interleave")
class Repeats(Linear):
    def forward(self, x):
        return torch.repeat_interleave(self.first(x), x[:, 0].long().abs(), dim=0)  # HERE


@case(by_jax, "nonzero")
def nonzero(h, x):
    return h[jnp.nonzero(x[:, 0] > 0)[0]]  # HERE


@case(by_jax, "[Bb]oolean")
def boolean_index(h, x):
    return h[x > 0]  # HERE


@case(by_jax, "unique")
def unique(h, x):
    return h * jnp.unique(x).mean()  # HERE


# The order of the samples


@case(by_jax, "sort: the order of the samples")
def sorted_samples(h, x):
    return jnp.sort(h, axis=0)  # HERE


@case(by_torch, "sort: the order of the samples")
class SortedSamples(Linear):
    def forward(self, x):
        return torch.sort(self.first(x), 0).values  # HERE


@case(by_torch, "argsort: the order of the samples")
class OrderedSamples(Linear):
    def forward(self, x):
        order = x[:, 0].argsort()  # HERE
        return self.first(x)[order]


@case(by_torch, "randperm: random numbers of this kind")
class ShuffledSamples(Linear):
    def forward(self, x):
        order = torch.randperm(x.shape[0])  # HERE
        return self.first(x) * x[order]


@case(by_keras, "sort: the order of the samples")
class KerasSortedSamples(keras.layers.Layer):
    def call(self, x):
        return keras.ops.sort(x, axis=0)  # HERE


# Operations that mix samples


@case(by_jax, "no multiple of the number of samples")
def reversed_samples(h, x):
    return h * h[::-1]  # HERE


@case(by_torch, "flip: a part of the samples")
class ReversedSamples(Linear):
    def forward(self, x):
        h = self.first(x)
        return h * h.flip(0)  # HERE


@case(by_jax, "a part of the samples of a batch")
def rolled_samples(h, x):
    return h * jnp.roll(h, 1, 0)  # HERE


@case(by_torch, "roll: a roll of the samples")
class RolledSamples(Linear):
    def forward(self, x):
        h = self.first(x)
        return h * h.roll(1, 0)  # HERE


@case(by_keras, "a part of the samples of a batch")
class KerasRolledSamples(keras.layers.Layer):
    def call(self, x):
        return x * keras.ops.roll(x, 1, axis=0)  # HERE


@case(by_jax, "reshape: a reshape to \[b, 4\] that mixes samples")
def mixed_samples(h, x):
    return h.T.reshape(-1, 4)  # HERE


@case(by_torch, "mixes samples", "Constraints violated (batch), without the line")
class MixedSamples(Linear):
    def forward(self, x):
        return self.first(x).t().reshape(-1, 4)  # HERE


@case(by_jax, "evenly|mixes samples")
def pairs_of_samples(h, x):
    return h.reshape(-1, 2, 4).sum(1)  # HERE


@case(by_jax, "dot_general: a product of every sample with every other")
def all_pairs(h, x):
    return jax.nn.softmax(h @ h.T)  # HERE


@case(by_jax, "dot_general: a product of every sample with every other")
def contrastive_loss(h, x):
    """InfoNCE: each sample's two views against those of all others."""
    a, b = (z / jnp.sqrt((z * z).sum(-1, keepdims=True)) for z in (h, h * x))
    logits = a @ b.T / 0.1  # HERE
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.arange(logits.shape[0])[:, None], 1)
    return -picked.mean()


@case(by_torch, "matmul: a product of every sample with every other")
class ContrastiveLoss(Linear):
    def forward(self, x):
        a, b = self.first(x), self.first(-x)
        logits = a @ b.t() / 0.1  # HERE
        return nn.functional.cross_entropy(logits, torch.arange(x.shape[0]))


@case(by_torch, "matmul: a product of every sample with every other")
class AllPairs(Linear):
    def forward(self, x):
        h = self.first(x)
        return torch.softmax(h @ h.t(), -1)  # HERE


@case(by_jax, "reduce_max: a maximum over the batch")
def largest_of_samples(h, x):
    return h / jnp.max(h, axis=0)  # HERE


@case(by_torch, "max: a maximum over the batch")
class LargestOfSamples(Linear):
    def forward(self, x):
        h = self.first(x)
        return h / h.max(0).values  # HERE


@case(by_jax, "cumsum: a cumulative sum along the batch")
def sums_of_samples(h, x):
    return jnp.cumsum(h, axis=0)  # HERE


@case(by_torch, "cumsum: a cumulative sum along the batch")
class SumsOfSamples(Linear):
    def forward(self, x):
        return self.first(x).cumsum(0)  # HERE


@case(by_jax, "concatenate: .* a concatenation along the batch axis")
def joined_samples(h, x):
    return jnp.concatenate([h, jnp.ones((1, h.shape[1]))])  # HERE


@case(by_jax, "dynamic_slice: a part of the samples of a batch")
def first_sample(h, x):
    return h - h[0]  # HERE


@case(by_torch, "select: one sample of a batch")
class FirstSample(Linear):
    def forward(self, x):
        h = self.first(x)
        return h - h[0]  # HERE


@case(by_torch, "slice: a part of the samples of a batch")
class FirstSamples(Linear):
    def forward(self, x):
        return self.first(x)[:2]  # HERE


@case(by_jax, "no multiple of the number of samples")
def neighbours(h, x):
    return h[1:] * x[1:]  # HERE


@case(by_torch, "the samples of a batch", "Constraints violated (batch), without the line")
class Neighbours(Linear):
    def forward(self, x):
        return self.first(x)[1:] * x[:-1]  # HERE


@case(by_torch, "number of samples|any size", "Constraints violated (batch), without the line")
class NumberOfSamples(Linear):
    def forward(self, x):
        return self.first(x).sum(0) / len(x)  # HERE


# Elements of other types


@case(by_jax, "sin: complex numbers, which it takes in no program here")
def complex_numbers(h, x):
    y = jax.lax.complex(h, x)
    return jnp.sin(y).real  # HERE


@case(by_jax, "fft: a Fourier transform over the samples")
def fourier(h, x):
    return jnp.fft.fft(h.T).real  # HERE


@case(by_torch, "sin: complex numbers, which it takes in no program here")
class ComplexNumbers(Linear):
    def forward(self, x):
        h = self.first(x).to(torch.complex64)
        return h.sin().real  # HERE


@case(by_torch, "_fft_r2c: a Fourier transform of length 521, which has no factor from 2 to 32")
class Fourier(Linear):
    def forward(self, x):
        return torch.fft.fft(self.first(x), n=521).real  # HERE


@case(by_torch, "add: integers of more than 32 bits, such as 1099511627776")
class LargeIntegers(Linear):
    def forward(self, x):
        large = x.long() + 2**40  # HERE
        return self.first(x) * large


@case(by_jax, "int32|32 bits")
def large_integers(h, x):
    return h * (x.astype(jnp.int32) + 2**40)  # HERE


@case(by_torch, "half|float16")
class HalfPrecision(Linear):
    def forward(self, x):
        return self.first(x).half() * 2  # HERE


# Changes of arrays that outlive the step

KEPT = torch.zeros(4)


@case(by_torch, "changes no array of the caller's, found x changed")
class ChangedInput(Linear):
    def forward(self, x):
        x.add_(1)  # HERE
        return self.first(x)


@case(by_torch, "mutated|chang", "no line: Constant module.lifted_tensor_0 is mutated in the forward method.")
class ChangedGlobal(Linear):
    def forward(self, x):
        h = self.first(x)
        KEPT.copy_(h.detach().mean(0))  # HERE
        return h + KEPT


@case(by_jax, "immutable")
def changed_elements(h, x):
    h[:, 0] = 0.0  # HERE
    return h


# Other operations


@case(by_jax, "random numbers of a key that does not change")
def fixed_key(h, x):
    return h + jax.random.normal(jax.random.key(0), h.shape)  # HERE


@case(by_jax, "products at places that depend on the data")
def scattered(h, x):
    place = jnp.argmax(x, -1)
    return h.at[jnp.arange(h.shape[0]), place].multiply(2.0)  # HERE


@case(by_jax, "eig: complex numbers, which it takes in no program here")
def eigenvalues(h, x):
    return jnp.linalg.eigvals(jnp.eye(4) + h[:, :, None] * x[:, None, :]).real  # HERE


@case(by_torch, "poisson: MTC has nothing for it")
class Poisson(Linear):
    def forward(self, x):
        return self.first(x) * torch.poisson(x.abs())  # HERE


@case(by_keras, 'bessel_i0e: mtc.jax does not have this primitive \\(in "odd"\\)')
class KerasBessel(keras.layers.Layer):
    def call(self, x):
        return jax.lax.bessel_i0e(x)  # HERE


@case(by_keras, "bool")
class KerasBranch(keras.layers.Layer):
    def call(self, x):
        if keras.ops.sum(x) > 0:  # HERE
            return x
        return -x


@case(by_keras, "array|numpy")
class KerasToNumPy(keras.layers.Layer):
    def call(self, x):
        return x * keras.ops.convert_to_numpy(x).mean()  # HERE


# Where the code is not in a module's forward method


@case(by_torch, "i0: MTC has nothing for it")
class InTheLoss(Linear):
    def forward(self, x):
        return self.first(x)

    @staticmethod
    def loss(y, _):
        return torch.special.i0(y).mean()  # HERE


@case(by_torch, "i0: MTC has nothing for it", "the line of the call in forward")
class InAFunction(Linear):
    def products(self, x):
        return torch.special.i0(x)  # HERE

    def forward(self, x):
        return self.products(self.first(x))


@pytest.mark.parametrize("compiler, code, reason", all_cases())
def test_refused(compiler, code, reason):
    line = marked_line(code)
    with pytest.raises(mtc.ModelError) as found:
        compiler(code)
    text = str(found.value)
    assert re.search(rf'{re.escape(__file__)}(:|", line ){line}\b', text), text
    assert re.search(reason, text), text


def test_layers_of_pytorch_have_their_names():
    """In a Sequential the user has no line for a layer."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Softmax(0))
    with pytest.raises(mtc.ModelError, match="softmax: an operation along the batch"):
        mtc.torch.compile(module, (torch.tensor(ROWS), torch.zeros(6)), loss=lambda y, _: y.mean(), verbose=0)


def test_one_error_has_all_lines():
    def function(h, x):
        y = jax.lax.bessel_i0e(h)
        jax.debug.print("{}", h.sum())
        return y + jnp.sort(x, axis=0)

    with pytest.raises(mtc.ModelError) as found:
        by_jax(function)
    first = function.__code__.co_firstlineno
    assert [int(line.split(":")[1]) for line in str(found.value).splitlines()] == [first + 1, first + 2, first + 3]


@pytest.mark.parametrize("name, data", [
    ("m.mlir", b'mt.model @m {\n  %x = mt.input "\xff\xfe\x00" : tensor<?x2xf32>\n  %y = mt.nonesuch %x\n}\n'),
    ("m.json", b'{"class_name": "Functional", "config": {"name": "\xff\x00"}}'),
    ("m.onnx", b"\x08\x08\x12\x04\xff\xfe\x00\x1b:\x00")])
def test_a_text_that_is_not_utf8(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(mtc.ModelError) as caught:
        mtc.compile(tmp_path / name, verbose=0)
    text = str(caught.value)
    assert name in text and all(c.isprintable() or c == "\n" for c in text)
