# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer through MTC: the losses, weights and checkpoints of its own steps."""
import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import mtc.torch


class Words(torch.utils.data.Dataset):
    """Sentences of numbers, whose first word has the class."""

    def __init__(self, count):
        draw = torch.Generator().manual_seed(7)
        self.ids = torch.randint(1, 50, (count, 12), generator=draw)
        self.mask = (torch.arange(12) < torch.randint(4, 13, (count, 1), generator=draw)).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": self.mask[i], "labels": self.ids[i, 0] % 3}


class Texts(Words):
    """Each word is predicted from those before; some are not counted."""

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": torch.where(self.mask[i] > 0, self.ids[i], -100)}


def language_model():
    torch.manual_seed(3)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=50, n_positions=12, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def model():
    torch.manual_seed(3)
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=12, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def arguments(folder, **others):
    return transformers.TrainingArguments(
        output_dir=str(folder), use_cpu=True, per_device_train_batch_size=8, learning_rate=3e-3, warmup_steps=3,
        lr_scheduler_type="cosine", weight_decay=0.01, max_grad_norm=1.0, logging_steps=1, report_to=[],
        disable_tqdm=True, **{"max_steps": 20, "save_strategy": "no", **others})


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def train(kind, folder, resume=None, make=model, words=Words, **others):
    own = {"mtc": {"check": False, "devices": "cpu:2", "verbose": 0}} if kind is mtc.torch.Trainer else {}
    trainer = kind(make(), arguments(folder, **others), train_dataset=words(76), eval_dataset=words(20), **own)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def weights(trainer):
    return {name: tensor.detach().clone() for name, tensor in trainer.model.state_dict().items()}


def same(a, b, within):
    assert max(float((a[name].float() - b[name].float()).abs().max()) for name in a) <= within


def test_steps_schedule_and_evaluation(tmp_path):
    """20 steps over two epochs with a short batch, warm-up, decay groups and clipping; then evaluation."""
    theirs = train(transformers.Trainer, tmp_path / "a", eval_strategy="steps", eval_steps=10)
    ours = train(mtc.torch.Trainer, tmp_path / "b", eval_strategy="steps", eval_steps=10)
    assert len(losses(ours)) == 20
    assert losses(ours) == pytest.approx(losses(theirs), abs=2e-4)
    same(weights(ours), weights(theirs), 2e-3)
    evaluated = [[e["eval_loss"] for e in t.state.log_history if "eval_loss" in e] for t in (ours, theirs)]
    assert evaluated[0] == pytest.approx(evaluated[1], abs=2e-4)
    assert not any("grad_norm" in entry for entry in ours.state.log_history)


def test_accumulation_and_resuming_in_an_epoch(tmp_path):
    """Two batches an update; a run that goes on from step 6, in the middle of an epoch, has the bits of one run."""
    others = {"gradient_accumulation_steps": 2, "max_steps": 10, "make": language_model, "words": Texts}
    theirs = train(transformers.Trainer, tmp_path / "a", **others)
    whole = train(mtc.torch.Trainer, tmp_path / "b", save_strategy="steps", save_steps=3, **others)
    assert losses(whole) == pytest.approx(losses(theirs), abs=2e-4)
    resumed = train(mtc.torch.Trainer, tmp_path / "b", resume=str(tmp_path / "b" / "checkpoint-6"),
                    save_strategy="no", **others)
    assert losses(resumed)[-4:] == losses(whole)[-4:]
    same(weights(resumed), weights(whole), 0)


def test_a_checkpoint_goes_on_in_transformers(tmp_path):
    first = train(mtc.torch.Trainer, tmp_path, save_strategy="steps", save_steps=10)
    after = copy.deepcopy(losses(first))
    theirs = train(transformers.Trainer, tmp_path, resume=str(tmp_path / "checkpoint-10"))
    assert losses(theirs)[-10:] == pytest.approx(after[-10:], abs=2e-4)


def test_what_is_refused(tmp_path):
    with pytest.raises(mtc.ModelError, match="label_smoothing_factor=0"):
        mtc.torch.Trainer(model(), arguments(tmp_path, label_smoothing_factor=0.1), train_dataset=Words(8))
    with pytest.raises(mtc.ModelError, match="no compute_loss_func"):
        mtc.torch.Trainer(model(), arguments(tmp_path), train_dataset=Words(8), compute_loss_func=lambda *_: 0)
    with pytest.raises(mtc.ModelError, match="a mean of its own"):  # transformers adds the means of both batches
        train(mtc.torch.Trainer, tmp_path, gradient_accumulation_steps=2)
