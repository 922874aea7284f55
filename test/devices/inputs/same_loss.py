# SPDX-License-Identifier: Apache-2.0
"""same_loss.py PLAN [PLAN] --data SPEC --devices A B: the losses of an epoch on both kinds of devices, of one plan or
of a plan for each, are within 1e-5 of each other, or within --tolerance."""
import argparse
import json
import shlex
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("plans", nargs="+")
parser.add_argument("--data", required=True)
parser.add_argument("--devices", nargs=2, required=True)
parser.add_argument("--tolerance", type=float, default=1e-5)
arguments = parser.parse_args()


def losses(plan, devices):
    command = ["mtrun", "train", plan, "--data", arguments.data, "--epochs", "1", "--devices",
               *shlex.split(devices), "--json-logs"]
    logs = [json.loads(line) for line in subprocess.run(command, check=True, capture_output=True,
                                                        text=True).stdout.splitlines()]
    return [log["loss"] for log in logs if "loss" in log]


first, second = map(losses, (arguments.plans * 2)[:2], arguments.devices)
assert first and len(first) == len(second), (first, second)
assert all(abs(a - b) <= arguments.tolerance * abs(a) for a, b in zip(first, second)), (first, second)
