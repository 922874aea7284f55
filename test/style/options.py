# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""An option is described once: every field of an option struct has a flag in its comment, or a reason here why not."""
import sys

from tree import ROOT, text, verdict

sys.path.insert(0, str(ROOT / "python"))
from mtc import _headers  # noqa: E402

CALLERS = {"struct_size", "log", "log_user"}  # of any struct: not what a command line could say
SET_BY_MTRUN = {  # of what another flag or the environment says
    "mtc_options": set(),
    "mtrun_options": {"devices", "processes", "process", "local_process", "rendezvous", "secret", "force",
                      "compare_tensors"},
    "mtrun_checkpoint_options": {"folder"},
    "mtrun_loop_options": {"validation", "progress", "progress_user", "checkpoint", "history_json", "history_csv",
                           "stop", "stop_user", "note", "note_user", "result", "rate_scale", "epoch_file", "in_flight",
                           "learning_rate", "validation_split", "validation_last", "epoch_begin"},
}

MTC, MTRUN = text(ROOT / "tools/mtc/Arguments.cpp"), text(ROOT / "tools/mtrun/Options.cpp")

problems, count = [], 0
for struct, without in SET_BY_MTRUN.items():
    flags = {option.field.name for option in _headers.options(struct)}
    count += len(flags)
    for group in sorted({option.group for option in _headers.options(struct)}):
        if f'"{group}"' not in (MTC if struct == "mtc_options" else MTRUN):
            problems.append(f"{struct}: expected the group '{group}' in a command, found it in none")
    for field in _headers.fields(struct):
        if (field.name in flags) == (field.name in CALLERS | without):
            problems.append(f"{struct}.{field.name}: expected either a flag in its comment or a reason in this test")
verdict(problems, f"{count} flags")
