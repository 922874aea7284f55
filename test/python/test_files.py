# SPDX-License-Identifier: Apache-2.0
"""Files of the Python package are there as a whole or not at all, and a process that is killed leaves no others."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
from mtc import _files

OLD, NEW = b"old", b"new" * 1000


def _folder(path):
    return os.open(path, os.O_PATH | os.O_DIRECTORY)


def _refuse(monkeypatch, call, asked):
    real = getattr(os, call)

    def refusing(*arguments, **options):
        if asked(arguments):
            raise PermissionError(1, "Operation not permitted")
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, refusing)


@pytest.mark.parametrize("world", ["as it is", "no files without names", "no links of them"])
@pytest.mark.parametrize("replaces", [False, True])
def test_whole_and_alone(tmp_path, monkeypatch, world, replaces):
    if world == "no files without names":
        _refuse(monkeypatch, "open", lambda arguments: arguments[1] & os.O_TMPFILE == os.O_TMPFILE)
    elif world == "no links of them":
        _refuse(monkeypatch, "link", lambda arguments: True)
    if replaces:
        (tmp_path / "f").write_bytes(OLD)
    _files.write(_folder(tmp_path), "f", NEW, 0o640)
    assert (tmp_path / "f").read_bytes() == NEW
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("named", [False, True])
def test_nothing_stays_of_what_cannot_be_written(tmp_path, monkeypatch, named):
    (tmp_path / "f").mkdir()
    if named:
        _refuse(monkeypatch, "link", lambda arguments: True)
    with pytest.raises(OSError):
        _files.write(_folder(tmp_path), "f", NEW, 0o600)
    assert os.listdir(tmp_path) == ["f"]


def test_a_kill_leaves_nothing(tmp_path):
    script = textwrap.dedent("""
        import os, sys
        from mtc import _files
        holder = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
        print("ready", flush=True)
        for number in range(10**6):
            _files.write(holder, f"f{number}", bytes(300_000), 0o600)
    """)
    for turn in range(20):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(0.002 * turn)
        process.kill()
        process.wait()
        process.stdout.close()
        for path in tmp_path.iterdir():
            assert not path.name.startswith(".") and path.stat().st_size == 300_000
            path.unlink()
