# SPDX-License-Identifier: Apache-2.0
"""The machine that a kit is run on: starts its programs, each with a time, and keeps what was found in results.json."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time


class Failure(Exception):
    """A unit did not find what it should. `found`: what it did find."""

    def __init__(self, message, **found):
        super().__init__(message)
        self.found = found


class Skip(Exception):
    """This machine lacks what a unit needs."""


class Late(Exception):
    """The time of a unit is over."""


class Machine:
    def __init__(self, kit, given):
        self.kit, self.given, self.device = kit, given, given.devices
        self.deadline, self.warnings = float("inf"), set()  # of the unit that runs
        path = kit / "plans" / "facts.json"
        if not path.exists():
            sys.exit(f"expected {path}, found none: {kit} is no kit; benchmarks/gpu/kit FOLDER makes one")
        self.facts = json.loads(path.read_text())
        if self.facts["simulated"] != given.simulated:
            sys.exit(f"expected a kit made {'with' if given.simulated else 'without'} --simulated, found another: "
                     f"{kit}")
        self.path = kit / "results.json"
        self.results = json.loads(self.path.read_text()) if self.path.exists() else {"kit": self.facts, "units": {}}
        self.environment = self.make_environment()
        lines = self.run("mtrun", "devices").splitlines()
        self.gpus = sum(line.startswith("cuda:") for line in lines)
        if not self.gpus:
            sys.exit("expected a GPU, found none: " + "; ".join(line for line in lines if line.startswith("cuda")))
        self.known = {}

    def make_environment(self):
        folders = [str(self.kit / "lib"), *libraries(self.given.python),
                   *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        made = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders),
                "PATH": f"{self.kit / 'bin'}:{os.environ['PATH']}",
                "MTC_TEST_KERNELS": str(self.kit / "tests")}
        if subprocess.run([str(self.kit / "bin" / "mtrun"), "--version"], env=made, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            # The C++ library that the kit was made with.
            made["LD_LIBRARY_PATH"] += os.pathsep + str(self.kit / "lib" / "system")
        if self.given.simulated:
            for variable, name in (("CUDA_DRIVER", "cuda"), ("NCCL", "nccl"), ("CUDA_CUBLASLT", "cublasLt"),
                                   ("CUDA_CUDNN", "cudnn")):
                made[f"MTRUN_{variable}"] = str(self.kit / "lib" / f"lib{name}-simulated.so")
            made["MTC_SIM_DEVICES"] = "2"
        else:
            made["MTC_TEST_GPU"] = "1"
        return made

    def run(self, *command, environment=None):
        """What the program prints. It and its children end at the deadline."""
        command = [str(c) for c in command]
        try:
            process = subprocess.Popen(command, universal_newlines=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env=environment or self.environment)
        except OSError as error:
            raise Failure(str(error)) from None
        try:
            left = None if self.deadline == float("inf") else max(0.1, self.deadline - time.time())
            text = process.communicate(timeout=left)[0]
        except subprocess.TimeoutExpired:
            raise Late(f"{' '.join(command)}: not done after {left:.3g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        self.warnings.update(line for line in text.splitlines() if line.startswith("mtrun: warning: "))
        if process.returncode:
            raise Failure(f"{' '.join(command)}: exit code {process.returncode}: {text.strip()[-1500:]}")
        return text

    def json(self, *command, **options):
        """The last object that the program prints."""
        return json.loads([line for line in self.run(*command, **options).splitlines() if line.startswith("{")][-1])

    def plan(self, name):
        return self.kit / "plans" / f"{name}.mtp"

    def has(self, module, test):
        """Whether --python has a module that passes the test; asked once a slice."""
        if module not in self.known:
            done = subprocess.run([self.given.python, "-c", f"import {module}; assert {test}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.known[module] = done.returncode == 0
        return self.known[module]

    def keep(self, name, found):
        self.results["units"][name] = {**found, **({"warnings": sorted(self.warnings)} if self.warnings else {})}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.results, indent=1) + "\n")
        os.replace(part, self.path)

    def check_same(self):
        """Results of one file are of one kind of machine."""
        now = [line for line in self.run("mtrun", "devices").splitlines() if line.startswith("cuda:")]
        if shutil.which("nvidia-smi") and not self.given.simulated:
            now += self.run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split()
        if self.results.setdefault("GPUs", now) != now:
            sys.exit(f"{self.path}: expected the machine whose results it holds ({'; '.join(self.results['GPUs'])}), "
                     f"found {'; '.join(now)}: move it away")


def libraries(python):
    """Folders of NVIDIA's libraries as pip installs them for that Python."""
    try:
        text = subprocess.run([python, "-c", "import sys; print('\\n'.join(sys.path))"], stdout=subprocess.PIPE,
                              universal_newlines=True).stdout
    except OSError:
        return []
    return [str(p) for line in text.splitlines() if line.endswith("packages")
            for p in sorted(pathlib.Path(line).glob("nvidia/*/lib"))]
