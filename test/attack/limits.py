# SPDX-License-Identifier: Apache-2.0
"""Disks that fail or are full, small stacks, files that unpack to more than there is."""
import gzip
import os
import subprocess
import zipfile

from harness import DATA, SOURCE, Skip, attack, newest


@attack("disk-faults", quick=True)
def disk_faults(trial):
    """Errors, short and interrupted calls of write, fsync, rename and close: clean codes, and what is saved resumes to
    the same bits"""
    plan, shim = trial.plan(), trial.tool("lib/disk-faults.so")
    words = ["--epochs", 3, "--checkpoint", "c", "--resume", "auto", "--history", "h"]
    trial.train(plan, *words, "--save", "whole.safetensors")
    whole = (trial.folder / "whole.safetensors").read_bytes()
    faults = [f"{call}:{at}:{what}{plus}" for call in ("write", "fsync", "link", "rename", "close")
              for at in trial.turns((1, 3), (1, 2, 3, 4, 5, 7, 9, 12))
              for what in ("EIO", "ENOSPC") for plus in trial.turns(("",), ("", "+"))]
    faults += [f"write:{at}:{what}" for at in trial.turns((2,), (1, 2, 3, 5, 8))
               for what in ("EINTR", "short", "zero", "short+", "EINTR")]
    for fault in faults:
        subprocess.run(["rm", "-rf", "c", "h.json", "h.csv", "w.safetensors"], check=True, cwd=trial.folder)
        done = trial.expect((0, 7), "mtrun", "train", plan, "--data", DATA, *words, "--save", "w.safetensors",
                            environment={"LD_PRELOAD": shim, "DISK_FAULT": fault}, within=30)
        if done.code not in (0, 7):
            continue
        saved = trial.folder / "w.safetensors"
        if saved.exists() and saved.read_bytes() != whole:
            trial.finding(f"{fault}: other weights: {done}")
        subprocess.run(["rm", "-f", saved], check=True)
        again = trial.train(plan, *words, "--save", "w.safetensors")
        if again.code == 0 and saved.read_bytes() != whole:
            trial.finding(f"{fault}: the run that went on came to other weights")


@attack("no-write", quick=True)
def no_write(trial):
    """A write that takes nothing and says so: an error, not a loop"""
    plan, shim = trial.plan(), trial.tool("lib/disk-faults.so")
    for more in (["--save", "w.safetensors"], ["--history", "h"], ["--checkpoint", "c"]):
        trial.expect(7, "mtrun", "train", plan, "--data", DATA, "--epochs", 1, *more,
                     environment={"LD_PRELOAD": shim, "DISK_FAULT": "write:1:zero+"},
                     within=15)


@attack("small-disk", quick=True)
def small_disk(trial):
    """A full disk for checkpoints: the trained weights are still written elsewhere"""
    plan = trial.plan()
    words = ["unshare", "-rm", "bash", "-c"]
    if subprocess.run([*words, "mount -t tmpfs none /mnt"], capture_output=True).returncode:
        raise Skip("may not mount")
    for size in ("100k", "1300k", "1600k"):
        subprocess.run(["rm", "-f", "w.safetensors"], cwd=trial.folder, check=True)
        script = (f'mount -t tmpfs -o size={size} none /mnt && exec mtrun train {plan} --data "{DATA}" --epochs 3 '
                  '--every-steps 1 --keep 50 '
                  f'--checkpoint /mnt/c --save {trial.folder}/w.safetensors')
        done = trial.expect((0, 7), *words, script)
        if not (trial.folder / "w.safetensors").exists() and "Epoch 3/3" in done.output:
            trial.finding(f"disk of {size}: trained, and no weights anywhere: {done}")


@attack("stack", quick=True)
def stack(trial):
    """Small and unlimited stacks"""
    for name in ("characters", "stripes_cnn", "mnist_cnn"):
        source = SOURCE / "examples" / f"{name}.mlir"
        plan = trial.folder / f"{name}.mtp"
        trial.expect(0, "mtc", "compile", source, "-o", plan, "--batch", 32)
        for limit in ("ulimit -s unlimited", "ulimit -s 256", "ulimit -s 1024"):
            for devices in ("cpu:2", "cpu:1"):
                trial.expect(0, "mtrun", "benchmark", plan, "--steps", 2, "--warmup", 1, "--devices", devices,
                             limits=limit)


@attack("bombs", quick=True)
def bombs(trial):
    """Archives and compressed files that unpack to more than there is, within 1 GiB"""
    plan = trial.plan()
    with gzip.open(trial.folder / "b.csv.gz", "wb", compresslevel=1) as file:
        row = b",".join([b"0"] * 785) + b"\n"
        for _ in range(1000):
            file.write(row * 1000)
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }".ljust(117) + b"\n"
    payload = b"\x93NUMPY\1\0" + (118).to_bytes(2, "little") + header
    with zipfile.ZipFile(trial.folder / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", payload + bytes(100_000_000))
    # One member, named by 500 entries of the directory.
    data = bytearray((trial.folder / "b.npz").read_bytes())
    start = data.rfind(b"PK\1\2")
    end = data.rfind(b"PK\5\6")
    entry, tail = bytes(data[start:end]), bytearray(data[end:])
    entries = b"".join(entry.replace(b"x.npy", f"x{i % 10}{chr(97 + i // 10 % 26)}py".encode()[:5].ljust(5, b"_"))
                       for i in range(500))
    tail[8:10] = tail[10:12] = (500).to_bytes(2, "little")
    tail[12:16] = len(entries).to_bytes(4, "little")
    (trial.folder / "b.npz").write_bytes(bytes(data[:start]) + entries + bytes(tail))
    for spec in ("csv:b.csv.gz", "npz:b.npz"):
        done = trial.run("mtrun", "train", plan, "--data", spec, "--save", "w.safetensors", limits="ulimit -v 2000000")
        if done.code not in (1, 3, 4) or "out of memory" in done.output:
            trial.finding(f"{spec}: expected a limit that is said before memory is out, found {done}")


@attack("memory")
def memory(trial):
    """Little address space: exit code 4 or 5 and a message"""
    plan = trial.plan()

    def train(kilobytes):
        subprocess.run(["rm", "-rf", "c"], cwd=trial.folder, check=True)
        done = trial.run("mtrun", "train", plan, "--data", DATA, "--checkpoint", "c", "--resume", "auto",
                         limits=f"ulimit -v {kilobytes}")
        if done.code not in (0, 1, 4, 5, 127) or (done.code not in (0, 127) and not done.output):
            trial.finding(f"{kilobytes} KiB of address space: {done}")
        return done.code == 0

    # In large steps up to where it is enough, and in small ones where it is not quite.
    enough = next((kilobytes for kilobytes in range(20000, 120000, 1000) if train(kilobytes)), None)
    if enough is None:
        trial.finding("no run had enough memory")
        return
    for kilobytes in range(enough - 2000, enough + 200, 50):
        train(kilobytes)
    train(enough)
    if newest(trial.folder / "c") is None:
        trial.finding(f"no checkpoint of a run in {enough} KiB")
