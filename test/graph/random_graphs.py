# SPDX-License-Identifier: Apache-2.0
"""Random operations of the dialect graph."""
import numpy as np
from graphs import SAMPLES, SIZES, B, Size
from random_windows import Windows


class Model(Windows):
    """A random model."""

    def build(self):
        for _ in range(3):
            self.input([self.random.choice(SIZES) for _ in range(self.random.randint(0, 3))])
        self.input([self.random.choice(SIZES) for _ in range(self.random.randint(0, 2))], "i32")
        for _ in range(2):
            self.variable([self.random.choice(SIZES) for _ in range(self.random.randint(1, 3))])
        self.constant([self.random.choice(SIZES) for _ in range(self.random.randint(0, 3))])
        ops = [self.unary, self.binary, self.binary, self.select, self.transpose, self.transpose, self.reshape,
               self.reshape, self.reshape, self.broadcast, self.reduce, self.reduce, self.along, self.product,
               self.product, self.product, self.slice, self.pad, self.concat, self.reverse, self.take, self.rows,
               self.sort, self.take_along,
               self.hot, self.entropy, self.convolution, self.kernel_gradient, self.pool, self.pool_gradient,
               self.sum_gradient]
        for _ in range(40):
            self.random.choice(ops)()

    # Operations. Each returns nothing where it finds no operands.

    def unary(self):
        v = self.pick()
        name, of = self.random.choice([("neg", np.negative), ("tanh", np.tanh), ("abs", np.abs),
                                       ("sigmoid", lambda a: 1 / (1 + np.exp(-a)))])
        return self.op(f'elementwise "{name}"({{0}})', [v], v.sizes, of(v.array))

    def binary(self):
        a = self.pick()

        def fits(b):
            pairs = list(zip(reversed(a.sizes), reversed(b.sizes)))
            return all(x.same(y) or str(x) == "1" or str(y) == "1" for x, y in pairs)
        b = self.pick(accept=fits)
        if b is None:
            return
        rank = max(a.rank, b.rank)
        left, right = ([Size(1)] * (rank - v.rank) + v.sizes for v in (a, b))
        sizes = [y if str(x) == "1" else x for x, y in zip(left, right)]
        name, of = self.random.choice([("add", np.add), ("mul", np.multiply), ("maximum", np.maximum)])
        apart = np.abs(a.array - b.array).min() > 1e-6  # functions have roundings of their own
        if apart and self.random.random() < 0.4:
            self.op('elementwise "compare"({0}, {1}) {{kind = #mt<compare_kind lt>}}', [a, b], sizes,
                    a.array < b.array, "i1")
        return self.op(f'elementwise "{name}"({{0}}, {{1}})', [a, b], sizes, of(a.array, b.array))

    def select(self):
        c = self.pick("i1")
        if c is None:
            return
        a = self.pick(accept=lambda v: v.rank == c.rank and all(x.same(y) for x, y in zip(v.sizes, c.sizes)))
        b = self.constant(())
        if a is not None:
            self.op('elementwise "select"({0}, {1}, {2})', [c, a, b], a.sizes, np.where(c.array, a.array, b.array))

    def transpose(self):
        v = self.pick(self.random.choice(["f32", "f32", "i32"]))
        if v is None:
            return
        order = self.random.sample(range(v.rank), v.rank)
        self.op(f"transpose {{0}} by {order}", [v], [v.sizes[i] for i in order], v.array.transpose(order), v.element)

    def reshape(self):
        v = self.pick(self.random.choice(["f32", "f32", "f32", "i32"]))
        if v is None:
            return
        sizes = list(v.sizes)
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["merge", "split", "one", "less"])
            if kind == "one":
                sizes.insert(self.random.randint(0, len(sizes)), Size(1))
            if kind == "less":
                ones = [i for i, s in enumerate(sizes) if str(s) == "1"]
                if ones:
                    del sizes[self.random.choice(ones)]
            if kind == "merge" and len(sizes) > 1:
                i = self.random.randrange(len(sizes) - 1)
                a, b = sizes[i:i + 2]
                if not (a.batch and b.batch):
                    before = a.before if a.batch else a.times * b.before if b.batch else 1
                    sizes[i:i + 2] = [Size(a.times * b.times, a.batch or b.batch, before)]
            if kind == "split" and sizes:
                i = self.random.randrange(len(sizes))
                s = sizes[i]
                if s.batch:
                    made = [Size(s.before), B, Size(s.times // s.before)]
                    if self.random.random() < 0.5:
                        made = [Size(s.before), Size(s.times // s.before, True)]
                else:
                    factor = self.random.choice([n for n in range(1, s.times + 1) if s.times % n == 0])
                    made = [Size(factor), Size(s.times // factor)]
                sizes[i:i + 1] = made
        self.op("reshape {0}", [v], sizes, v.array.reshape([s.number() for s in sizes]), v.element)

    def broadcast(self):
        v = self.pick()
        sizes, dims = [], []
        for i, s in enumerate(v.sizes):
            while self.random.random() < 0.25:
                batch = not v.batches() and not any(x.batch for x in sizes)
                sizes.append(B if batch and self.random.random() < 0.4 else Size(self.random.choice(SIZES)))
            dims.append(len(sizes))
            sizes.append(Size(self.random.choice(SIZES)) if str(s) == "1" and self.random.random() < 0.5 else s)
        wide = v.array.reshape([v.array.shape[dims.index(i)] if i in dims else 1 for i in range(len(sizes))])
        self.op(f"broadcast {{0}} dims {dims}", [v], sizes, np.broadcast_to(wide, [s.number() for s in sizes]))

    def reduce(self):
        v = self.pick(self.random.choice(["f32", "f32", "i32"]))
        if v is None:
            return
        axes = sorted(self.random.sample(range(v.rank), self.random.randint(0, min(v.rank, 2))))
        kind, of = self.random.choice([("sum", np.sum), ("max", np.max), ("min", np.min)])
        batch = [i for i in axes if v.sizes[i].batch]
        if len(batch) == 1 and len(v.batches()) == 1 and self.random.random() < 0.5:
            i = batch[0]
            s = v.sizes[i]
            shape = v.array.shape
            apart = v.array.reshape(shape[:i] + (s.before, SAMPLES, s.times // s.before) + shape[i + 1:])
            places = [j + 2 * (j > i) for j in axes if j != i] + [i, i + 2]
            made = of(np.moveaxis(apart, i + 1, 0), tuple(p + 1 if p < i + 1 else p for p in places))
            return self.op(f"reduce {kind}, {{0}} over {axes} within_samples", [v],
                           [B, *(s for j, s in enumerate(v.sizes) if j not in axes)], made, v.element)
        if batch:
            kind, of = "sum", np.sum
        made = of(v.array, tuple(axes)) if axes else v.array
        self.op(f"reduce {kind}, {{0}} over {axes}", [v], [s for i, s in enumerate(v.sizes) if i not in axes],
                made, v.element)

    def along(self):
        v = self.pick(accept=lambda v: any(not s.batch for s in v.sizes))
        axis = self.random.choice([i for i, s in enumerate(v.sizes) if not s.batch])
        powers = np.exp(v.array - v.array.max(axis, keepdims=True))
        kind = self.random.choice(["softmax", "log_softmax", "argmax", "cumsum", "normalize"])
        if kind == "argmax":
            sizes = [s for i, s in enumerate(v.sizes) if i != axis]
            return self.op(f'along "argmax"({{0}}) dim = {axis}', [v], sizes, v.array.argmax(axis), "i32")
        if kind == "cumsum":
            back = self.random.random() < 0.5
            made = np.flip(np.cumsum(np.flip(v.array, axis), axis), axis) if back else np.cumsum(v.array, axis)
            return self.op(f"cumsum {{0}} dim = {axis}{' reverse' * back}", [v], v.sizes, made)
        if kind == "normalize":
            axes = sorted({axis, *self.random.sample([i for i, s in enumerate(v.sizes) if not s.batch], 1)})
            centred = v.array - v.array.mean(tuple(axes), keepdims=True)
            made = centred / np.sqrt((centred**2).mean(tuple(axes), keepdims=True) + 0.5)
            return self.op(f"normalize {{0}} over {axes} epsilon = 5.0e-1", [v], v.sizes, made)
        made = powers / powers.sum(axis, keepdims=True)
        self.op(f'along "{kind}"({{0}}) dim = {axis}', [v], v.sizes, np.log(made) if kind != "softmax" else made)

    def product(self):
        a = self.pick()
        b = self.pick()
        pairs, left, right = [], list(range(a.rank)), list(range(b.rank))
        for _ in range(self.random.randint(0, 3)):
            same = [(i, j) for i in left for j in right if a.sizes[i].same(b.sizes[j])]
            if same:
                i, j = self.random.choice(same)
                left.remove(i)
                right.remove(j)
                pairs.append((i, j))
        both = [(i, j) for i, j in pairs if self.random.random() < 0.5]
        summed = [p for p in pairs if p not in both]
        letters = "abcdefghijklmnopqrstuvwxyz"
        one, two = list(letters[:a.rank]), list(letters[a.rank:a.rank + b.rank])
        for i, j in pairs:
            two[j] = one[i]
        result = [one[i] for i, _ in both] + [one[i] for i in left] + [two[j] for j in right]
        made = np.einsum(f"{''.join(one)},{''.join(two)}->{''.join(result)}", a.array, b.array)
        sizes = [a.sizes[i] for i, _ in both] + [a.sizes[i] for i in left] + [b.sizes[j] for j in right]
        common = f" common {[i for i, _ in both]} x {[j for _, j in both]}" if both else ""
        self.op(f"dot_general {{0}}, {{1}} contract {[i for i, _ in summed]} x {[j for _, j in summed]}{common}",
                [a, b], sizes, made)

    def slice(self):
        v = self.pick(self.random.choice(["f32", "f32", "i32"]), lambda v: v.rank)
        if v is None:
            return
        starts, strides, sizes, places = [], [], [], []
        for s in v.sizes:
            start = 0 if s.batch else self.random.randrange(s.times)
            stride = 1 if s.batch else self.random.randint(1, 2)
            most = 1 if s.batch else (s.times - 1 - start) // stride + 1
            size = s if s.batch else Size(self.random.randint(1, most))
            starts.append(start)
            strides.append(stride)
            sizes.append(size)
            places.append(slice(None) if s.batch else slice(start, start + (size.times - 1) * stride + 1, stride))
        self.op(f"slice {{0}} starts {starts} strides {strides}", [v], sizes, v.array[tuple(places)], v.element)

    def pad(self):
        v = self.pick(accept=lambda v: v.rank)
        low, high, inner = ([0 if s.batch else self.random.choice([0, 0, 1, 2, -1]) for s in v.sizes] for _ in range(3))
        inner = [max(n, 0) for n in inner]
        sizes = [s if s.batch else Size(s.times + a + b + (s.times - 1) * n)
                 for s, a, b, n in zip(v.sizes, low, high, inner)]
        if any(s.times < 1 for s in sizes):
            return
        wide = [s.number() + (0 if s.batch else (s.times - 1) * n) for s, n in zip(v.sizes, inner)]
        full = np.full([n + max(a, 0) + max(b, 0) for n, a, b in zip(wide, low, high)], 0.5)
        full[tuple(slice(max(a, 0), max(a, 0) + n, k + 1) for n, a, k in zip(wide, low, inner))] = v.array
        cut = full[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(full.shape, low, high))]
        self.op(f"pad {{0}} value = 5.0e-1 low {low} high {high} interior {inner}", [v], sizes, cut)

    def concat(self):
        a = self.pick(accept=lambda v: any(not s.batch for s in v.sizes))
        axis = self.random.choice([i for i, s in enumerate(a.sizes) if not s.batch])

        def fits(b):
            return b.rank == a.rank and not b.sizes[axis].batch and all(
                x.same(y) for i, (x, y) in enumerate(zip(a.sizes, b.sizes)) if i != axis)
        parts = [a, *(self.pick(accept=fits) for _ in range(self.random.randint(1, 2)))]
        sizes = list(a.sizes)
        sizes[axis] = Size(sum(p.sizes[axis].times for p in parts))
        names = ", ".join(f"{{{i}}}" for i in range(len(parts)))
        self.op(f"concat {names} dim = {axis}", parts, sizes, np.concatenate([p.array for p in parts], axis))

    def reverse(self):
        v = self.pick(accept=lambda v: any(not s.batch for s in v.sizes))
        axis = self.random.choice([i for i, s in enumerate(v.sizes) if not s.batch])
        self.op(f"reverse {{0}} over [{axis}]", [v], v.sizes, np.flip(v.array, axis))

    def take(self):
        v = self.pick(accept=lambda v: any(not s.batch for s in v.sizes))
        axis = self.random.choice([i for i, s in enumerate(v.sizes) if not s.batch])
        if self.random.random() < 0.5:
            ids = self.pick("i32")
        else:
            ids = self.constant(self.random.choice([(), (1,), (4,), (2, 2)]), "i32")
        if ids is None:
            return
        places = np.clip(ids.array, 0, v.sizes[axis].times - 1)
        own = axis > 0 and ids.rank and str(v.sizes[0]) == "b" and str(ids.sizes[0]) == "b"
        if own:
            made = np.stack([np.take(x, p, axis - 1) for x, p in zip(v.array, places)])
        else:
            made = np.take(v.array, places, axis)
        sizes = [*v.sizes[:axis], *ids.sizes[bool(own):], *v.sizes[axis + 1:]]
        self.op(f"take {{0}}, {{1}} dim = {axis}", [v, ids], sizes, made)

    def sort(self):
        v = self.pick(self.random.choice(["f32", "i32"]), lambda v: any(not s.batch for s in v.sizes))
        if v is None:
            return
        axis = self.random.choice([i for i, s in enumerate(v.sizes) if not s.batch])
        gaps = np.diff(np.sort(v.array, axis), axis=axis)
        if np.any((gaps > 0) & (gaps < 1e-5)):  # functions have roundings of their own
            return
        count, falling = self.random.randint(1, v.sizes[axis].times), self.random.random() < 0.5
        places = np.argsort(-v.array if falling else v.array, axis, kind="stable")
        sizes = [*v.sizes[:axis], Size(count), *v.sizes[axis + 1:]]
        self.op(f"sort {{0}} dim = {axis}{' descending' * falling}", [v], sizes, places.take(range(count), axis), "i32")

    def take_along(self):
        v = self.pick(accept=lambda v: any(not s.batch for s in v.sizes))
        axis = self.random.choice([i for i, s in enumerate(v.sizes) if not s.batch])

        def fits(ids):
            pairs = enumerate(zip(v.sizes, ids.sizes))
            return ids.rank == v.rank and all(not b.batch if i == axis else a.same(b) for i, (a, b) in pairs)
        ids = self.pick("i32", fits)
        if ids is None:
            return
        made = np.take_along_axis(v.array, np.clip(ids.array, 0, v.sizes[axis].times - 1), axis)
        self.op(f"take_along {{0}}, {{1}} dim = {axis}", [v, ids], ids.sizes, made)

    def rows(self):
        ids = self.pick("i32", lambda v: v.batches())
        if ids is None:
            return

        def fits(u):
            return u.rank >= ids.rank and all(x.same(y) for x, y in zip(u.sizes, ids.sizes))
        updates = self.pick(accept=fits)
        if updates is None or len(ids.batches()) > 1:
            return
        made = np.zeros((4, *updates.array.shape[ids.rank:]))
        np.add.at(made, np.clip(ids.array, 0, 3), updates.array)
        self.op("scatter_rows {0}, {1}", [ids, updates], [Size(4), *updates.sizes[ids.rank:]], made)

    def hot(self):
        ids = self.pick("i32")
        if ids is not None:
            self.op("one_hot {0}", [ids], [*ids.sizes, Size(4)], (ids.array[..., None] == np.arange(4)) * 1.0)

    def entropy(self):
        x = self.pick(accept=lambda v: v.rank > 1 and not v.sizes[-1].batch and v.batches())

        def fits(v):
            return v.rank == x.rank - 1 and all(a.same(b) for a, b in zip(v.sizes, x.sizes))
        ids = x and self.pick("i32", fits)
        if not ids or ids.array.max() >= x.sizes[-1].times or ids.array.min() < 0:
            return
        logs = x.array - np.log(np.exp(x.array).sum(-1, keepdims=True))
        self.op("cross_entropy {0}, {1}", [x, ids], ids.sizes,
                -np.take_along_axis(logs, ids.array[..., None], -1)[..., 0])
