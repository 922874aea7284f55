# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""One file names the private modules of JAX and Keras that the package needs, with the versions that the tests have.
Pages tell nobody to import any."""
import re

from tree import ROOT, files, name, text, verdict

HOME = "python/mtc/_private.py"
PRIVATE = re.compile(r"(?<!mtc\.)\b(?:jax|keras|optax|flax)\.(?:_src|src)\b[\w.]*")
problems = [f"{name(p)}: expected private modules in {HOME} alone, found {found}"
            for p in files("python", "docs", "examples", "README.md")
            if p.suffix in {".py", ".md"} and name(p) != HOME for found in PRIVATE.findall(text(p))]
pins = dict(re.findall(r"^(\w+)==([\d.]+)$", text(ROOT / "test/python/requirements-frameworks.txt"), re.M))
said = dict(re.findall(r"\b(jax|keras) (\d+\.\d+\.\d+)", text(ROOT / HOME)))
problems += [f"{HOME}: expected {module} {pins[module]}, as the tests have, found {said.get(module)}"
             for module in ("jax", "keras") if said.get(module) != pins[module]]
verdict(problems, "private modules")
