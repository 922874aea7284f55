# SPDX-License-Identifier: Apache-2.0
"""The reference in docs/python.md, made from the docstrings: `reference.py --write` puts it there.

Without --write it says whether the page has it.
"""

import inspect
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
MARK = "<!-- made by test/python/reference.py from the docstrings -->\n"
sys.path.insert(0, str(ROOT / "python"))

import mtc  # noqa: E402
import mtc.jax  # noqa: E402
import mtc.keras  # noqa: E402
import mtc.torch  # noqa: E402

FUNCTIONS = ["fit", "evaluate", "predict", "compile", "compile_text", "load", "summary", "import_model", "stages",
             "lower", "data_sources", "describe_data", "save_columns", "benchmark_data", "devices", "versions",
             "keras.install", "keras.uninstall", "keras.save_columns",
             "jax.compile", "jax.step",
             *(f"jax.{name}" for name in ("sgd", "adam", "adamw", "lion", "rmsprop", "adagrad")),
             "torch.compile", "torch.step"]
CLASSES = ["Plan", "Session", "Variables", "TensorInfo", "Node", "Dataset", "FitResult", "Progress", "StepResult",
           "Totals", "Timing", "Profile", "ProfileEntry", "jax.Step", "jax.WholeStep", "jax.DeviceArray", "torch.Step",
           "torch.WholeStep", "torch.DeviceArray"]
ERRORS = ["Error", "ModelError", "DataError", "CorruptError", "OutOfMemoryError", "DeviceError", "NoDeviceError",
          "DeviceLost", "FileError", "ClosedError", "ModelWarning", "FallbackWarning",
          "VersionWarning"]
WIDTH = 118


def find(name):
    value = mtc
    for part in name.split("."):
        value = getattr(value, part)
    return value


def heading(name, function):
    """A call with its arguments and defaults, without types."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()
                  if p.name != "self"]
    return f"{name}{inspect.Signature(parameters)}"


def text(docstring):
    """A docstring as Markdown: lists of arguments become lists."""
    lines, out = inspect.cleandoc(docstring or "").splitlines(), []
    for line in lines:
        if re.fullmatch(r"(Args|Returns|Raises|Attributes):", line):
            out += [f"**{line[:-1]}**", ""]
        elif re.fullmatch(r"    \w+: .*", line):
            name, _, rest = line.strip().partition(": ")
            out.append(f"* `{name}`: {rest}")
        elif line.startswith("        "):
            out.append("  " + line.strip())
        elif line == "" and out and out[-1] == "":
            continue
        else:
            out.append(line.strip())
    return "\n".join(out)


def reference():
    parts = []
    for name in FUNCTIONS:
        call = textwrap.wrap(f"mtc.{heading(name, find(name))}", WIDTH, initial_indent=" " * 4,
                             subsequent_indent=" " * 8)
        parts.append(f"### mtc.{name}\n\n" + "\n".join(call) + f"\n\n{text(find(name).__doc__)}")
    for name in CLASSES:
        kind = find(name)
        parts.append(f"### mtc.{name}\n\n{text(kind.__doc__)}")
        if "__init__" in vars(kind) and name == "Session":
            parts.append(f"`mtc.{heading(name, kind.__init__)}`\n\n{text(kind.__init__.__doc__)}")
        members = []
        bases = [base for base in kind.__mro__ if base.__module__.startswith("mtc.")]
        for member, value in {k: v for base in reversed(bases) for k, v in vars(base).items()}.items():
            function = getattr(value, "fget", None) or getattr(value, "func", None) or value
            if member.startswith("_") or not getattr(function, "__doc__", None) or not callable(function):
                continue
            called = heading(member, function) if function is value else member
            line = textwrap.fill(f"* `{called}`", WIDTH, subsequent_indent="  ")
            members.append(f"{line}\n\n  " + first_paragraphs(function.__doc__))
        if members:
            parts.append("\n\n".join(members))
    rows = [f"| `mtc.{name}` | {find(name).code if hasattr(find(name), 'code') else ''} | "
            f"{inspect.cleandoc(find(name).__doc__).split(chr(10) * 2)[0].replace(chr(10), ' ')} |" for name in ERRORS]
    parts.append("### Exceptions and warnings\n\n| class | code | when |\n|---|---|---|\n" + "\n".join(rows))
    return MARK + "\n" + "\n\n".join(parts) + "\n"


def first_paragraphs(docstring):
    """A member's docstring in one list item."""
    lines = text(docstring).splitlines()
    return "\n".join([lines[0], *("  " + line if line else "" for line in lines[1:])])


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before = page.partition(MARK)[0]
    wanted = before + reference()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        sys.exit(f"{PAGE.name}: expected the reference that the docstrings make: run test/python/reference.py --write")
