#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GPT as MLIR text: GPT-2's architecture (Radford et al., 2019), any size.

    python3 examples/gpt.py > gpt2.mlir                                   # GPT-2 with 124M parameters
    python3 examples/gpt.py --layers 6 --width 384 --heads 6 --tokens 256 --vocabulary 128 --dropout 0.2 > small.mlir
    mtc compile small.mlir -o small.mtp --batch 16

A block is x + attention(normalised x), then x + dense(gelu(dense(normalised x))). The matrix of the logits is the table
of the embedding. The input is "text" [n, tokens], the target "next": for each token the one after it.
"""
import argparse


class Writer:
    """Lines of a mt.model. A value is its name without %."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.o = options
        self.lines: list[str] = []
        self.x = self.samples(options.width)

    def samples(self, width: int) -> str:
        return f"tensor<?x{self.o.tokens}x{width}xf32>"

    def emit(self, name: str, text: str) -> str:
        self.lines.append(f"  %{name} = {text}")
        return name

    def variable(self, name: str, path: str, init: str, *shape: int) -> str:
        marked = " no_weight_decay" if len(shape) == 1 else ""  # biases and factors of norms
        return self.emit(name, f'mt.variable "{path}" init({init}){marked} : tensor<{"x".join(map(str, shape))}xf32>')

    def norm(self, name: str, path: str, x: str) -> str:
        width = self.o.width
        gamma = self.variable(name + "_g", path + "/gamma", "ones", width)
        beta = self.variable(name + "_b", path + "/beta", "zeros", width)
        n = self.emit(name + "_n", f"mt.normalize %{x} over [2] epsilon = 1.0e-5 : {self.x}")
        s = self.emit(name + "_s", f"mt.mul %{n}, %{gamma} : {self.x}, tensor<{width}xf32>")
        return self.emit(name, f"mt.add %{s}, %{beta} : {self.x}, tensor<{width}xf32>")

    def dense(self, name: str, path: str, x: str, fan_in: int, fan_out: int, deviation: float = 0.02) -> str:
        kernel = self.variable(name + "_w", path + "/kernel", f"normal = {deviation:.6e}", fan_in, fan_out)
        bias = self.variable(name + "_c", path + "/bias", "zeros", fan_out)
        types = f"{self.samples(fan_in)}, tensor<{fan_in}x{fan_out}xf32>"
        p = self.emit(name + "_p", f"mt.matmul %{x}, %{kernel} : {types}")
        return self.emit(name, f"mt.add %{p}, %{bias} : {self.samples(fan_out)}, tensor<{fan_out}xf32>")

    def drop(self, name: str, x: str) -> str:
        if not self.o.dropout:
            return x
        return self.emit(name, f'mt.dropout %{x} "{name}" rate = {self.o.dropout} : {self.x}')

    def block(self, i: int, x: str) -> str:
        o, path = self.o, f"block{i}"
        deviation = 0.02 / (2 * o.layers) ** 0.5  # of what is added to the stream
        a = self.norm(f"a{i}", path + "/norm1", x)
        q, k, v = (self.dense(f"{n[0]}{i}", f"{path}/{n}", a, o.width, o.width) for n in ("query", "key", "value"))
        h = self.emit(f"h{i}", f"mt.attention %{q}, %{k}, %{v} heads = {o.heads} causal : {self.x}, {self.x}, {self.x}")
        p = self.drop(f"dp{i}", self.dense(f"p{i}", path + "/project", h, o.width, o.width, deviation))
        y = self.emit(f"y{i}", f"mt.add %{x}, %{p} : {self.x}, {self.x}")
        f = self.norm(f"f{i}", path + "/norm2", y)
        u = self.dense(f"u{i}", path + "/up", f, o.width, 4 * o.width)
        g = self.emit(f"g{i}", f"mt.gelu_tanh %{u} : {self.samples(4 * o.width)}")
        d = self.drop(f"dd{i}", self.dense(f"d{i}", path + "/down", g, 4 * o.width, o.width, deviation))
        return self.emit(f"x{i + 1}", f"mt.add %{y}, %{d} : {self.x}, {self.x}")

    def optimizer(self) -> None:
        """AdamW, with the schedule of Loshchilov and Hutter (2017): a line to the rate, half a cosine to a tenth."""
        o = self.o
        given, rate = f"learning_rate = {o.learning_rate:.6e} : f32, ", ""
        if o.steps:
            warmup = min(100, o.steps // 10)
            step = self.emit("step", "mt.iteration")
            rate = " rate(%" + self.emit(
                "rate", f"mt.cosine_decay %{step} <{{initial_learning_rate = 0.0 : f32, decay_steps = "
                f"{o.steps - warmup}.0 : f32, alpha = 1.0e-1 : f32, warmup_target = {o.learning_rate:.6e} : f32, "
                f"warmup_steps = {warmup}.0 : f32}}>") + ")"
            given = ""
        self.lines.append(f"  mt.adamw{rate} <{{{given}beta_2 = 9.9e-1 : f32, weight_decay = 1.0e-1 : f32}}>")

    def model(self) -> str:
        o = self.o
        ids, table = f"tensor<?x{o.tokens}xi32>", f"tensor<{o.vocabulary}x{o.width}xf32>"
        self.emit("text", f'mt.input "text" : {ids}')
        self.emit("next", f'mt.target "next" : {ids}')
        self.variable("table", "embedding/embeddings", "normal = 2.0e-2", o.vocabulary, o.width)
        self.variable("places", "positions/embeddings", "normal = 2.0e-2", o.tokens, o.width)
        self.emit("tokens", f"mt.gather %table, %text : {table}, {ids}")
        self.emit("x", f"mt.add %tokens, %places : {self.x}, tensor<{o.tokens}x{o.width}xf32>")
        x = self.drop("x0", "x")
        for i in range(o.layers):
            x = self.block(i, x)
        self.norm("z", "norm", x)
        logits = self.samples(o.vocabulary)
        self.emit("logits", f"mt.matmul %z, %table transpose_b : {self.x}, {table}")
        self.emit("loss", f"mt.sparse_categorical_crossentropy %logits, %next from_logits : {logits}, {ids}")
        self.lines.append(f'  mt.loss "loss", %loss : {ids.replace("i32", "f32")}')
        self.lines.append(f'  mt.output "logits", %logits : {logits}')
        self.optimizer()
        return "\n".join(["mt.model @gpt {", *self.lines, "}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, text in (("layers", 12, "blocks"), ("width", 768, "elements of a token"),
                                ("heads", 12, "of attention"), ("tokens", 1024, "of a sample"),
                                ("vocabulary", 50257, "different tokens")):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} ({default})")
    parser.add_argument("--dropout", type=float, default=0.0, help="rate behind each dense layer of the stream (0)")
    parser.add_argument("--learning-rate", type=float, default=6e-4, help="of AdamW (6e-4)")
    parser.add_argument("--steps", type=int, default=0,
                        help="after which the learning rate is a tenth; 0: it is constant (0)")
    options = parser.parse_args()
    if options.width % options.heads:
        parser.error(f"expected a width that is a multiple of {options.heads} heads, found {options.width}")
    print(Writer(options).model())


if __name__ == "__main__":
    main()
