# SPDX-License-Identifier: Apache-2.0
"""The models that `benchmarks/traced` compiles and times."""
import functools

PEERS = ("eager", "compiled", "jit")
VISION = {"resnet18": "resnet18", "resnet50": "resnet50", "mobilenet": "mobilenet_v3_large", "swin": "swin_t",
          "convnext": "convnext_tiny"}
TIMM = {"vit": "vit_tiny_patch16_224", "mixer": "mixer_s32_224", "mobilevit": "mobilevit_xs",
        "xcit": "xcit_nano_12_p16_224", "mobilenetv4": "mobilenetv4_conv_small", "dla": "dla34"}
TEXT = ("gpt2", "bert", "distilbert", "llama", "qwen", "t5", "whisper", "hf-vit")
JAX = ("jax-mlp", "jax-cnn", "jax-gpt2", "flax-resnet", "flax-gpt")
NAMES = (*VISION, *TIMM, *TEXT, *JAX)


def make(name):
    if name in VISION or name in TIMM:
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

        images = self.loss is not None
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

    if name in TIMM:
        import timm

        module = timm.create_model(TIMM[name])
    else:
        import torchvision

        module = getattr(torchvision.models, VISION[name])()
    example = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    return module, example, torch.nn.functional.cross_entropy


def _text(name):
    import torch
    import transformers as hf

    def ids(words, *shape):
        return torch.randint(0, words, shape)

    small = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1024,
             "vocab_size": 8192}
    if name == "whisper":  # the default is Whisper tiny
        module = hf.WhisperForConditionalGeneration(hf.WhisperConfig())
        return module, {"input_features": torch.randn(2, 80, 3000), "labels": ids(51865, 2, 64)}, None
    if name == "hf-vit":
        module = hf.ViTForImageClassification(hf.ViTConfig(
            hidden_size=192, num_attention_heads=3, intermediate_size=768, num_labels=1000))
        return module, {"pixel_values": torch.randn(8, 3, 224, 224), "labels": ids(1000, 8)}, None
    kinds = {"gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config()),
             "bert": lambda: hf.BertForMaskedLM(hf.BertConfig(**small)),
             "distilbert": lambda: hf.DistilBertForMaskedLM(hf.DistilBertConfig(
                 dim=256, n_layers=4, n_heads=8, hidden_dim=1024, vocab_size=8192)),
             "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(num_key_value_heads=4, **small)),
             "qwen": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(num_key_value_heads=4, **small)),
             "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(
                 d_model=256, d_kv=32, d_ff=1024, num_layers=4, num_heads=8, vocab_size=8192,
                 decoder_start_token_id=0))}
    tokens = ids(50257, 4, 64) if name == "gpt2" else ids(8192, 16, 128)
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


def _flax_resnet():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp

    class Block(nn.Module):
        filters: int
        stride: int

        @nn.compact
        def __call__(self, x):
            y = nn.Conv(self.filters, (3, 3), self.stride, use_bias=False)(x)
            y = nn.relu(nn.GroupNorm(8)(y))
            y = nn.GroupNorm(8)(nn.Conv(self.filters, (3, 3), use_bias=False)(y))
            if y.shape != x.shape:
                x = nn.Conv(self.filters, (1, 1), self.stride, use_bias=False)(x)
            return nn.relu(x + y)

    class ResNet(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(32, (3, 3))(x))
            for filters in (32, 64, 128):
                for block in range(3):
                    x = Block(filters, 2 if block == 0 and filters > 32 else 1)(x)
            return nn.Dense(10)(x.mean((1, 2)))

    random, normal = _random()
    batch = {"x": normal(1, 64, 32, 32, 3), "y": random.integers(0, 10, 64).astype("int32")}
    model = ResNet()

    def loss(params, batch):
        logits = model.apply(params, batch["x"])
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][:, None], -1).mean()

    return loss, model.init(jax.random.key(0), batch["x"]), batch


def _flax_gpt():
    import flax.linen as nn
    import jax
    import jax.numpy as jnp

    tokens, words = 128, 8192

    class GPT(nn.Module):
        @nn.compact
        def __call__(self, ids):
            x = nn.Embed(words, 256)(ids) + nn.Embed(tokens, 256)(jnp.arange(tokens))
            for _ in range(4):
                y = nn.LayerNorm()(x)
                x = x + nn.MultiHeadDotProductAttention(8)(y, y, mask=nn.make_causal_mask(ids))
                x = x + nn.Dense(256)(nn.gelu(nn.Dense(1024)(nn.LayerNorm()(x))))
            return nn.Dense(words)(nn.LayerNorm()(x))

    random, _ = _random()
    ids = random.integers(0, words, (16, tokens + 1)).astype("int32")
    batch = {"x": ids[:, :-1], "y": ids[:, 1:]}
    model = GPT()

    def loss(params, batch):
        logits = model.apply(params, batch["x"])
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][..., None], -1).mean()

    return loss, model.init(jax.random.key(0), batch["x"]), batch


_FUNCTIONS = {"jax-mlp": _mlp, "jax-cnn": _cnn, "jax-gpt2": _gpt2, "flax-resnet": _flax_resnet, "flax-gpt": _flax_gpt}
