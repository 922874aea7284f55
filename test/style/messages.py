# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Messages to users are lower case and end without a period."""
import re

from tree import files, name, text, verdict

CALL = re.compile(r'\b(?:emitError|emitOpError|emitWarning|fail|failure|makeError|makeStatus|invalid|corrupt|error)'
                  r'\s*\((?:[^"();]*,\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)\s*\)?')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Names that are written with capitals wherever they stand.
PROPER = re.compile(r"^(R|N|B|K|M|L|IDX|ELF|MLIR|LLVM|CPU|GPU|XXH3|FlatBuffers?|SONAME|Philox|AVX|JSON|I/O)\b")
problems = []
for p in files("compiler", "dialects", "frontend", "runtime", "tools"):
    if p.suffix not in {".cpp", ".h"}:
        continue
    source = text(p)
    for call in CALL.finditer(source):
        message = "".join(QUOTED.findall(call.group(1)))
        where = f"{name(p)}:{source.count(chr(10), 0, call.start()) + 1}"
        if re.match(r"[A-Z][a-z]", message) and not PROPER.match(message):
            problems.append(f"{where}: expected lower case, found '{message}'")
        if call.group().endswith(")") and message.endswith(".") and not message.endswith("..."):
            problems.append(f"{where}: expected no period at the end, found '{message}'")
verdict(problems, "messages")
