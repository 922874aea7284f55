# SPDX-License-Identifier: Apache-2.0
# RUN: env MTC_BUILD=%build %python %s
"""README.md and docs/ name files that exist, README's map names every top folder, and its commands are ones the tools
have."""
import pathlib
import re
import subprocess
import tempfile

from tree import BUILD, ROOT, files, name, text, verdict

problems = []
readme = text(ROOT / "README.md")
folders = {name(p).split("/")[0] for p in files() if "/" in name(p)} - {".ci", ".github"}
mapped = set(re.findall(r"`(\w+)/`", readme))
problems += [f"README.md: expected a line on `{f}/`, found none" for f in sorted(folders - mapped)]
problems += [f"README.md: `{f}/` is not there" for f in sorted(mapped - folders)]

FOLDERS = r"\.ci|benchmarks|compiler|dialects|docs|examples|frontend|packaging|python|runtime|test|tools"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
for page in [ROOT / "README.md", *(p for p in files("docs") if p.suffix == ".md")]:
    for path in PATH.findall(text(page)):
        if re.search(r"\b[A-Z]{4,}\b", path):
            continue  # a pattern: compiler/STAGE/Name.cpp
        if not (ROOT / path).exists() and not list(ROOT.glob(path + ".*")):
            problems.append(f"{name(page)}: `{path}` is not there")
    problems += [f"{name(page)}: link to {l} leads nowhere"
                 for l in LINK.findall(text(page)) if not (page.parent / l).exists()]

for tool, command in sorted(set(re.findall(r"^\s*(?:\$ )?(mtc|mtrun) (\w+) ", readme, re.M))):
    program = BUILD / "bin" / tool
    if program.exists() and subprocess.run([program, command, "--help"], capture_output=True).returncode:
        problems.append(f"README.md: '{tool} {command}' is no command")
for script in sorted(set(re.findall(r"^\s*(?:\$ )?((?:tools|benchmarks|\.ci)/\w+)", readme, re.M))):
    if not (ROOT / script).exists():
        problems.append(f"README.md: {script} is not there")
mtc = BUILD / "bin" / "mtc"
program = "\n".join(line[4:] for line in re.findall(r"^    (?:mt\.model|  (?:%|mt\.)|\}).*$", readme, re.M))
if mtc.exists():
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "readme.mlir"
        model.write_text(program + "\n")
        done = subprocess.run([mtc, "compile", model, "-o", model.with_suffix(".mtp")], capture_output=True, text=True)
        if done.returncode:
            problems.append(f"README.md: its program does not compile:\n{done.stderr}")
verdict(problems, "README and docs")
