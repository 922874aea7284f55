# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""No two files include or import each other in a circle, and no import stands in a function to hide one: there it may
only be of what needs a framework that the user may not have."""
import ast
import re

from tree import ROOT, code, files, name, text, verdict

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
FRAMEWORKS = {"jax", "keras", "torch"}


def components(edges):
    """Tarjan's, without recursion."""
    number, low, stack, on, found = {}, {}, [], set(), []
    for start in edges:
        if start in number:
            continue
        work = [(start, iter(sorted(edges.get(start, ()))))]
        number[start] = low[start] = len(number)
        stack.append(start)
        on.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in on:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    members = set()
                    while node not in members:
                        members.add(stack.pop())
                    on -= members
                    if len(members) > 1:
                        found.append(frozenset(members))
    return found


def imports(node, inside=False):
    """(module, whether in a function) for each import that runs; `from m import n` may be of a module m.n."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield (whole if whole in modules else child.module), inside
        elif isinstance(child, ast.Import):
            yield from ((alias.name, inside) for alias in child.names)
        yield from imports(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))


# C++: a unit is a header and the source of the same name.
sources = {name(p): INCLUDE.findall(text(p)) for p in code("compiler", "dialects", "frontend", "runtime", "tools")}
unit = lambda path: re.sub(r"\.(h|cpp|c)$", "", path)
edges = {}
for path, headers in sources.items():
    edges.setdefault(unit(path), set()).update(unit(h) for h in headers if h in sources and unit(h) != unit(path))

# Python: a module that imports one of its package is after the package's __init__ anyway.
modules = {re.sub(r"(/__init__)?\.py$", "", name(p)[len("python/"):]).replace("/", "."): p
           for p in files("python") if p.suffix == ".py"}
found = {module: list(imports(ast.parse(text(p)))) for module, p in modules.items()}
needs = {module: {m for m, inside in list_ if not inside} for module, list_ in found.items()}


def framework(module, seen=()):
    """A framework that the import of a module imports."""
    if module.split(".")[0] in FRAMEWORKS:
        return module.split(".")[0]
    return next((f for m in needs.get(module, ()) if m not in seen for f in [framework(m, (*seen, module))] if f), "")


problems = []
for module, list_ in found.items():
    edges[module] = {m for m, _ in list_ if m in modules and m != module}
    problems += [f"{name(modules[module])}: expected the import of {m} at the top, found it in a function"
                 for m, inside in list_ if inside and m in modules and not framework(m)]
problems += sorted(f"expected no files that need each other, found {' '.join(sorted(c))}" for c in components(edges))
verdict(problems, f"{len(edges)} units")
