# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""An option is described once: every field of an option struct has a row that gives its flag, or a reason why not, and
every flag is on a page."""
import re

from tree import ROOT, files, name, text, verdict

HEADERS = {"mtc_options": "runtime/abi/mtc.h", "mtrun_options": "runtime/abi/mtrun_session.h",
           "mtrun_checkpoint_options": "runtime/abi/mtrun_loop.h", "mtrun_loop_options": "runtime/abi/mtrun_loop.h"}
MTC, MTRUN = "compiler/api/OptionTable.h", "tools/mtrun/Options.cpp"
MEMBERS = {"mtrun_options": "session", "mtrun_checkpoint_options": "saving", "mtrun_loop_options": "loop"}
CALLERS = {"struct_size", "log", "log_user"}  # of any struct: not what a command line could say
SET_BY_MTRUN = {  # without a flag of that name, or of what another flag says
    "mtrun_options": {"devices", "process", "local_process", "rendezvous", "secret", "force"},
    "mtrun_checkpoint_options": {"folder"},
    "mtrun_loop_options": {"validation", "progress", "progress_user", "checkpoint", "history_json", "history_csv",
                           "stop", "stop_user", "note", "note_user", "result", "rate_scale", "epoch_file", "in_flight",
                           "learning_rate", "validation_split", "validation_last", "epoch_begin"},
}


def fields(struct):
    body = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", text(ROOT / HEADERS[struct]), re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    found = re.findall(r"\(\*(\w+)\)", body)
    for declaration in re.sub(r"\(\*\w+\)\([^)]*\)", "", body).split(";"):
        found += re.findall(r"(\w+)\s*(?:,|$)", declaration.strip())
    return [f for f in found if f not in {"int", "void"}]


problems = []
rows = dict(re.findall(r'\.flags = "([^"]+)", \.field = &mtc_options::(\w+)', text(ROOT / MTC)))
for field in fields("mtc_options"):
    if field not in CALLERS and field not in rows.values():
        problems.append(f"{HEADERS['mtc_options']}: expected a row of {MTC} for the field {field}, found none")
commands = text(ROOT / MTRUN)
for struct, member in MEMBERS.items():
    for field in fields(struct):
        bound = re.search(rf"\ba\.{member}\.{field}\b", commands)
        if not bound and field not in CALLERS | SET_BY_MTRUN[struct]:
            problems.append(f"{HEADERS[struct]}: expected a flag of {MTRUN} for {struct}.{field}, found none")
pages = "".join(text(p) for p in [ROOT / "README.md", *files("docs")] if p.suffix == ".md")
added = re.sub(r'^    {"--.*$', "", commands, flags=re.M)  # without the hints for words of other tools
flags = [f for names in rows for f in names.split(",")] + re.findall(r'"(?:-\w,)?(--[a-z-]+)(?:"|,)', added)
for flag in sorted(set(flags)):
    if not re.search(rf"{flag}\b(?!-)", pages):
        problems.append(f"expected the option {flag} on a page of docs/, found it on none")
verdict(problems, f"{len(rows)} rows of mtc, {len(set(flags))} flags")
