# SPDX-License-Identifier: Apache-2.0
"""A module of Lightning through MTC, by a strategy: losses, validation, schedule, clipping, checkpoints."""
import pytest

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")

import mtc.torch

NN = torch.nn
DRAW = torch.Generator().manual_seed(0)
X, Y = torch.randn(156, 12, generator=DRAW), torch.randint(0, 4, (156,), generator=DRAW)


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = NN.Sequential(NN.Linear(12, 32), NN.ReLU(), NN.Linear(32, 4))
        self.validated = []

    def training_step(self, batch, index):
        loss = NN.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.validated.append(NN.functional.cross_entropy(self.net(batch[0]), batch[1]).item())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Twice(Module):
    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.log("twice", 2 * loss)
        return loss


class Seen(lightning.Callback):
    def __init__(self):
        self.losses = []

    def on_train_batch_end(self, trainer, module, outputs, *_):
        self.losses.append(float(outputs["loss"]))


def train(kind=Module, steps=20, save=None, resume=None, **options):
    module, seen = kind(), Seen()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=16)
    trainer = lightning.Trainer(max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=0.5,
                                callbacks=[seen], **options)
    trainer.fit(module, loader, loader, ckpt_path=resume)
    if save:
        trainer.save_checkpoint(save)
    return seen.losses, module.validated, module.state_dict()


def strategy():
    return mtc.torch.Strategy(check=False, verbose=0, devices="cpu:2")


def test_steps_and_checkpoints(tmp_path):
    theirs, ours = train(), train(strategy=strategy())
    assert len(ours[0]) == 20 and ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5)
    train(strategy=strategy(), steps=10, save=tmp_path / "epoch.ckpt")
    resumed = train(strategy=strategy(), resume=tmp_path / "epoch.ckpt")
    assert resumed[0] == ours[0][10:]
    assert all(torch.equal(resumed[2][name], value) for name, value in ours[2].items())


def test_what_is_refused():
    with pytest.raises(mtc.ModelError, match="logs its loss alone, found twice"):
        train(Twice, strategy=strategy())
    with pytest.raises(mtc.ModelError, match="accumulate_grad_batches=1"):
        train(strategy=strategy(), accumulate_grad_batches=2)
