# SPDX-License-Identifier: Apache-2.0
"""What attacks share: a folder, the tools of a build, a small model and its data, and outcomes that count as
findings."""
import os
import pathlib
import shutil
import signal
import struct
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = f"mnist:{SOURCE}/examples/mnist,split=test,range=0:203"
LIMIT = 60  # seconds after which a command hangs
STOPPED = 75

MODEL = """mt.model @{model} {{
  %x = mt.input "image" : tensor<?x784xf32>
  %y = mt.target "label" : tensor<?xi32>
  %w = mt.variable "{variable}" init(glorot_uniform) : tensor<784x10xf32>
  %b = mt.variable "bias" init(zeros) : tensor<10xf32>
  %z = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x10xf32>
  %logits = mt.add %z, %b : tensor<?x10xf32>, tensor<10xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %y from_logits : tensor<?x10xf32>, tensor<?xi32>
  %hit = mt.sparse_categorical_accuracy %logits, %y : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.metric "{metric}", %hit : tensor<?xf32>
  mt.output "logits", %logits : tensor<?x10xf32>
  {optimizer}
}}
"""

attacks = {}
plans = {}  # that were compiled: by text and batch


class Skip(Exception):
    """This machine or build cannot run it."""


def attack(name, quick=False):
    """Registers a function of a Trial. `quick`: it takes a few seconds and runs in the normal tests."""
    def register(function):
        function.quick = quick
        attacks[name] = function
        return function
    return register


def processor_seconds():
    """Of the commands that have ended: on a machine that does other things, too, the clock says little."""
    return os.times().children_user + os.times().children_system


class Outcome:
    def __init__(self, line, code, output, seconds, cpu):
        self.line, self.code, self.output, self.seconds, self.cpu = line, code, output, seconds, cpu

    def crashed(self):
        return self.code < 0 or self.code in (134, 135, 136, 137, 139) or "Sanitizer" in self.output

    def __str__(self):
        code = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"{code} after {self.seconds:.1f} s: {self.line}\n{self.output[-600:]}"


class Trial:
    """A folder of its own for an attack, and what it found."""

    def __init__(self, folder, build, quick, chance):
        self.folder, self.build, self.quick, self.chance = folder, build, quick, chance
        self.findings, self.skipped, self.started = [], "", []
        self.environment = {**os.environ, "PATH": f"{build}/bin:{os.environ['PATH']}"}

    def finding(self, text):
        self.findings.append(str(text))

    def turns(self, quick, full):
        return quick if self.quick else full

    def tool(self, path):
        found = self.build / path
        if not found.exists():
            raise Skip(f"expected {found}, found none")
        return str(found)

    def start(self, *words, limits="", environment=None, **keys):
        command = [str(word) for word in words]
        if limits:  # of the shell
            command = ["bash", "-c", f'{limits}; exec "$@"', "bash", *command]
        self.started.append(subprocess.Popen(command, cwd=self.folder, env={**self.environment, **(environment or {})},
                                             stdin=subprocess.DEVNULL,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **keys))
        return self.started[-1]

    def end(self):
        """No process outlives its attack."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def run(self, *words, limits="", environment=None, within=LIMIT):
        """The outcome of a command. One that hangs, or is ended by a signal, is a finding."""
        import time
        begin, used = time.monotonic(), processor_seconds()
        process = self.start(*words, limits=limits, environment=environment)
        line = " ".join(str(word) for word in words)
        try:
            output = process.communicate(timeout=within)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0]
            self.finding(f"hung, more than {within} s: {line}\n{output.decode(errors='replace')[-600:]}")
        outcome = Outcome(line, process.returncode, output.decode(errors="replace"), time.monotonic() - begin,
                          processor_seconds() - used)
        if outcome.crashed() and process.returncode != -signal.SIGKILL:
            self.finding(f"crashed: {outcome}")
        return outcome

    def expect(self, codes, *words, says="", **keys):
        """A command that must exit with one of the codes and say so."""
        codes = (codes,) if isinstance(codes, int) else codes
        outcome = self.run(*words, **keys)
        if outcome.code not in codes and not outcome.crashed():
            self.finding(f"expected exit code {' or '.join(map(str, codes))}, found {outcome}")
        elif says and says not in outcome.output:
            self.finding(f"expected \"{says}\", found {outcome}")
        return outcome

    def compile(self, text, name="model.mtp", batch=64, codes=0, **keys):
        if not (self.build / "bin" / "mtc").exists() and not shutil.which("mtc"):
            raise Skip("no mtc")
        source = self.folder / (name + ".mlir")
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.expect(codes, "mtc", "compile", source, "-o", self.folder / name, "--batch", batch, **keys)

    def plan(self, name="model.mtp", batch=64, optimizer="mt.adam <{learning_rate = 1.0e-3 : f32}>", model="small",
             variable="kernel",
             metric="accuracy"):
        """A plan of the small model, compiled once."""
        text, path = MODEL.format(model=model, variable=variable, metric=metric,
                                  optimizer=optimizer), self.folder / name
        if (text, batch) not in plans:
            self.compile(text, name, batch)
            plans[text, batch] = path.read_bytes()
        path.write_bytes(plans[text, batch])
        return path

    def train(self, plan, *words, codes=0, data=DATA, **keys):
        return self.expect(codes, "mtrun", "train", plan, "--data", data, *words, **keys)

    def craft(self, *words):
        subprocess.run([self.tool("test/attack/craft"), *map(str, words)], check=True, cwd=self.folder)


def npy(path, shape, code, values):
    """A NumPy file of little-endian numbers; code: <f4, <i4, <i8, |u1."""
    letter = {"<f4": "f", "<i4": "i", "<i8": "q", "|u1": "B"}[code]
    header = repr({"descr": code, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{letter}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data)


def newest(folder):
    """The newest checkpoint of a folder, or None."""
    found = sorted(pathlib.Path(folder).glob("step-*"))
    return found[-1] if found else None
