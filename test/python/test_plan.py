# SPDX-License-Identifier: Apache-2.0
"""Plans and sessions, without Keras."""

import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading
import time

import mtc
import numpy as np
import pytest
from conftest import ROOT
from mtc import _cache, _library

MODEL = ROOT / "examples" / "mnist_mlp.mlir"


@pytest.fixture(scope="module")
def plan():
    return mtc.compile(MODEL, batch_size=32, cpu="native")


def batch(mnist, plan, rows=32):
    x, y = mnist
    return [x[:rows].reshape(rows, *plan.inputs[0].shape[1:]), y[:rows].astype("int32")]


def test_what_a_plan_says(plan):
    assert (plan.batch_size, plan.shards) == (32, 8)
    assert [str(t) for t in (*plan.inputs, *plan.targets)] == ["image float32 [?, 784]", "label int32 [?]"]
    assert plan.metrics()[0] == "loss"
    assert plan.inspect()["batch"] == 32
    assert plan.model in plan.to_text() and "<html" in plan.to_html()
    assert plan.memory(1) > 0 and plan.memory(8) > 0
    with pytest.raises(mtc.DataError, match="expected 1 to 8 devices, as the plan has shards, found 9"):
        plan.memory(9)


def test_save_and_load(plan, tmp_path, mnist):
    plan.save(tmp_path / "m.mtp")
    assert os.listdir(tmp_path) == ["m.mtp"]
    again = mtc.load(tmp_path / "m.mtp")
    assert again.signature() == plan.signature()
    with plan.session("cpu:1") as a, again.session("cpu:2") as b:
        assert a.train_step(batch(mnist, plan)) == b.train_step(batch(mnist, plan))
        a.save(tmp_path / "w.safetensors")
        b.init()
        b.load(tmp_path / "w.safetensors")
        for name, value in a.variables.items():
            assert np.array_equal(b.variables[name], value), name
    with pytest.raises(mtc.FileError, match="cannot open .*none.mtp: No such file or directory"):
        mtc.load(tmp_path / "none.mtp")
    (tmp_path / "cut.mtp").write_bytes((tmp_path / "m.mtp").read_bytes()[:1000])
    with pytest.raises(mtc.CorruptError) as error:
        mtc.load(tmp_path / "cut.mtp")
    assert error.value.code == 3
    with pytest.raises(mtc.FileError, match="cannot write"):
        plan.save(tmp_path / "no" / "m.mtp")


def test_steps(plan, session, mnist):
    first = session.train_step(batch(mnist, plan))
    assert set(first) == set(plan.metrics())
    for _ in range(20):
        last = session.train_on_batch(*batch(mnist, plan))
    assert last["loss"] < first["loss"] / 2
    assert session.eval_step(dict(zip(["image", "label"], batch(mnist, plan, 5))))["loss"] < 1
    logits = session.predict(batch(mnist, plan, 50)[0])
    assert logits.shape == (50, 10) and logits.dtype == np.float32
    assert np.array_equal(logits, session.predict(batch(mnist, plan, 50)[0].tolist()))
    assert np.array_equal(logits[40:], session.predict(batch(mnist, plan, 50)[0][40:]))
    assert session.info()["devices"] == 2


def test_variables(session):
    names = list(session.variables)
    name = next(n for n in names if n.endswith("bias"))
    value = np.arange(session.variables[name].size, dtype="float64")
    session.variables[name] = value
    assert np.array_equal(session.variables[name], value.astype("float32"))
    assert np.from_dlpack(session.variables[name]).shape == value.shape
    session.variables[name] = memoryview(np.ones(value.shape, "float32"))
    assert (session.variables[name] == 1).all()
    with pytest.raises(KeyError, match="expected one of .*, found nothing"):
        session.variables["nothing"]
    with pytest.raises(mtc.DataError, match=r"expected .*bias float32 \[\d+\], found int64 \[3\]"):
        session.variables[name] = np.arange(3)


def test_wrong_tensors(plan, session, mnist):
    x, y = batch(mnist, plan)
    for tensors, text in [
        ([x], r"expected label int32 \[\?\], found none"),
        ([x[:, :5], y], r"expected image float32 \[\?, 784\], found float32 \[32, 5\]"),
        ([x, y[:5]], 'expected 32 samples of "label", found 5'),
        ([x, y + 0.5], r"expected label int32 \[\?\], found float64 \[32\] with values that are not whole"),
        ([x, np.array(["a"] * 32)], 'expected numbers for "label", found an array of <U1'),
        ([[[1.0], [2.0, 3.0]], y], 'expected an array for "image", found a list of lists of 1 and 2 items'),
        ([x, y + 10], "1[0-9]"),
    ]:
        with pytest.raises(mtc.DataError, match=text):
            session.train_step(tensors)


def test_errors_of_models(tmp_path):
    bad = tmp_path / "bad.mlir"
    bad.write_text("mt.model @m {\n  %x = mt.nothing\n}\n")
    with pytest.raises(mtc.ModelError, match="bad.mlir:2:.*error") as error:
        mtc.compile(bad)
    assert error.value.code == 1 and isinstance(error.value, ValueError)
    with pytest.raises(mtc.FileError, match="cannot open .*none.keras"):
        mtc.compile(tmp_path / "none.keras")
    with pytest.raises(mtc.OutOfMemoryError):
        mtc.compile(MODEL, device_memory=1024)
    with pytest.raises(TypeError, match="expected options of mtc.compile .*, found bach"):
        mtc.compile(MODEL, bach=3)
    with pytest.raises(mtc.ModelError, match="found int"):
        mtc.compile(3)


def test_compiles_while_a_check_runs(capsys):
    from mtc import _compile

    checking, compiled = threading.Event(), threading.Event()

    def compile_():
        assert checking.wait(60)
        compiled.set()
        return b"plan"

    def check():
        checking.set()
        assert compiled.wait(60)
        return "as it should be"

    assert _compile.while_checking(compile_, check, "auto") == b"plan"
    assert capsys.readouterr().err == "mtc: as it should be\n"


def test_a_check_that_fails_waits_for_the_compilation():
    from mtc import _compile

    failed, compiled = threading.Event(), threading.Event()

    def compile_():
        assert failed.wait(60)
        compiled.set()
        raise mtc.ModelError("cannot be compiled")

    def check():
        failed.set()
        raise mtc.ModelError("differs")

    with pytest.raises(mtc.ModelError, match="differs"):
        _compile.while_checking(compile_, check, 0)
    assert compiled.is_set()
    with pytest.raises(mtc.ModelError, match="cannot be compiled"):
        _compile.while_checking(compile_, lambda: "as it should be", 0)


def test_options():
    """A text in place of a number, or a number in place of a text, is named: ctypes would read it as an address."""
    with pytest.raises(TypeError, match="expected recompute to be a text, found 1"):
        mtc.compile(MODEL, batch_size=8, recompute=1)
    with pytest.raises(TypeError, match="expected micro_batches to be an integer, found '4'"):
        mtc.compile(MODEL, batch_size=8, micro_batches="4")
    with pytest.raises(mtc.ModelError, match="as a number of bytes or as 8GiB, found '8 apples'"):
        mtc.compile(MODEL, batch_size=8, device_memory="8 apples")
    with pytest.raises(mtc.OutOfMemoryError, match="expected a plan that fits in 1.00 MiB a device"):
        mtc.compile(MODEL, batch_size=8, device_memory="1MiB")


def test_errors_of_devices(plan):
    with pytest.raises(mtc.DataError, match="8 shards"):
        plan.session("cpu:9")
    with pytest.raises((mtc.NoDeviceError, mtc.DeviceError)):
        plan.session("cuda:0")
    regularized = mtc.compile(ROOT / "test" / "exactness" / "inputs" / "regularized.mlir", batch_size=16)
    with pytest.raises(mtc.DataError, match="again; compile the model with micro_batches$"):
        regularized.session("cpu:1", micro_batches=2)
    with pytest.raises(TypeError, match="expected an option of mtrun_options, found thread"):
        plan.session(thread=3)


def test_closed(plan, mnist):
    session = plan.session("cpu:1")
    session.close()
    session.close()
    with pytest.raises(mtc.ClosedError, match="expected an open session, found one that is closed"):
        session.train_step(batch(mnist, plan))


def test_threads(plan, mnist):
    """Sessions of one plan in several threads; one session in two threads at once is an error and not a crash."""
    results, errors = [], []

    def train():
        with plan.session("cpu:1") as own:
            for _ in range(20):
                logs = own.train_step(batch(mnist, plan))
            results.append(logs["loss"])

    threads = [threading.Thread(target=train) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 4 and len(set(results)) == 1

    with plan.session("cpu:1") as shared, shared._use():
        def intrude():
            try:
                shared.init()
            except mtc.ClosedError as error:
                errors.append(str(error))

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
    assert errors == ["expected a session that is idle, found one that another thread uses"]


def test_close_while_in_use(plan, mnist):
    """From another thread and from the session's own callback: an error, and the work goes on."""
    session, going, closed = plan.session("cpu:2"), threading.Event(), []

    def train():
        session.fit(mnist, epochs=1000, callback=lambda p: going.set() or bool(closed))

    thread = threading.Thread(target=train)
    thread.start()
    going.wait()
    with pytest.raises(mtc.ClosedError, match=r"found close\(\) while another thread uses it"):
        session.close()
    with pytest.raises(ZeroDivisionError), session:  # which is what one wants to know
        raise ZeroDivisionError
    closed.append(True)
    thread.join()
    calls = {"close": session.close, "fit": lambda: session.fit(mnist), "init": session.init,
             "load": lambda: session.load("w.safetensors"), "benchmark": session.benchmark,
             "train_step": lambda: session.train_step(batch(mnist, plan))}
    for name, call in calls.items():
        with pytest.raises(mtc.ClosedError, match=rf"callback of fit.*|found {name}"):
            session.fit(mnist, callback=lambda _, call=call: call())
    allowed = []
    session.fit(mnist, callback=lambda _: allowed.append((session.predict(mnist[0][:4]), dict(session.variables),
                                                          session.evaluate(mnist, steps=1))))
    assert len(allowed) == 32
    session.close()


def test_pickles_and_copies(plan, session):
    again = pickle.loads(pickle.dumps(plan))
    assert again.signature() == plan.signature() and copy.deepcopy([plan])[0] is plan and copy.copy(plan) is plan
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="found a session, which has threads.*take session.plan"):
            attempt(session)


def test_numbers_and_texts_that_do_not_fit(plan, session, mnist, tmp_path):
    """What ctypes would cut."""
    image, label = batch(mnist, plan)
    for wrong in (2**32 + 1, -2**32, 2**31):
        ids = label.astype("int64")
        ids[3] = wrong
        with pytest.raises(mtc.DataError, match=rf"found int64 \[32\] with {wrong}, which is not within -2147483648"):
            session.train_step([image, ids])
    with pytest.raises(mtc.DataError, match="3 has|row 3 has -1"):
        session.train_step([image, np.where(np.arange(32) == 3, -1, label)])
    with pytest.raises(mtc.DataError, match="not whole or do not fit, such as nan"):
        session.train_step([image, np.where(np.arange(32) == 3, np.nan, label)])
    for make, text in [(lambda: plan.session("cpu:2\0"), r"devices without a zero byte, found 'cpu:2\\x00'"),
                       (lambda: plan.session("cpu:1", seed=2**70), "seed of at least 0|found 1180591620717411303424"),
                       (lambda: plan.session("cpu:1", seed=-1), "seed of at least 0, found -1"),
                       (lambda: plan.session("cpu:1", private_variables=2**40), "private_variables of -2147483648 to"),
                       (lambda: session.init(2**70), "a number of -9223372036854775808 to"),
                       (lambda: session.fit(mnist, epochs=2**70), "epochs of -9223372036854775808 to"),
                       (lambda: session.save(f"{tmp_path}/a\0.safetensors"), "a text without a zero byte"),
                       (lambda: mtc.compile(MODEL, loss="mse\0x"), "loss without a zero byte"),
                       (lambda: mtc.compile(MODEL, shards=2**33), "shards of")]:
        with pytest.raises(mtc.DataError, match=text):
            make()
    name = next(iter(session.variables))
    with pytest.raises(mtc.DataError, match="found 1 NaN of"):
        value = session.variables[name]
        value.flat[0] = np.nan
        session.variables[name] = value


def test_the_cache_runs_nobody_elses_plans(plan, tmp_path, monkeypatch):
    """No plan of another user, through a link, or that others may write; a pipe is not waited for."""
    folder = tmp_path / "plans"
    monkeypatch.setenv("MTC_CACHE", str(folder))

    def get():
        _cache._recent.clear()
        return _cache.get("k")

    entry = folder / "k.mtp"
    _cache.put("k", plan._data)
    assert folder.stat().st_mode & 0o777 == 0o700 and entry.stat().st_mode & 0o777 == 0o600 and get() is not None
    elsewhere = tmp_path / "elsewhere.mtp"
    os.replace(entry, elsewhere)
    assert get() is None
    for spoil in (lambda: entry.symlink_to(elsewhere), lambda: os.mkfifo(entry), entry.mkdir,
                  lambda: entry.write_bytes(b""), lambda: (entry.write_bytes(plan._data), entry.chmod(0o666))):
        spoil()
        assert get() is None
        entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    entry.symlink_to(elsewhere)
    _cache.put("k", plan._data)
    assert entry.is_file() and not entry.is_symlink()
    folder.chmod(0o777)
    assert get() is not None and folder.stat().st_mode & 0o777 == 0o755
    for name, age in ((".k.mtp.1-ab", 7200), (".k.mtp.2-ab", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    _cache.put("l", plan._data)
    assert sorted(os.listdir(folder)) == [".k.mtp.2-ab", "k.mtp", "l.mtp"]
    _cache.clear()
    assert os.listdir(folder) == [".k.mtp.2-ab"]
    if os.geteuid() == 0:
        _cache.put("k", plan._data)
        os.chown(folder, 65534, 65534)
        with pytest.warns(UserWarning, match="expected a folder of this user"):
            assert get() is None
        os.chown(folder, 0, 0)
        os.chown(entry, 65534, 65534)
        assert get() is None


def test_the_runtime_alone_says_what_is_missing(monkeypatch, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmtrun.so.0").write_bytes(b"")
    monkeypatch.setattr(_library, "_PACKAGE", tmp_path)
    monkeypatch.setattr(_library, "_loaded", {})
    monkeypatch.setattr(_library, "candidates", lambda name: iter([f"{tmp_path}/lib/lib{name}.so"]))
    with pytest.raises(mtc.Error, match="the wheel mtc-runtime alone, which runs plans: pip install mtc adds it"):
        _library.compiler()


def test_fork(plan):
    """A child of fork() may make sessions of its own, and leaves its parent's alone."""
    code = f"""
import os, mtc
plan = mtc.compile({str(MODEL)!r}, batch_size=32, cpu="native")
session = plan.session("cpu:2")
child = os.fork()
if child == 0:
    try:
        session.init()
    except mtc.ClosedError as error:
        print("child:", str(error).split(",")[0], flush=True)
    plan.session("cpu:2").init()
    print("child: trained", flush=True)
    raise SystemExit
print("status", os.waitpid(child, 0)[1])
session.init()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "child: expected a session of this process\nchild: trained\nstatus 0\n", done.stderr


def test_sessions_leave_nothing(plan, mnist):
    """A few hundred sessions take no memory that stays."""
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some(count):
        for _ in range(count):
            with plan.session("cpu:2") as session:
                session.train_step(batch(mnist, plan))

    some(50)
    before = resident()
    some(300)
    assert resident() - before < 1 << 20
    assert ctypes.sizeof(ctypes.c_void_p) == 8
