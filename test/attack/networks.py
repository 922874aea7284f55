# SPDX-License-Identifier: Apache-2.0
"""Strangers who connect to process 0 of a run on several hosts."""
import hashlib
import hmac
import os
import socket
import struct
import subprocess
import sys
import time

from harness import SOURCE, attack

SECRET = "the secret of this attack"
MARK = b"mtrun processes\n"


class Run:
    """Process 0 of two on simulated GPUs, which listens; the second is started by meet()."""

    def __init__(self, trial, timeout=20):
        self.trial = trial
        if not (trial.folder / "m.mtp").exists():
            subprocess.run([trial.tool("test/simulated_cuda/make-gpu-plan"), "m.mtp"], check=True, cwd=trial.folder)
            subprocess.run([sys.executable, SOURCE / "test/devices/inputs/samples.py", "x.npy", "y.npy"], check=True,
                           cwd=trial.folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.common = {"MTRUN_CUDA_DRIVER": trial.tool("lib/libcuda-simulated.so"),
                       "MTRUN_NCCL": trial.tool("lib/libnccl-simulated.so"),
                       "MTC_SIM_DEVICES": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port),
                       "OMPI_COMM_WORLD_SIZE": "2",
                       "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "MTC_SECRET": SECRET}
        self.timeout = timeout
        self.first = self.process(0)
        self.begin = time.monotonic()
        while self.dial() is None and self.first.poll() is None and time.monotonic() < self.begin + 30:
            time.sleep(0.02)

    def process(self, rank):
        return self.trial.start("mtrun", "train", "m.mtp", "--data", "npy:x.npy,y.npy", "--epochs", 1,
                                "--devices", "cuda:0-1", "--timeout", self.timeout,
                                "--save", "w.safetensors",
                                environment={**self.common, "OMPI_COMM_WORLD_RANK": str(rank),
                                             "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)})

    def dial(self, host="127.0.0.1"):
        made = socket.socket()
        made.settimeout(10)
        try:
            made.connect((host, self.port))
            return made
        except OSError:
            made.close()
            return None

    def processor_seconds(self):
        """What process 0 has used of a CPU so far."""
        fields = open(f"/proc/{self.first.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        return next(int(line.split()[1]) << 10 for line in open(f"/proc/{self.first.pid}/status")
                    if line.startswith("VmHWM"))

    def meet(self, what):
        """The second process comes, and both train."""
        if self.first.poll() is not None:
            self.trial.finding(f"{what}: process 0 ended with exit code {self.first.returncode}: "
                               f"{self.first.stdout.read().decode(errors='replace')}")
            return
        begin = time.monotonic()
        second = self.process(1)
        outputs = [each.communicate(timeout=60)[0].decode(errors="replace") for each in (second, self.first)]
        if (second.returncode, self.first.returncode) != (0, 0):
            self.trial.finding(f"{what}: exit codes {self.first.returncode} and {second.returncode}:\n"
                               + "\n".join(outputs))
        elif time.monotonic() - begin > 15:
            self.trial.finding(f"{what}: the run took {time.monotonic() - begin:.0f} s")


def message(kind, text):
    return kind + struct.pack("<I", len(text)) + text


def drain(connection, limit=1 << 16):
    """What comes until the other closes or says nothing for a second."""
    got = b""
    connection.settimeout(1)
    try:
        while len(got) < limit and (some := connection.recv(4096)):
            got += some
    except OSError:
        pass
    return got


@attack("strangers-messages", quick=True)
def strangers_messages(trial):
    """Messages before a greeting: the end of the run, another agreement, escapes for the terminal"""
    run = Run(trial)
    for bytes_ in (message(b"x", b"7\033[31mowned"),
                   message(b"h", b"mtrun processes 1\n1\nmallory\nprocesses: 2\nplan: 0"), message(b"s", b"id"),
                   message(b"e", b"99"), b"\0" * 48, os.urandom(48), MARK + bytes(16),
                   b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
        for padding in (b"", b"x" * 64):
            connection = run.dial()
            if connection is None:
                break
            try:
                connection.sendall(bytes_ + padding)
                drain(connection, 4096) if padding else None
            except OSError:
                pass
            connection.close()
    run.meet("messages before a greeting")


@attack("strangers-streams", quick=True)
def strangers_streams(trial):
    """Streams of zeros, and behind a length of 2^32 - 1: closed at once, no CPU, no memory"""
    run = Run(trial)
    used, memory = run.processor_seconds(), run.memory()
    for begin in (b"", b"x\xff\xff\xff\xff", b"h\0\0\0\0"):
        connection, sent, until = run.dial(), 0, time.monotonic() + 5
        if connection is None:
            break
        try:
            connection.sendall(begin)
            while sent < 256 << 20 and time.monotonic() < until:
                sent += connection.send(bytes(1 << 16))
        except OSError:
            pass
        if sent >= 16 << 20:
            trial.finding(f"a stranger sent {sent >> 20} MiB behind {begin!r}, and nobody closed the connection")
        connection.close()
    if run.first.poll() is None and (run.processor_seconds() - used > 1 or run.memory() - memory > 32 << 20):
        trial.finding(f"strangers cost {run.processor_seconds() - used:.1f} s of CPU and "
                      f"{(run.memory() - memory) >> 20} MiB")
    run.meet("streams")


@attack("strangers-silent", quick=True)
def strangers_silent(trial):
    """Silent connections, which each took five seconds"""
    run = Run(trial, timeout=12)
    silent = [run.dial() for _ in range(trial.turns(50, 600))]
    run.meet("silent strangers")
    del silent


@attack("strangers-secret", quick=True)
def strangers_secret(trial):
    """Who does not know the secret cannot become process 1, nor with the proof of another connection"""
    run = Run(trial)
    for secret in (b"", b"another secret of mine", SECRET[:-1].encode()):
        connection = run.dial()
        challenge = drain(connection, 32)[:32] if connection else b""
        if not challenge.startswith(MARK):
            trial.finding(f"process 0 asks a stranger for no proof: {challenge!r}")
            break
        mine = os.urandom(16)
        connection.sendall(mine + hmac.new(secret, b"connects" + challenge[16:] + mine, hashlib.sha256).digest())
        answer = drain(connection)
        if answer:
            trial.finding(f"somebody with another secret was answered {answer!r}")
        connection.close()
    run.meet("proofs of another secret")


@attack("strangers-address", quick=True)
def strangers_address(trial):
    """Asked for 127.0.0.1, process 0 listens there and nowhere else; and nowhere without a secret"""
    run = Run(trial)
    if run.dial("127.0.0.2"):
        trial.finding("process 0 listens at more than the named address")
    run.meet("another address")
    run.common.pop("MTC_SECRET")
    without = run.process(0)
    output = without.communicate(timeout=30)[0].decode(errors="replace")
    if without.returncode != 1 or "MTC_SECRET" not in output:
        trial.finding(f"without a secret: expected exit code 1 and what to do, found {without.returncode}: {output}")
