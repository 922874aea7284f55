# SPDX-License-Identifier: Apache-2.0
# RUN: env MTC_BUILD=%build %python %s
"""The libraries export the C API and nothing else, carry a SONAME, and libmtrun.so needs no LLVM."""
import re
import subprocess

from tree import BUILD, LLVM, verdict


def run(tool, *arguments):
    return subprocess.run([LLVM / tool, *arguments], check=True, capture_output=True, text=True).stdout


problems = []
ALLOWED = {"mtc": r"mt_|mtc_", "mtrun": r"mt_|mtrun_", "mtrun-images": r"mtrun_images_"}
SANITIZER = r"__(asan|ubsan|tsan|sanitizer|lsan|odr_asan|start_|stop_)|_ZTS|_ZTI|_ZN?.*sanitizer"
for library, pattern in ALLOWED.items():
    path = BUILD / "lib" / f"lib{library}.so"
    if not path.exists():
        problems.append(f"{path.name}: expected a library, found none")
        continue
    for symbol in run("llvm-nm", "-D", "--defined-only", "--format=just-symbols", path).split():
        symbol = symbol.split("@")[0]
        if not re.match(pattern, symbol) and not re.match(SANITIZER, symbol):
            problems.append(f"{path.name}: exports {symbol}; expected {pattern.replace('|', '*, ')}* alone")
    dynamic = run("llvm-readelf", "-d", path)
    if not re.search(rf"soname: \[lib{library}\.so\.\d", dynamic):
        problems.append(f"{path.name}: expected a SONAME with a version, found none")
    if library == "mtrun":
        problems += [f"{path.name}: must not need {lib}"
                     for lib in re.findall(r"Shared library: \[(lib(?:jpeg|png)[^\]]*)", dynamic)]
        problems += [f"{path.name}: must not need {lib}"
                     for lib in re.findall(r"Shared library: \[(lib(?:LLVM|MLIR|lld)[^\]]*)", dynamic)]
mtrun = BUILD / "bin" / "mtrun"
if mtrun.exists():
    problems += [f"mtrun: must not need {lib}"
                 for lib in re.findall(r"Shared library: \[(lib(?:LLVM|MLIR|lld)[^\]]*)",
                                       run("llvm-readelf", "-d", mtrun))]
verdict(problems, "symbols")
