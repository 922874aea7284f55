# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""A stage of the compiler includes headers of its own and of earlier stages; what stages tell each other by attributes
is spelled in one file."""
import re

from tree import ROOT, code, name, text, verdict

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
STAGES = ["frontend", "compiler/differentiate", "compiler/shard", "compiler/fuse", "compiler/recompute",
          "compiler/schedule", "compiler/allocate", "compiler/codegen", "compiler/plan", "compiler/inspect",
          "compiler/api"]
# Inside of code generation: neither of CPUs and GPUs knows of the other.
FORBIDDEN = {"compiler/codegen/common": ("compiler/codegen/cpu", "compiler/codegen/gpu"),
             "compiler/codegen/cpu": ("compiler/codegen/gpu",), "compiler/codegen/gpu": ("compiler/codegen/cpu",)}


def stage(path):
    return next((i for i, s in enumerate(STAGES) if path.startswith(s + "/")), None)


sources = {name(p): INCLUDE.findall(text(p)) for p in code("compiler", "dialects", "frontend", "runtime", "tools")}
problems = []
for path, headers in sources.items():
    for header in headers:
        here, there = stage(path), stage(header)
        backwards = here is not None and there is not None and there > here
        backwards |= any(path.startswith(f + "/") and header.startswith(tuple(t + "/" for t in to))
                         for f, to in FORBIDDEN.items())
        if backwards:
            problems.append(f"{path}: expected headers of its own or of earlier stages, found {header}")

# A unit is a header and the source of the same name.
unit = lambda path: re.sub(r"\.(h|cpp|c)$", "", path)

# Facts between stages: no other file may have these words.
SPELLING = "dialects/mt/Compilation"
words = {w for p in sources if unit(p) == SPELLING for w in re.findall(r'"mt\.\w+"', text(ROOT / p))}
problems += [f"{p}: expected no {w} outside of {SPELLING}.h" for p in sources if unit(p) != SPELLING
             for w in sorted(words) if w in text(ROOT / p)]
problems += [f"{p}: expected an attribute of {SPELLING}.h, found '{found}'" for p in sources if unit(p) != SPELLING
             for found in re.findall(r'Attr(?:OfType<\w+>)?\("mt\.\w*', text(ROOT / p))]
verdict(problems, f"{len(STAGES)} stages, {len({unit(p) for p in sources})} units")
