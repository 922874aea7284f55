# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of README and docs/, which the tests of pages run one after the other, in one namespace per page.

A block is Python if it parses as Python and does something: it imports, assigns, defines or calls. Blank lines do not
end a block. A block after <!-- test: skip REASON --> is left out, and so are the signatures under "## Reference", which
test/python/reference.test compares with the package.
"""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERAS = {"README.md", "docs/from-keras.md", "docs/inspect.md", "docs/keras.md", "docs/keras-traces.md",
         "docs/python.md"}  # of test_pages.py
FRAMEWORKS = {"docs/guides/fine-tune.md", "docs/guides/science.md", "docs/import.md", "docs/jax.md",
              "docs/pytorch.md"}  # of test_pages_frameworks.py, and test_torch_guide.py
DOES = (ast.Import, ast.ImportFrom, ast.Assign, ast.Call, ast.FunctionDef, ast.ClassDef)


def _code(text):
    """Yields (is skipped, code) of every block, indented or fenced."""
    skip, lines, fenced = False, [], False
    for line in [*text.splitlines(), "end"]:
        if fenced and line.strip() != "```":
            lines.append(line)
        elif not fenced and (line.startswith("    ") or (lines and not line.strip())):
            lines.append(line[4:])
        else:
            if lines:
                yield skip, "\n".join(lines).strip("\n")
                skip, lines = False, []
            if line.startswith("```"):
                fenced = not fenced
            elif line.strip():
                skip = line.startswith("<!-- test: skip")


def _is_python(code):
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return False
    return any(isinstance(node, DOES) for node in ast.walk(tree))


def blocks(page):
    """The Python blocks of a page, as the readers see them."""
    text = re.split(r"^## Reference$", (ROOT / page).read_text(), flags=re.MULTILINE)[0]
    return [code for skip, code in _code(text) if not skip and _is_python(code)]


def run(page, names):
    """Runs the blocks of a page in the namespace `names`, and yields the number of each when it is done."""
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page}, Python block {number + 1}", "exec"), names)
        yield number


def pages():
    """README and every page of docs/ that has Python blocks."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(page.relative_to(ROOT)) for page in found if blocks(page)}
