# SPDX-License-Identifier: Apache-2.0
"""run.py PAGE.md [--long]: runs the commands of a page, one after the other, and prints them with what they print.

A block of code, indented or fenced, holds commands if each of its lines begins with a program that a reader has, or if
some begin with "$ "; in the latter what follows a command is what it prints, but for times, the bytes of a plan's file
and the CPU's name. A line that ends with a backslash goes on in the next one. Each command must succeed. A comment
before a block says what is done with it: <!-- test: skip REASON --> leaves it out, <!-- test: long --> too, unless
--long asks for these blocks alone.
"""
import pathlib
import re
import subprocess
import sys

PROGRAMS = {"mtc", "mtrun", "mt-opt", "mt-interpret", "generate", "cmp", "head", "cp", "cmake", "ninja", "python3",
            "python", "make-pictures", "gcc", "cc", "docker", "sudo", "mpirun", "srun", "torchrun", "ssh-keygen",
            "tools/setup", "tools/check", "tools/quickstart", "packaging/deb/build", "packaging/wheels/build",
            "benchmarks/run", "benchmarks/gpu/kit", "KIT/run", "benchmarks/input", ".ci/run", "lit", "pip"}
MARK = re.compile(r"<!-- test: (skip|long)\b *(.*?) *-->")


def blocks(text):
    """Yields (mark, reason, lines) of every block of code."""
    mark, reason, lines, fence = None, "", [], None
    for line in text.splitlines() + [""]:
        if fence is not None:
            if line.strip() == fence:
                yield mark, reason, lines
                mark, lines, fence = None, [], None
            else:
                lines.append(line)
        elif line.startswith("    ") and line.strip():
            lines.append(line[4:])
        else:
            if lines:
                yield mark, reason, lines
                mark, lines = None, []
            if found := MARK.fullmatch(line.strip()):
                mark, reason = found.groups()
            elif line.startswith("```"):
                fence = "```"


def is_command(line):
    words = line.split("#")[0].split()
    while words and (words[0] == "!" or re.fullmatch(r"\w+=\S*", words[0])):
        words = words[1:]
    return bool(words) and words[0] in PROGRAMS


def commands(lines):
    """Of a block: [command, [line of output...] or None]; nothing if it holds no commands."""
    lines = re.sub(r"\\\n\s*", "", "\n".join(lines)).split("\n")
    if any(line.startswith("$ ") for line in lines):
        found = []
        for line in lines:
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif found:
                found[-1][1].append(line)
        return found
    return [[line, None] for line in lines] if lines and all(is_command(line) for line in lines) else []


def timeless(line):
    line = re.sub(r"\b\d+(\.\d+)?( ?)(s|ms|us)\b", r"T", line)
    # The line before it says the plan's size in KiB, which is compared.
    line = re.sub(r"(\.mtp: )\d+ bytes in", r"\1N bytes in", line)
    return re.sub(r"x86-64-v\d", "x86-64-vN", line).rstrip()


def run(command, expected):
    print("$", command.strip(), flush=True)
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL,
                          text=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}")
    # On a busy machine a run may say that it waited.
    printed = [line for line in done.stdout.splitlines() if not line.startswith("the devices waited for data")]
    if expected and [timeless(line) for line in expected] != [timeless(line) for line in printed]:
        sys.exit("the page says that it prints\n" + "\n".join(expected))


def main():
    long = "--long" in sys.argv[2:]
    for mark, _, lines in blocks(pathlib.Path(sys.argv[1]).read_text()):
        if mark == "skip" or (mark == "long") != long:
            continue
        for command, expected in commands(lines):
            run(command, expected)


if __name__ == "__main__":
    main()
