# SPDX-License-Identifier: Apache-2.0
"""moved.py PLAN DEVICES: with private variables, a step moves as many bytes as `mtc inspect` says it will."""
import json
import subprocess
import sys

plan, devices = sys.argv[1], int(sys.argv[2])


def output(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


program = next(p for p in output("mtc", "inspect", plan, "--json")["programs"] if p["name"] == "train_step")
said = sum(m["total_bytes"] for c in program["collectives"] for m in c["moved"] if m["devices"] == devices)
moved = output("mtrun", "benchmark", plan, "--devices", f"cpu:{devices}", "--private-variables", "--steps", "1",
               "--json")["collective_bytes"]
print(f"{devices} devices: inspect says {said} bytes a step, {moved} moved")
sys.exit(said != moved or said == 0)
