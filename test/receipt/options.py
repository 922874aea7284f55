# SPDX-License-Identifier: Apache-2.0
"""options.py SOURCE < HELP: each option of mtrun train is in exactly one of three lists: the options that change the
bits of a run, in runtime/receipt/RunOptions.cpp; those that other members of a receipt's first line cover; and
the rest, which change no bits."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "python"))
from mtc import _headers

COVERED = {  # by another member, or by the hash of the variables at step 0
    "--seed": "run.seed", "--data": "data.train", "--validation": "data.validation", "--load": "step 0",
    "--receipt-every": "every", "--libraries": "class", "--tuning": "class",
    "--allow-nan": "no receipt", "--learning-rate": "run.learning_rate", "--lr-scaling": "run.rate_scale",
    "--base-batch": "run.rate_scale", "--validation-split": "run.validation_split",
    "--strict": "data.train.samples"}
NEUTRAL = set("""--help --devices --cpu --no-pin --no-spin --private-variables --verbose --processes --timeout
    --steps-per-launch --micro-batches --save --json-logs --epochs --more-epochs --checkpoint --epoch-file --every-steps
    --every-epochs --every-seconds --keep --resume --force --run --history --tensorboard --best-only --weights-only
    --checkpoint-monitor --restore-best --trace --profile --unchecked-ids --receipt
    --hash-launches --launch-file --rescue --weights --shard-optimizer""".split())
source = (pathlib.Path(sys.argv[1]) / "runtime/receipt/RunOptions.cpp").read_text()
members = set(re.findall(r'^    \{"(\w+)", &Options::\1\},$', source, re.M))
flags = {option.field.name: option.flags.split(",")[0] for option in _headers.options("mtrun_loop_options")}
plan = {flag for option in _headers.options("mtc_options") if option.shared for flag in option.flags.split(",")}
recorded = {flags[member] for member in members if member in flags}
given = set(re.findall(r"^ +(?:-\w, *)?(--[a-z][a-z-]*)", sys.stdin.read(), re.M)) - plan
covered = set(COVERED)
problems = [f"{flag} is in two lists" for flag in sorted(recorded & NEUTRAL | recorded & covered | NEUTRAL & covered)]
problems += [f"{flag}: expected a row in RunOptions.cpp, or a place in a list of this test, found none"
             for flag in sorted(given - recorded - NEUTRAL - covered)]
problems += [f"{flag} is no option of mtrun train" for flag in sorted((recorded | NEUTRAL | covered) - given)]
if len(recorded) < 10 or len(given) < 40:
    problems.append(f"expected options, found {len(recorded)} recorded of {len(given)}")
if problems:
    sys.exit("\n".join(problems))
