# SPDX-License-Identifier: Apache-2.0
"""The rest of the C interface from Python: loops over data of any source, times, descriptions. Without Keras."""

import json
import os
import signal
import subprocess
import threading
import time

import mtc
import numpy as np
import pytest
from conftest import ROOT

MODEL = ROOT / "examples" / "mnist_mlp.mlir"
SOURCE = f"mnist:{ROOT}/examples/mnist,split=test,range=0:1000"


@pytest.fixture(scope="module")
def plan():
    return mtc.compile(MODEL, batch_size=64, cpu="native")


def test_the_loop_is_that_of_mtrun(plan, session, mnist, mtrun, tmp_path):
    """From a source, from arrays, and from batches: the bits of `mtrun train`."""
    plan.save(tmp_path / "m.mtp")
    subprocess.run([mtrun, "train", "m.mtp", "--data", SOURCE, "--epochs", "2", "--validation", SOURCE, "--devices",
                    "cpu:1", "--save", "w.safetensors", "--history", "theirs"], check=True, cwd=tmp_path,
                   capture_output=True)
    with plan.session("cpu:1") as other:
        other.load(tmp_path / "w.safetensors")
        wanted = dict(other.variables)
    for data in (SOURCE, {"image": mnist[0], "label": mnist[1]}, mnist):
        session.init()
        result = session.fit(data, epochs=2, validation=SOURCE, history_csv=tmp_path / "ours.csv")
        assert (result.epochs, result.total_step, result.stopped) == (2, 32, False)
        assert set(result.history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
        assert len(result.history["loss"]) == 2 and "<svg" in result._repr_html_()
        assert all(np.array_equal(session.variables[name], value) for name, value in wanted.items())
    header = (tmp_path / "theirs.csv").read_text().splitlines()[0]
    assert header == (tmp_path / "ours.csv").read_text().splitlines()[0]
    logs = session.evaluate(SOURCE)
    assert logs["loss"] == pytest.approx(result.history["val_loss"][-1])
    assert session.evaluate(mnist, steps=1)["loss"] == pytest.approx(
        session.eval_step([mnist[0][:64], mnist[1][:64]])["loss"])


def test_progress(session, mnist):
    seen = []
    result = session.fit(mnist, epochs=3, callback=lambda p: seen.append(p) or p.total_step == 20)
    assert [p.total_step for p in seen] == list(range(1, 21)) and result.stopped and result.epochs == 1
    assert seen[15].epoch_end and seen[15].steps == 16 and seen[15].learning_rate is not None
    assert set(seen[3].step_logs) == {"loss", "accuracy"} and len(result.history["loss"]) == 1
    assert result.history["loss"][0] == seen[15].logs["loss"]

    def raises(_):
        raise ZeroDivisionError("of the callback")

    with pytest.raises(ZeroDivisionError, match="of the callback"):
        session.fit(mnist, callback=raises)


def test_checkpoints_and_early_stopping(plan, mnist, tmp_path):
    with plan.session("cpu:1") as session:
        session.fit(mnist, epochs=3)
        wanted = dict(session.variables)
    with plan.session("cpu:1") as session:
        assert session.fit(mnist, epochs=2, checkpoint=tmp_path / "run").saved
    with plan.session("cpu:2") as session:
        result = session.fit(mnist, epochs=3, checkpoint=tmp_path / "run", resume=True)
        assert result.epochs == 3 and len(result.history["loss"]) == 1 and "resume" in result.notes[0]
        assert all(np.array_equal(session.variables[name], value) for name, value in wanted.items())
        result = session.fit(mnist, epochs=50, validation=mnist, early_patience=1, early_min_delta=10.0)
        assert result.stopped_early and result.epochs == 2
    for options, text in [({"epoch": 3}, "expected an option of Session.fit .*found epoch"),
                          ({"monitor": 3}, "expected monitor to be a text, found 3"),
                          ({"early_patience": "3"}, "expected early_patience to be a number, found '3'")]:
        with plan.session("cpu:1") as session, pytest.raises(TypeError, match=text):
            session.fit(mnist, **options)


def test_ctrl_c(session, mnist, tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def press():
        while not (tmp_path / "run").exists():  # fit has begun
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        session.fit(mnist, epochs=10**7, checkpoint=tmp_path / "run")
    assert any(name.startswith("step-") for name in os.listdir(tmp_path / "run"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_datasets(plan, session, mnist):
    with plan.open(SOURCE) as data:
        assert len(data) == 1000 and "1000" in repr(data)
        training, held = data.split(0.25)
        assert (len(training), len(held)) == (750, 250)
        assert session.evaluate(data[:64])["loss"] == session.eval_step([mnist[0][:64], mnist[1][:64]])["loss"]
        order = data.order(0)
        assert sorted(order) == list(range(1000)) and not np.array_equal(order, data.order(1))
        with pytest.raises(mtc.DataError, match="expected samples begin:end of a dataset, found 3"):
            data[3]
    with pytest.raises(mtc.DataError, match="expected arrays of image, label, found picture"):
        plan.open({"picture": mnist[0]})
    with pytest.raises(mtc.DataError):
        plan.open("nothing:here")
    assert "mnist:DIR" in mtc.data_sources() and all(mtc.data_sources().values())
    assert "label" in mtc.describe_data(SOURCE) and "samples" in mtc.benchmark_data(SOURCE, 64, 0.05)
    batches = ((mnist[0][i:i + 50], mnist[1][i:i + 50]) for i in range(0, 1000, 50))
    assert session.fit(batches, shuffle=False).total_step == 16


def test_predict_file(session, mnist, tmp_path):
    session.predict_file(mnist, tmp_path / "p.npy")
    assert np.array_equal(np.load(tmp_path / "p.npy"), session.predict(mnist[0]))
    with pytest.raises(mtc.DataError, match="expected an output of .*, found nothing"):
        session.predict_file(mnist, tmp_path / "p.npz", "nothing")


def test_totals(plan, session, mnist):
    """Means over steps as a loop makes them, over a short last batch too."""
    totals = mtc.Totals(plan)
    assert totals.logs() == {}
    for begin in range(0, 1000, 64):
        totals.add(session.step("eval_step", [part[begin:begin + 64] for part in mnist]))
    assert totals.logs() == pytest.approx(session.evaluate(mnist))
    with pytest.raises(mtc.DataError, match="expected the program train_step or eval_step, found init"):
        session.step("init", [])


def test_times(plan, session, mnist, tmp_path):
    session.start_trace(first=1, last=2)
    session.fit(mnist)
    found = session.profile()
    assert found.steps == 16 and found.samples == 1000 and found.step_us > 0
    assert {"matmul"} <= {e.kind.split("+")[0] for e in found.entries} and sum(found.layers().values()) > 0
    session.write_trace(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    page = plan.to_html(trace=tmp_path / "t.json")
    assert "<html" in page and page != plan.to_html() and plan.to_text(trace=tmp_path / "t.json")
    other = mtc.compile(MODEL, batch_size=32, cpu="native")
    assert "<html" in plan.to_html(against=other)
    with pytest.raises(mtc.FileError, match="cannot open .*none.json"):
        plan.to_html(trace=tmp_path / "none.json")
    timing = session.benchmark(warmup=1, steps=5)
    assert timing.steps == 5 and timing.min_us <= timing.median_us
    with pytest.raises(mtc.DataError):
        plan.session("cpu:1").profile()
    with pytest.raises(mtc.Error):
        session.tune(tmp_path / "tuning.json")


CLASSES_OF_WORDS = """mt.model @words {
  %ids = mt.input "ids" : tensor<?xi32>
  %label = mt.target "label" : tensor<?xi32>
  %table = mt.variable "table" init(glorot_uniform) : tensor<50x10xf32>
  %scores = mt.gather %table, %ids : tensor<50x10xf32>, tensor<?xi32>
  %loss = mt.sparse_categorical_crossentropy %scores, %label from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %loss : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0 : f32}>
}"""


def test_a_benchmark_draws_from_all_ids_and_classes(tmp_path):
    """They were 0 and 1: a gradient of two rows is another one than that of text."""
    (tmp_path / "words.mlir").write_text(CLASSES_OF_WORDS)
    with mtc.compile(tmp_path / "words.mlir", batch_size=256, cpu="native").session("cpu:1") as session:
        before = session.variables["table"].copy()
        session.benchmark(warmup=0, steps=1)
        change = session.variables["table"] - before
    assert set(np.nonzero(change)[0]) == set(range(50))  # a row that is not named stays
    assert set(np.nonzero(change > 0)[1]) == set(range(10))  # the score of a label rises


def test_files_of_variables(plan, session, tmp_path):
    session.save(tmp_path / "w.safetensors")
    assert session.load(tmp_path / "w.safetensors") == []
    assert session.load(tmp_path / "w.safetensors", match="any")
    with pytest.raises(mtc.DataError, match="expected match to be all, model or any, found some"):
        session.load(tmp_path / "w.safetensors", match="some")
    plan.check_save("w.safetensors")
    with pytest.raises(mtc.DataError):
        plan.check_save("w.h5")


def test_what_plans_and_sessions_say(plan, session):
    assert plan.has_program("predict") and not plan.has_program("nothing") and not plan.has_weights
    assert plan.higher_is_better("accuracy") and not plan.higher_is_better("loss", "eval_step")
    with pytest.raises(mtc.DataError, match="expected a metric of loss, accuracy, found nothing"):
        plan.higher_is_better("nothing")
    nodes = plan.graph()
    names = {node.name for node in nodes}
    assert {node.kind for node in nodes} >= {"input", "target", "variable", "all_reduce"}
    assert all(name in names for node in nodes for name in node.inputs)
    assert "device" in plan.to_text(devices=2) and "<html" in plan.to_html(devices=2)
    assert "between hosts 3.12 GB/s" in plan.to_text(hosts="2", cpu="32x40GF", network="25Gb")
    with pytest.raises(mtc.DataError):
        plan.to_text(gpu="nothing")
    assert plan.tokens == () and session.class_names == [] and session.shards(0) == 8


def test_tokens_and_classes(tmp_path):
    (tmp_path / "t.txt").write_text("abcä")
    names = [f"digit {i}" for i in range(10)]
    plan = mtc.compile(MODEL, batch_size=8, cpu="native", vocabulary=tmp_path / "t.txt", class_names=",".join(names))
    assert plan.tokens == ("a", "b", "c", "ä")
    with plan.session("cpu:1") as session:
        assert session.class_names == names


def test_the_compiler():
    assert list(mtc.stages())[0] and all(mtc.stages().values())
    assert "mt.model" in mtc.lower(MODEL, list(mtc.stages())[0])
    assert "784" in mtc.summary(MODEL)
    text, weights = mtc.import_model(MODEL)
    assert weights is None
    plan = mtc.compile_text(text, name="again", batch_size=64, cpu="native",
                            weights={"dense/bias": np.ones(256, "float32")})
    with plan.session("cpu:1") as session:
        assert plan.has_weights and (session.variables["dense/bias"] == 1).all()
    with pytest.raises(mtc.ModelError, match="bad.mlir:1"):
        mtc.compile_text("mt.nothing", name="bad")
    assert set(mtc.versions()) == {"mtc", "mtrun"}
    with pytest.raises(mtc.NoDeviceError):
        mtc.devices()
