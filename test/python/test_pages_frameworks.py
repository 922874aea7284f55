# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of the pages that need PyTorch, JAX, Flax, transformers or TensorFlow."""

import os
import subprocess
import sys

import pages
import pytest

import mtc


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The pages write files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_jax(folder):
    names = {}
    assert len(list(pages.run("docs/jax.md", names))) == 7
    assert len(names["history"]["accuracy"]) == 5 and (folder / "classifier.mtp").exists() and (folder / "run").exists()
    assert names["history"]["accuracy"][-1] > 0.8


def test_science(folder, capsys):
    names = {}
    assert len(list(pages.run("docs/guides/science.md", names))) == 5
    for losses, share in (("losses", 0.6), ("forces", 0.95), ("pendulum", 0.6), ("integrals", 0.6)):
        assert names[losses][-1] < share * names[losses][0], losses
    for found in ("equation", "molecule", "swing", "transforms"):
        assert len(names[found]) == 4 and len(set(names[found])) == 1, found
    assert names["field"].shape == (4, 2)
    assert capsys.readouterr().out.count(" on cpu:8: ") == 4


def small_gpt(transformers):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def test_pytorch(folder, capsys):
    import torch
    import transformers

    torch.manual_seed(0)
    ids = torch.randint(0, 40, (16, 8))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    names = {}
    for number in pages.run("docs/pytorch.md", names):
        if number == 0:
            first = len(names["history"]["loss"])
            model = small_gpt(transformers)
            names.update(model=model, loader=[{**batch, "labels": ids}] * 3, ids=ids, mask=batch["attention_mask"])
        if number == 1:
            optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
            names.update(optimizer=optimizer, scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2))
    assert first == 2 and (folder / "model.pt").exists()
    pair = torch.rand(8, 8), torch.rand(8, 8)
    module = names["Pairs"](torch.nn.Linear(8, 4), 16, 4)
    step = mtc.torch.compile(module, pair, optimizer=torch.optim.SGD(module.parameters(), 0.1), batch_size=8)
    expected = float(module(*pair).detach())
    assert step.train_on_batch(*pair)["loss"] == pytest.approx(expected, rel=1e-5)


# TensorFlow and PyTorch in a process of their own.
EXPORTS = """
import sys
sys.path[:0] = {path!r}
import pages
codes = pages.blocks("docs/import.md")
code, = [code for code in codes if {word!r} in code]
{given}
names = dict(globals())
exec(code, names)
{then}
"""


def export(word, given, then=""):
    program = EXPORTS.format(path=[str(pages.ROOT / "test" / "python")], word=word, given=given, then=then)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          env={**os.environ, "KERAS_BACKEND": "tensorflow"})
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("word, given, trained", [
    ("torch.onnx.export", "import torch\nx = torch.rand(4, 8)\nmodel = torch.nn.Linear(8, 3)", [(3,), (3, 8)]),
    ("tf2onnx", "import keras, tensorflow as tf, tf2onnx\n"
     "model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3)])", [(8, 3)]),  # a bias of zeros is left out
])
def test_exports_to_onnx(folder, word, given, trained):
    export(word, given)
    plan = mtc.compile("model.onnx", loss="mse", optimizer="sgd", batch_size=4)
    assert sorted(v.shape for v in plan.variables if v.kind == "trainable") == trained


def test_export_of_jax(folder):
    export("from jax import export", "import jax\nfunction = lambda params, x: x @ params['dense']['kernel']\n"
           "params = {'dense': {'kernel': jax.numpy.ones((784, 10))}}",
           "open('model.mlir', 'w').write(names['text'])")
    plan = mtc.compile("model.mlir", loss="mse", optimizer="sgd", batch_size=4)
    assert plan.variables[0].name == "params/dense/kernel"
    assert plan.variables[0].shape == (784, 10)
