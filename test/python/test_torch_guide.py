# SPDX-License-Identifier: Apache-2.0
"""docs/guides/fine-tune.md: its blocks, one after the other, with a small model and a tokenizer of letters."""

import pages
import pytest
import torch
import transformers

class Letters:
    """A tokenizer, as far as the page calls it."""

    def __call__(self, texts, max_length, **_):
        ids = torch.zeros(len(texts), max_length, dtype=torch.long)
        for row, text in zip(ids, texts):
            letters = torch.tensor([ord(c) % 50 + 1 for c in text[:max_length]])
            row[:len(letters)] = letters
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

    def save_pretrained(self, _):
        pass


def small_bert(_name, num_labels):
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, num_labels=num_labels))


@pytest.mark.filterwarnings("error:.*lr_scheduler.step.*")
def test_the_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda _: Letters())
    monkeypatch.setattr(transformers.AutoModelForSequenceClassification, "from_pretrained", small_bert)
    names, frozen = {}, []
    for _ in pages.run("docs/guides/fine-tune.md", names):
        if "model" in names:
            frozen.append(names["model"].bert.embeddings.word_embeddings.weight.detach().clone())
    assert capsys.readouterr().out.count("accuracy") == 2
    assert (tmp_path / "trained" / "config.json").exists() and (tmp_path / "model.mtp").exists()
    assert torch.equal(frozen[0], frozen[-2]) and not torch.equal(frozen[0], frozen[-1])
    saved = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "trained")
    assert not torch.equal(saved.classifier.weight, small_bert("", 2).classifier.weight)
