# SPDX-License-Identifier: Apache-2.0
"""Text of the dialect graph, and what NumPy has for each of its values."""
import random
import re

import numpy as np

SAMPLES = 3
SIZES = (1, 2, 4, 5)


class Size:
    """`times`, or that many for each sample; of these `before` stand outside of the batch: 6*b = 2 x b x 3."""

    def __init__(self, times, batch=False, before=1):
        self.times, self.batch, self.before = times, batch, before

    def number(self):
        return self.times * (SAMPLES if self.batch else 1)

    def __str__(self):
        return str(self.times) if not self.batch else "b" if self.times == 1 else f"{self.times}*b"

    def same(self, other):
        return str(self) == str(other) and self.before == other.before


B = Size(1, True)


class Value:
    def __init__(self, name, sizes, array, element):
        sizes = list(sizes)
        self.name, self.sizes, self.array, self.element = name, sizes, array, element
        assert array.shape == tuple(s.number() for s in sizes), (array.shape, [str(s) for s in sizes])

    @property
    def rank(self):
        return len(self.sizes)

    @property
    def type(self):
        return f"!graph.value<[{', '.join(map(str, self.sizes))}], {self.element}>"

    def batches(self):
        return [i for i, s in enumerate(self.sizes) if s.batch]

    def flat(self):
        """Elements with the batch first."""
        batch = self.batches()
        if not batch:
            return np.broadcast_to(self.array, (SAMPLES, *self.array.shape)).reshape(-1)
        s = self.sizes[batch[0]]
        shape = [n for i, t in enumerate(self.sizes)
                 for n in ((s.before, SAMPLES, s.times // s.before) if i == batch[0] else (t.times,))]
        return np.moveaxis(self.array.reshape(shape), batch[0] + 1, 0).reshape(-1)


class Graph:
    """Lines of a model, and its values."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.lines, self.data, self.values, self.count = [], {}, [], 0

    # Values

    def line(self, text):
        self.lines.append(text)

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def tensor(self, op, shape, element, array, sizes):
        name, made = self.name(), self.name()
        kind = f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"
        self.line(f"{name}_t = {op} : {kind}" if "constant" not in op else f"{name}_t = {op}{kind}")
        value = Value(made, sizes, array, element)
        self.line(f"{made} = graph.logical {name}_t : {kind} -> {value.type}")
        self.values.append(value)
        return value

    def fractions(self, shape):
        """Numbers that f32 has exactly."""
        return self.numbers.integers(-96, 97, shape) / 64

    def input(self, sizes, element="f32"):
        shape = (SAMPLES, *sizes)
        array = self.numbers.integers(0, 5, shape) if element == "i32" else self.fractions(shape)
        key = f"x{self.count}"
        self.data["INPUT", key] = array.reshape(-1)
        return self.tensor(f'mt.input "{key}"', ("?", *sizes), element, array, [B, *map(Size, sizes)])

    def variable(self, sizes):
        array = self.fractions(sizes)
        key = f"w{self.count}"
        self.data["SET", key] = array.reshape(-1)
        return self.tensor(f'mt.variable "{key}" init(zeros) frozen', sizes, "f32", array, map(Size, sizes))

    def constant(self, sizes, element="f32", array=None):
        if array is None:
            array = self.numbers.integers(-1, 6, sizes) if element == "i32" else self.fractions(sizes)
        if self.random.random() < 0.2:
            array = np.broadcast_to(array.reshape(-1)[0], sizes)
        text = str(array.tolist()).replace("True", "true").replace("False", "false")
        return self.tensor(f"mt.constant dense<{text}> : ", sizes, element, array, map(Size, sizes))

    def op(self, text, operands, sizes, array, element="f32"):
        """`text` with {0} for the first operand."""
        sizes = list(sizes)
        if len(sizes) > 7 or any(s.times > 60 for s in sizes) or array.size > 5000:
            return None
        value = Value(self.name(), sizes, array, element)
        filled = text.format(*(o.name for o in operands))
        self.line(f"{value.name} = graph.{filled} : ({', '.join(o.type for o in operands)}) -> {value.type}")
        self.values.append(value)
        return value

    def pick(self, element="f32", accept=lambda v: True):
        found = [v for v in self.values if v.element == element and accept(v)]
        return self.random.choice(found[-12:] if self.random.random() < 0.7 else found) if found else None

    # The model

    def text(self, refused):
        """Without the lines that refused values are made in, and all that reads them."""
        gone, kept = set(refused), []
        for line in self.lines:
            name, _, rest = line.partition(" = ")
            if gone & set(re.findall(r"%v\d+", rest)):
                gone.add(name)
            if name not in gone:
                kept.append(line)
        outputs = []
        for v in self.values:
            if v.name in gone or len(v.batches()) > 1:
                continue
            outputs.append(v)
            name, sizes = v.name, v.sizes
            if v.element != "f32":
                made = Value(name, sizes, v.array, "f32").type
                kept.append(f'{name}_f = graph.elementwise "cast"({name}) : ({v.type}) -> {made}')
                name += "_f"
            v = Value(name, sizes, v.array, "f32")
            if not v.batches():
                wide = Value(f"{name}_b", [B, *sizes], np.broadcast_to(v.array, (SAMPLES, *v.array.shape)), "f32")
                kept.append(f"{name}_b = graph.broadcast {name} dims {list(range(1, v.rank + 1))} : ({v.type}) -> "
                            f"{wide.type}")
                v = wide
            flat = f"tensor<?x{v.array.size // SAMPLES}xf32>"
            kept.append(f"{v.name}_o = graph.tensor {v.name} : {v.type} -> {flat}")
            kept.append(f'mt.output "{outputs[-1].name[1:]}", {v.name}_o : {flat}')
        body = "\n".join("    " + line for line in kept)
        return ('module attributes {graph.version = 1 : i32} {\n  mt.model @m {\n'
                '    %y = mt.target "y" : tensor<?xf32>\n'
                f'{body}\n    mt.loss "loss", %y : tensor<?xf32>\n    mt.sgd <{{learning_rate = 1.0 : f32}}>\n'
                "  }\n}\n"), outputs
