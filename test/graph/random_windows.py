# SPDX-License-Identifier: Apache-2.0
"""Random convolutions, pools and gradients of them, of the dialect graph."""
import numpy as np
from graphs import B, Graph, Size


class Windows(Graph):
    """The operations of a random model that have windows. Each returns nothing where it finds no operands."""

    def images(self):
        return self.pick(accept=lambda v: v.rank in (3, 4) and str(v.sizes[0]) == "b" and len(v.batches()) == 1)

    def windows(self, count):
        strides, spread = ([self.random.randint(1, 2) for _ in range(count)] for _ in range(2))
        return strides, spread, [self.random.choice([0, 0, 1, 2, -1]) for _ in range(2 * count)]

    def patches(self, x, taps, strides, pads, spread, fill):
        """[b, C, out..., taps...]"""
        for i in range(len(taps)):
            size = x.shape[2 + i]
            low, high = pads[2 * i:2 * i + 2]
            widths = [(0, 0)] * x.ndim
            widths[2 + i] = (max(low, 0), max(high, 0))
            x = np.pad(x, widths, constant_values=fill)
            x = x.take(range(max(-low, 0), size + max(low, 0) + max(high, 0) - max(-high, 0)), 2 + i)
        outs = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], taps, strides, spread)]
        if any(n < 1 for n in outs):
            return None
        places = np.ix_(*(np.arange(o) * s for o, s in zip(outs, strides)))
        made = np.zeros((*x.shape[:2], *outs, *taps))
        for tap in np.ndindex(*taps):
            index = tuple(p + t * d for p, t, d in zip(places, tap, spread))
            made[(..., *tap)] = x[(slice(None), slice(None), *index)]
        return made

    def spaced(self, x):
        """Numbers of zeros between the elements of images, and the images with them."""
        spread = [self.random.choice([1, 1, 1, 2, 3]) for _ in range(x.ndim - 2)]
        made = np.zeros([*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], spread))])
        made[(..., *(slice(None, None, s) for s in spread))] = x
        return spread, made

    def convolution(self):
        x = self.images()
        if x is None:
            return
        count, channels = x.rank - 2, x.sizes[1].times
        groups = self.random.choice([g for g in (1, 2) if channels % g == 0])
        taps = [self.random.randint(1, 3) for _ in range(count)]
        strides, dilation, pads = self.windows(count)
        if self.random.random() < 0.5:
            strides = [1] * count
        spread, spaced = self.spaced(x.array)
        w = self.variable((groups * 2, channels // groups, *taps))
        if self.random.random() < 0.5:
            axes = list(range(2, 2 + count))
            w = self.op(f"reverse {{0}} over {axes}", [w], w.sizes, np.flip(w.array, axes))
        patches = self.patches(spaced, taps, strides, pads, dilation, 0)
        if patches is None:
            return
        shape = patches.shape
        grouped = patches.reshape(shape[0], groups, channels // groups, *shape[2:])
        kernel = w.array.reshape(groups, 2, channels // groups, *taps)
        out = "ij"[:count]
        made = np.einsum(f"bgc{out}{'kl'[:count]},gfc{'kl'[:count]}->bgf{out}", grouped, kernel)
        made = made.reshape(shape[0], groups * 2, *shape[2:2 + count])
        self.op(f"convolution {{0}}, {{1}} strides {strides} padding {pads} dilation {dilation} spread {spread} "
                f"groups = {groups}", [x, w], [B, Size(groups * 2), *map(Size, made.shape[2:])], made)

    def kernel_gradient(self):
        x = self.images()
        dy = self.pick(accept=lambda v: x and v.rank == x.rank and str(v.sizes[0]) == "b" and len(v.batches()) == 1)
        if dy is None:
            return
        order = [1, 0, *range(2, x.rank)]
        x, dy = (self.op(f"transpose {{0}} by {order}", [v], [v.sizes[i] for i in order], v.array.transpose(order))
                 for v in (x, dy))
        if x is None or dy is None:
            return
        strides, dilation, pads = self.windows(x.rank - 2)
        spread, spaced = self.spaced(x.array)
        channels, filters = x.sizes[0].times, dy.sizes[0].times
        groups = self.random.choice([g for g in (1, 2) if channels % g == 0 and filters % g == 0])
        patches = self.patches(spaced, dy.array.shape[2:], strides, pads, dilation, 0)
        if patches is None:
            return
        out, taps = "ij"[:x.rank - 2], "kl"[:x.rank - 2]
        made = np.einsum(f"gcb{out}{taps},gfb{taps}->cgf{out}",
                         patches.reshape(groups, channels // groups, *patches.shape[1:]),
                         dy.array.reshape(groups, filters // groups, *dy.array.shape[1:]))
        made = made.reshape(channels // groups, filters, *patches.shape[2:x.rank])
        self.op(f"convolution {{0}}, {{1}} strides {strides} padding {pads} dilation {dilation} spread {spread} "
                f"sample_groups = {groups}", [x, dy], map(Size, made.shape), made)

    def pool_gradient(self):
        pooled = self.pooled(-np.inf)
        if pooled is None:
            return
        x, window, strides, pads, patches = pooled
        count = x.rank - 2
        out = patches.shape[2:2 + count]
        dy = self.input([x.sizes[1].times, *out])
        made = np.zeros(x.array.shape)
        for index in np.ndindex(*patches.shape[:2 + count]):
            tap = np.unravel_index(patches[index].argmax(), tuple(window))
            place = [o * s + t - low for o, s, t, low in zip(index[2:], strides, tap, pads[::2])]
            made[(*index[:2], *place)] += dy.array[index]
        self.op(f"pool_gradient {{0}} at {{1}} window {window} strides {strides} padding {pads}", [dy, x], x.sizes,
                made)

    def sum_gradient(self):
        """Of a sum of windows: a sum of what zeros were put between."""
        x = self.images()
        if x is None:
            return
        spread, spaced = self.spaced(x.array)
        low, high = ([self.random.choice([0, 1, 2, -1]) for _ in spread] for _ in range(2))
        shape = [n + a + b for n, a, b in zip(spaced.shape[2:], low, high)]
        if any(n < 1 for n in shape):
            return
        for i, (a, b) in enumerate(zip(low, high)):
            widths = [(0, 0)] * x.rank
            widths[2 + i] = (max(a, 0), max(b, 0))
            spaced = np.pad(spaced, widths).take(range(max(-a, 0), max(-a, 0) + shape[i]), 2 + i)
        wide = self.op(f"pad {{0}} low {[0, 0, *low]} high {[0, 0, *high]} interior {[0, 0, *(n - 1 for n in spread)]}",
                       [x], [*x.sizes[:2], *map(Size, shape)], spaced)
        window = [self.random.randint(1, 3) for _ in spread]
        pads = [self.random.choice([0, 0, 1, 2, -1]) for _ in range(2 * len(spread))]
        patches = wide and self.patches(spaced, window, [1] * len(spread), pads, [1] * len(spread), 0)
        if patches is not None:
            made = patches.sum(tuple(range(-len(spread), 0)))
            self.op(f"pool sum, {{0}} window {window} padding {pads}", [wide],
                    [*x.sizes[:2], *map(Size, made.shape[2:])], made)

    def pooled(self, fill):
        """Images and windows of a pool, whose padding is `fill`; None where a window has padding alone."""
        x = self.images()
        if x is None:
            return None
        count = x.rank - 2
        window = [self.random.randint(1, 3) for _ in range(count)]
        strides, _, pads = self.windows(count)
        patches = self.patches(x.array, window, strides, pads, [1] * count, fill)
        if patches is None or not np.isfinite(patches.max(tuple(range(-count, 0)))).all():
            return None
        return x, window, strides, pads, patches

    def pool(self):
        kind = self.random.choice(["sum", "max"])
        pooled = self.pooled(0 if kind == "sum" else -np.inf)
        if pooled is None:
            return
        x, window, strides, pads, patches = pooled
        made = (np.sum if kind == "sum" else np.max)(patches, tuple(range(2 - x.rank, 0)))
        self.op(f"pool {kind}, {{0}} window {window} strides {strides} padding {pads}", [x],
                [B, x.sizes[1], *map(Size, made.shape[2:])], made)
