# SPDX-License-Identifier: Apache-2.0
"""Well-known models for test_torch_zoo.py: all their layers, random weights, small images, nothing downloaded.

Each function gives a module, an example of a batch, and a loss or None where the module returns it. Dropout and
stochastic depth are off.
"""

import functools

import torch
from torch.nn import functional

CLASSES = 10
WORDS = 64


def _images(module, rows, size):
    """With dropout off, and with larger weights where those at first let no gradient pass, or next to none."""
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout) or type(part).__name__ == "StochasticDepth":
            part.p = 0.0
        assert not getattr(part, "drop_prob", None), "stochastic depth of timm"
    for name, weight in module.named_parameters():
        if weight.ndim > 1 and not weight.any():
            torch.nn.init.normal_(weight, std=0.1)
        elif name.endswith("layer_scale"):  # of ConvNeXt: 1e-6
            torch.nn.init.constant_(weight, 0.1)
    return module, (torch.randn(rows, 3, size, size), torch.randint(0, CLASSES, (rows,))), functional.cross_entropy


def _vision(name, rows=4, size=64):
    import torchvision

    return _images(getattr(torchvision.models, name)(num_classes=CLASSES), rows, size)


def _timm(name, rows=4, size=64, **options):
    import timm

    return _images(timm.create_model(name, num_classes=CLASSES, **options), rows, size)


def vit(rows=4):
    import torchvision

    module = torchvision.models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=12, num_heads=3, hidden_dim=48, mlp_dim=96, num_classes=CLASSES)
    return _images(module, rows, 32)


def _hf(kind, labels, **config):
    import transformers

    module = getattr(transformers, kind)
    return module(module.config_class(**config)), labels, None


def _words(rows=4, length=12):
    return torch.randint(0, WORDS, (rows, length))


_SMALL = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
          "intermediate_size": 64}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def gpt2():
    ids = _words()
    return _hf("GPT2LMHeadModel", {"input_ids": ids, "labels": ids}, vocab_size=WORDS, n_layer=3, n_embd=32, n_head=4,
               n_positions=16, use_cache=False, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0,
               attn_pdrop=0.0)


def _masked():
    mask = (torch.arange(12) < torch.tensor([12, 7, 3, 9])[:, None]).long()
    ids = _words()
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.where(mask.bool(), ids, -100)}


def bert():
    return _hf("BertForMaskedLM", _masked(), **_SMALL, **_NO_DROPOUT)


def distilbert():
    return _hf("DistilBertForMaskedLM", _masked(), vocab_size=WORDS, dim=32, n_layers=3, n_heads=4, hidden_dim=64,
               dropout=0.0, attention_dropout=0.0)


def llama():
    ids = _words()
    return _hf("LlamaForCausalLM", {"input_ids": ids, "labels": ids}, num_key_value_heads=2, use_cache=False, **_SMALL)


def qwen2():
    ids = _words()
    return _hf("Qwen2ForCausalLM", {"input_ids": ids, "labels": ids}, num_key_value_heads=2, use_cache=False, **_SMALL)


def t5():
    return _hf("T5ForConditionalGeneration", {"input_ids": _words(), "labels": _words(length=7)}, vocab_size=WORDS,
               d_model=32, d_kv=8, d_ff=64, num_layers=3, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
               use_cache=False)


def whisper():
    batch = {"input_features": torch.randn(4, 16, 40), "labels": _words(length=7)}
    return _hf("WhisperForConditionalGeneration", batch, vocab_size=WORDS, num_mel_bins=16, d_model=32,
               encoder_layers=3, decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=16,
               pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, dropout=0.0, use_cache=False,
               suppress_tokens=None, begin_suppress_tokens=None)


def hf_vit():
    batch = {"pixel_values": torch.randn(4, 3, 32, 32), "labels": torch.randint(0, CLASSES, (4,))}
    return _hf("ViTForImageClassification", batch, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
               intermediate_size=64, image_size=32, patch_size=8, num_labels=CLASSES, **_NO_DROPOUT)


VISION = {
    "resnet18": functools.partial(_vision, "resnet18"),
    "resnet50": functools.partial(_vision, "resnet50"),
    "mobilenet_v3": functools.partial(_vision, "mobilenet_v3_large"),
    "vit": vit,
    "swin_t": functools.partial(_vision, "swin_t"),
    "convnext_t": functools.partial(_vision, "convnext_tiny"),
}
TIMM = {
    "mixer": functools.partial(_timm, "mixer_s32_224", img_size=64),
    "mobilevit": functools.partial(_timm, "mobilevit_xs"),
    "xcit": functools.partial(_timm, "xcit_nano_12_p16_224", img_size=64),
    "dla34": functools.partial(_timm, "dla34"),
    "mobilenetv4": functools.partial(_timm, "mobilenetv4_conv_small"),
}
TEXT = {f.__name__: f for f in (gpt2, bert, distilbert, llama, qwen2, t5, whisper, hf_vit)}
ALL = {**VISION, **TIMM, **TEXT}


def build(name):
    """A module, its example and its loss, the same each time."""
    torch.manual_seed(1)
    module, example, loss = ALL[name]()
    return module.train(), example, loss
