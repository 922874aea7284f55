# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch, torchvision and transformers that become ONNX files: small, with fixed seeds."""

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(20, 32), nn.Linear(32, 16), nn.Linear(16, 5)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.last(nn.functional.gelu(self.second(x)))


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.down(x))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary=11, steps=12, width=16):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(steps, width)
        self.layers = nn.Sequential(Layer(width, 2), Layer(width, 2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.layers(x)))


class Encoder(nn.Module):
    """PyTorch's own transformer, which folds the batch with the heads."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


class Recurrent(nn.Module):
    def __init__(self, cell, **options):
        super().__init__()
        self.cell = cell(6, 8, batch_first=True, **options)
        self.head = nn.Linear(16 if options.get("bidirectional") else 8, 5)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1])


class Inverted(nn.Module):
    def __init__(self, channels, wide):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
                                   nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.ReLU(), nn.Conv2d(4, wide, 1),
                                     nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


class Mobilenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
        self.blocks = nn.Sequential(Inverted(8, 16), Inverted(8, 16))
        self.head = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 5))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def images(n, generator):
    return torch.randn(n, 3, 16, 16, generator=generator)


def large_images(n, generator):
    return torch.randn(n, 3, 32, 32, generator=generator)


def swin():
    """Indexed tables of places, masks that are put together, and a mean with strides of its own."""
    from torchvision.models.swin_transformer import SwinTransformer
    return SwinTransformer(patch_size=[4, 4], embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4],
                           stochastic_depth_prob=0.0, num_classes=5)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(8, 16, 2), CNBlockConfig(16, None, 1)], stochastic_depth_prob=0.0, num_classes=5)


class Logits(nn.Module):
    """A model of transformers, whose masks come from the positions of packed sequences."""

    def __init__(self, kind, **options):
        super().__init__()
        import transformers
        config = getattr(transformers, kind[0])(vocab_size=13, **options)
        self.model = getattr(transformers, kind[1])(config)

    def forward(self, ids):
        return self.model(input_ids=ids).logits


WIDTH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
         "max_position_embeddings": 16}


def gpt2():
    return Logits(("GPT2Config", "GPT2LMHeadModel"), n_embd=32, n_layer=2, n_head=2, n_positions=16, use_cache=False,
                  resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def bert():
    return Logits(("BertConfig", "BertForSequenceClassification"), **WIDTH, hidden_dropout_prob=0.0,
                  attention_probs_dropout_prob=0.0)


def llama():
    return Logits(("LlamaConfig", "LlamaForCausalLM"), **WIDTH, num_key_value_heads=1, use_cache=False)


def tokens(n, generator):
    """None of them is 0, whose row BERT does not train: ONNX does not say so."""
    return torch.randint(1, 13, (n, 12), generator=generator)


# name -> module, x of n samples
MODELS = {
    "mlp": (Mlp, lambda n, g: torch.randn(n, 20, generator=g)),
    "resnet": (Resnet, lambda n, g: torch.randn(n, 3, 32, 32, generator=g)),
    "gpt": (Gpt, lambda n, g: torch.randint(0, 11, (n, 12), generator=g)),
    "encoder": (Encoder, lambda n, g: torch.randn(n, 7, 16, generator=g)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda n, g: torch.randn(n, 9, 6, generator=g)),
    "gru": (lambda: Recurrent(nn.GRU, bidirectional=True), lambda n, g: torch.randn(n, 9, 6, generator=g)),
    "mobilenet": (Mobilenet, images),
    "swin": (swin, large_images),
    "convnext": (convnext, large_images),
    "gpt2": (gpt2, tokens),
    "bert": (bert, tokens),
    "llama": (llama, tokens),
}


# A model takes about ten seconds, most of them in an exporter: one exporter each, or both with MTC_ALL_MODELS=1.
SCRIPTED = {"resnet", "lstm", "encoder"}


def make(name):
    """The module, in training, and the function that makes its x."""
    torch.manual_seed(3)
    made, sample = MODELS[name]
    return made().train(), sample


def export(module, x, path, dynamo):
    """Writes the module in training, with a batch of any size, and each parameter by itself."""
    if dynamo:
        torch.onnx.export(module, (x,), str(path), dynamo=True, dynamic_shapes=({0: torch.export.Dim("batch")},),
                          input_names=["x"], output_names=["y"], opset_version=18, verbose=False, optimize=False)
    else:
        torch.onnx.export(module, (x,), str(path), dynamo=False, dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                          input_names=["x"], output_names=["y"], opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING)
