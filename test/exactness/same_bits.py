# SPDX-License-Identifier: Apache-2.0
"""Trains a plan once a configuration and compares what is left: the saved variables byte by byte, the logs digit by
digit.

    same_bits.py PLAN... --data SPEC [--epochs E] [--loaded] [--expect SHA256]
                 --configurations cpu:1 "cpu:3 --private-variables" ...

Every plan and configuration must give the same file. --loaded keeps every CPU busy meanwhile. Another seed must give
another file.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile


def train(plan, configuration, arguments, folder, extra=()):
    """SHA-256 of the saved file, and the logs without their times."""
    devices, *flags = shlex.split(configuration)
    saved = pathlib.Path(folder) / "variables.safetensors"
    command = ["mtrun", "train", plan, "--data", arguments.data, "--validation", arguments.data,
               "--epochs", str(arguments.epochs),
               "--devices", devices, *flags, *extra, "--save", saved, "--json-logs"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{plan}, {configuration}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    logs = [{k: v for k, v in json.loads(line).items() if not k.startswith("seconds")}
            for line in done.stdout.splitlines()]
    return hashlib.sha256(saved.read_bytes()).hexdigest(), logs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="+")
    parser.add_argument("--configurations", nargs="+", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--expect")
    arguments = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count() if arguments.loaded else 0)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            runs = {(p, c): train(p, c, arguments, folder) for p in arguments.plans for c in arguments.configurations}
            other = train(arguments.plans[0], arguments.configurations[0], arguments, folder, ["--seed", "4711"])
    finally:
        for process in busy:
            process.kill()
            process.wait()
    for (plan, configuration), (digest, logs) in runs.items():
        print(f"{digest[:16]}  {pathlib.Path(plan).name}  {configuration}  {logs[-1]}")
    if len({json.dumps(run) for run in runs.values()}) != 1:
        sys.exit("expected one result, found several")
    digest = next(iter(runs.values()))[0]
    if other[0] == digest:
        sys.exit("expected another result for another seed, found the same")
    if arguments.expect and digest != arguments.expect:
        sys.exit(f"expected {arguments.expect}\nfound    {digest}")
    print(f"{len(runs)} runs, one result")


main()
