# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch for the tests of mtc.torch: small, with fixed seeds, nothing downloaded.

Each function gives a module, an example of a batch, and a loss or None where the module returns it.
"""

import torch
from torch import nn
from torch.nn import functional

BATCH = 6
CLASSES = 10


def _images(size=16):
    return torch.randn(BATCH, 3, size, size), torch.randint(0, CLASSES, (BATCH,))


def _words(vocabulary=50, length=12):
    return torch.randint(0, vocabulary, (BATCH, length))


def mlp():
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    return module, (torch.randn(BATCH, 8), torch.randint(0, CLASSES, (BATCH,))), functional.cross_entropy


def cnn():
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 8, 3, groups=8), nn.GroupNorm(2, 8), nn.GELU(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(8, CLASSES))
    return module, _images(), nn.CrossEntropyLoss(label_smoothing=0.1)


class _Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != filters:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """As for CIFAR: no pool in front."""

    def __init__(self, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(*(
            nn.Sequential(_Block(a, b, stride), _Block(b, b, 1))
            for a, b, stride in zip(sizes, sizes[1:], (1, 2, 2, 2))))
        self.linear = nn.Linear(8 * width, CLASSES)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layers(x).mean((2, 3)))


def resnet18():
    return ResNet18(), _images(), functional.cross_entropy


class _Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.qkv, self.out, self.heads, self.rate = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, dropout

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class GPT(nn.Module):
    """A language model whose head is its table of embeddings."""

    def __init__(self, vocabulary=50, length=12, width=16, heads=2, layers=2, dropout=0.0):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "attention": _Attention(width, heads, dropout), "norm2": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width),
                                 nn.Dropout(dropout))}) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["mlp"](block["norm2"](x))
        return self.head(self.norm(x))


def next_token_loss(logits, labels):
    """Over the labels that are not -100."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def gpt():
    ids = _words()
    labels = ids.roll(-1, 1)
    labels[:, -1] = -100
    labels[0, 3:] = -100
    return GPT(), (ids, labels), next_token_loss


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 8, 2, batch_first=True)
        self.gru = nn.GRU(8, 4, batch_first=True)
        self.out = nn.Linear(4, 1)

    def forward(self, ids):
        x, _ = self.lstm(self.words(ids))
        return self.out(self.gru(x)[0][:, -1])[:, 0]


def recurrent():
    return Recurrent(), (_words(length=5), torch.randint(0, 2, (BATCH,)).float()), nn.BCEWithLogitsLoss()


def encoder():
    """nn.TransformerEncoderLayer, whose attention has the batch as its second axis inside."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    module = nn.Sequential(layer, nn.Flatten(), nn.Linear(5 * 16, 3))
    return module, (torch.randn(BATCH, 5, 16), torch.randn(BATCH, 3)), nn.MSELoss()


def autoencoder():
    module = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.InstanceNorm2d(4, affine=True), nn.SiLU(),
                           nn.ConvTranspose2d(4, 3, 3, 2, 1, 1), nn.Sigmoid())
    images = torch.rand(BATCH, 3, 8, 8)
    return module, (images, images.clone()), nn.SmoothL1Loss()


class Contrastive(nn.Module):
    """InfoNCE: each sample's two views against those of all samples of a batch of up to 24."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 5), nn.Linear(4, 5)

    def forward(self, x):
        a, b = self.left(x[:, :6]), torch.tanh(self.right(x[:, 6:]))
        every = torch.zeros(24, 5).index_add(0, torch.arange(x.shape[0]), b)  # a table of all samples
        return (a @ every.t()).masked_fill(torch.arange(24) >= x.shape[0], -1e9)


def contrastive():
    def loss(logits, labels):
        return functional.cross_entropy(logits, torch.arange(logits.shape[0])) + 0 * labels.mean()

    return Contrastive(), (torch.randn(BATCH, 10), torch.zeros(BATCH)), loss


OWN = [mlp, cnn, resnet18, gpt, recurrent, encoder, autoencoder, contrastive]


# transformers, from small configurations


def _text(kind, config, labels="tokens", **given):
    import transformers

    ids = _words()
    options = {key: 0.0 for key in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "resid_pdrop",
                                    "embd_pdrop", "attn_pdrop", "attention_dropout", "seq_classif_dropout",
                                    "classifier_dropout") if hasattr(getattr(transformers, config)(), key)}
    module = getattr(transformers, kind)(getattr(transformers, config)(vocab_size=50, **given, **options))
    if labels == "tokens":
        return module, {"input_ids": ids, "labels": ids}, None
    lengths = torch.tensor([12, 7, 3, 12, 9, 1])
    mask = (torch.arange(12) < lengths[:, None]).long()
    return module, {"input_ids": ids, "attention_mask": mask, "labels": torch.randint(0, 2, (BATCH,))}, None


def hf_gpt2():
    return _text("GPT2LMHeadModel", "GPT2Config", n_layer=2, n_embd=16, n_head=2, n_positions=16, use_cache=False,
                 bos_token_id=0, eos_token_id=0)


def hf_bert():
    return _text("BertForSequenceClassification", "BertConfig", "classes", hidden_size=16, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=32)


def hf_distilbert():
    return _text("DistilBertForSequenceClassification", "DistilBertConfig", "classes", dim=16, n_layers=2, n_heads=2,
                 hidden_dim=32)


def hf_llama():
    return _text("LlamaForCausalLM", "LlamaConfig", hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, intermediate_size=32, use_cache=False)


def hf_vit():
    import transformers

    module = transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8,
        num_labels=CLASSES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    images, labels = _images()
    return module, {"pixel_values": images, "labels": labels}, None


HF = [hf_gpt2, hf_bert, hf_distilbert, hf_llama, hf_vit]


def build(make):
    """A module, its example and its loss, the same each time."""
    torch.manual_seed(1)
    return make()


def loss_of(module, example, loss):
    """The loss of a batch in PyTorch."""
    if isinstance(example, dict):
        return module(**example).loss
    return loss(module(example[0]), example[1])


def other(example, seed):
    """Another batch like the example."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(BATCH, generator=generator)
    if isinstance(example, dict):
        return {key: value[order] for key, value in example.items()}
    return tuple(value[order] * 1 for value in example)
