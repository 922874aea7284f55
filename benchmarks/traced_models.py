# SPDX-License-Identifier: Apache-2.0
"""The models that `benchmarks/traced` compiles and times."""
import functools

PEERS = ("eager", "compiled", "jit")
VISION = {"resnet18": "resnet18", "resnet50": "resnet50", "mobilenet": "mobilenet_v3_large", "swin": "swin_t",
          "convnext": "convnext_tiny"}
TEXT = ("gpt2", "bert", "llama")
JAX = ("jax-mlp", "jax-cnn", "jax-gpt2")
NAMES = (*VISION, "vit", *TEXT, *JAX)


def make(name):
    if name in VISION or name == "vit":
        return TorchModel(*_images(name))
    return JaxModel(*_FUNCTIONS[name]()) if name in JAX else TorchModel(*_text(name))


class TorchModel:
    """A module, an example and a loss, or None where the module returns it."""

    def __init__(self, module, example, loss):
        self.module, self.example, self.loss = module, example, loss

    def compile(self, check):
        import mtc.torch
        import torch

        optimizer = torch.optim.AdamW(self.module.parameters(), 1e-3)
        return mtc.torch.compile(self.module, self.example, loss=self.loss, optimizer=optimizer, check=check)

    def bind(self, step):
        """A function that runs one step of MTC."""
        batch = (self.example,) if isinstance(self.example, dict) else self.example
        return functools.partial(step.train_on_batch, *batch)

    def peers(self):
        import torch

        images = not isinstance(self.example, dict)
        module = self.module.to(memory_format=torch.channels_last) if images else self.module
        module.train()
        optimizer = torch.optim.AdamW(module.parameters(), 1e-3, fused=True)

        def loss_of_images(x, y):
            return self.loss(module(x), y)

        def loss_of_text(**batch):
            return module(**batch).loss

        def step(function):
            optimizer.zero_grad()
            if images:
                x, y = self.example
                loss = function(x.contiguous(memory_format=torch.channels_last), y)
            else:
                loss = function(**self.example)
            loss.backward()
            optimizer.step()
            return float(loss.detach())

        function = loss_of_images if images else loss_of_text
        return {"eager": lambda: step(function), "compiled": functools.partial(step, torch.compile(function))}


class JaxModel:
    """A loss function of parameters and a batch."""

    def __init__(self, loss, params, batch):
        self.loss, self.params, self.batch = loss, params, batch

    def compile(self, check):
        import jax
        import mtc.jax

        rows = len(jax.tree.leaves(self.batch)[0])
        return mtc.jax.compile(self.loss, self.params, self.batch, optimizer=mtc.jax.adamw(1e-3), batch_size=rows,
                               check=check)

    def bind(self, step):
        """A function that runs one step of MTC."""
        return functools.partial(step.train_on_batch, self.batch)

    def peers(self):
        import jax
        import optax

        optimizer = optax.adamw(1e-3)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def step(params, state, batch):
            loss, gradients = jax.value_and_grad(self.loss)(params, batch)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, loss

        kept = [jax.tree.map(jax.numpy.array, self.params)]
        kept.append(optimizer.init(kept[0]))

        def run():
            *kept[:], loss = step(*kept, self.batch)
            return float(loss)

        return {"jit": run}


def _images(name):
    import torch

    if name == "vit":
        import timm

        module = timm.create_model("vit_tiny_patch16_224")
    else:
        import torchvision

        module = getattr(torchvision.models, VISION[name])()
    example = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    return module, example, torch.nn.functional.cross_entropy


def _text(name):
    import torch
    import transformers

    small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024,
             "vocab_size": 8192}
    kinds = {"gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
             "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**small)),
             "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=4, **small))}
    shape, words = ((4, 64), 50257) if name == "gpt2" else ((16, 128), 8192)
    tokens = torch.randint(0, words, shape)
    return kinds[name](), {"input_ids": tokens, "labels": tokens}, None


def _random():
    import numpy as np

    random = np.random.default_rng(0)

    def normal(scale, *shape):
        return (scale * random.standard_normal(shape)).astype("float32")

    return random, normal


def _mlp():
    import jax
    import jax.numpy as jnp

    random, normal = _random()
    sizes = (784, 512, 512, 10)
    params = [{"w": normal(a**-0.5, a, b), "b": normal(0, b)} for a, b in zip(sizes, sizes[1:])]

    def loss(params, batch):
        x = batch["x"]
        for i, layer in enumerate(params):
            x = x @ layer["w"] + layer["b"]
            x = jax.nn.relu(x) if i + 1 < len(params) else x
        return -jnp.take_along_axis(jax.nn.log_softmax(x), batch["y"][:, None], -1).mean()

    return loss, params, {"x": normal(1, 128, 784), "y": random.integers(0, 10, 128).astype("int32")}


def _cnn():
    import jax
    import jax.numpy as jnp

    random, normal = _random()
    channels = (3, 32, 64, 128)
    params = {"layers": [{"w": normal((9 * a)**-0.5, 3, 3, a, b), "b": normal(0, b)}
                         for a, b in zip(channels, channels[1:])],
              "out": normal(128**-0.5, 128, 10)}

    def loss(params, batch):
        x = batch["x"]
        for layer in params["layers"]:
            x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + layer["b"])
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = x.mean((1, 2)) @ params["out"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][:, None], -1).mean()

    return loss, params, {"x": normal(1, 64, 32, 32, 3), "y": random.integers(0, 10, 64).astype("int32")}


def _gpt2():
    import jax
    import jax.numpy as jnp
    import numpy as np

    random, normal = _random()
    blocks, width, heads, tokens, words = 12, 768, 12, 64, 50257

    def linear(inputs, outputs):
        return [normal(0.02, inputs, outputs), np.zeros(outputs, "float32")]

    def scale():
        return [np.ones(width, "float32"), np.zeros(width, "float32")]

    def normalized(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def dense(x, weights, bias):
        return x @ weights + bias

    def loss(params, batch):
        x = params["words"][batch["x"]] + params["places"]
        causal = np.tril(np.ones((tokens, tokens), bool))
        for p in params["blocks"]:
            q, k, v = (part.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
                       for part in jnp.split(dense(normalized(x, *p["norm1"]), *p["qkv"]), 3, axis=-1))
            scores = jnp.where(causal, q @ k.transpose(0, 1, 3, 2) / (width // heads)**0.5, -1e9)
            seen = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            x = x + dense(seen, *p["project"])
            x = x + dense(jax.nn.gelu(dense(normalized(x, *p["norm2"]), *p["up"])), *p["down"])
        logits = normalized(x, *params["norm"]) @ params["words"].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][..., None], -1).mean()

    params = {"words": normal(0.02, words, width), "places": normal(0.02, tokens, width), "norm": scale(),
              "blocks": [{"norm1": scale(), "norm2": scale(), "qkv": linear(width, 3 * width),
                          "project": linear(width, width), "up": linear(width, 4 * width),
                          "down": linear(4 * width, width)} for _ in range(blocks)]}
    ids = random.integers(0, words, (4, tokens + 1)).astype("int32")
    return loss, params, {"x": ids[:, :-1], "y": ids[:, 1:]}


_FUNCTIONS = {"jax-mlp": _mlp, "jax-cnn": _cnn, "jax-gpt2": _gpt2}
