# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""An op knows itself: fusion and code generation ask it through its interfaces and traits, and keep no lists of ops.

A file may ask for a few ops by their types: the one whose code it writes, and reductions or constants, which have a
form of their own in code. What looks for more of them, or for one of several at once, is a list that every new op would
have to be added to."""
import re

from tree import code, name, text, verdict

MOST = 3
OP = r"(?:mlir::)?(?:mt|ops)::(\w+Op)\b"
ASKS = re.compile(r"(?:isa|isa_and_nonnull|dyn_cast|dyn_cast_or_null|cast|IsaPred|getDefiningOp|getOps)<([^;(){}]*?)>"
                  r"|\.Case\(\[&\]\(([^)]*)\)")
ALLOWED = {  # file: (what it may ask for in one place, how many in all, why)
    "compiler/codegen/common/Statements.cpp": (1, 4, "the form of a loop: reductions, broadcasts, constants; a "
                                                     "convolution with its epilogue"),
    "compiler/codegen/cpu/Rows.cpp": (1, 5, "sources of a loop's lanes: constants, indices, random numbers"),
    "compiler/codegen/gpu/Elements.cpp": (1, 6, "sources of an element: the same"),
    "compiler/codegen/cpu/DataMovement.cpp": (1, 4, "the emitters of a row's ops that no interface describes: sums, "
                                                    "searches, products"),
    "compiler/codegen/gpu/DataMovement.cpp": (1, 4, "the same, of one element"),
    "compiler/codegen/gpu/TileSums.cpp": (1, 5, "the pattern of a variance: squares of differences from a slice"),
    "compiler/codegen/gpu/LibraryCalls.cpp": (1, 6, "patterns of what the functions of cuBLASLt and cuDNN compute"),
    "compiler/codegen/cpu/Attention.cpp": (1, 3, "operands that the three ops of attention share"),
    "compiler/fuse/Computations.cpp": (2, 4, "constants and numbers that cost nothing; casts of each reader"),
    "compiler/fuse/FirstLayers.cpp": (1, 4, "a rewrite of one pattern: a small convolution before a pool"),
    "compiler/fuse/PoolMasks.cpp": (1, 4, "a rewrite of one pattern: a mask after a pool"),
    "compiler/fuse/KernelName.cpp": (1, 7, "names: of variables that are read and assigned, products by a transposed "
                                           "variable"),
    "compiler/fuse/Prepare.cpp": (1, 8, "rewrites of patterns: transposes, broadcasts, casts, conditional updates"),
    "compiler/fuse/Outline.cpp": (1, 3, "what a program gives: assignments, outputs"),
}

problems = []
for p in code("compiler/codegen", "compiler/fuse"):
    if p.suffix not in {".cpp", ".h"}:
        continue
    source, found = text(p), set()
    at_once, most, _ = ALLOWED.get(name(p), (1, MOST, ""))
    for ask in ASKS.finditer(source):
        ops = set(re.findall(OP, ask[1] or ask[2]))
        found |= ops
        if len(ops) > at_once:
            line = source.count("\n", 0, ask.start()) + 1
            problems.append(f"{name(p)}:{line}: expected a question to an interface or a trait, found a list of ops: "
                            f"{', '.join(sorted(ops))}")
    if len(found) > most:
        problems.append(f"{name(p)}: expected at most {most} kinds of ops that it asks for, found {len(found)}: "
                        f"{', '.join(sorted(found))}")
problems += [f"expected {path}, which may name ops, found no such file" for path in ALLOWED
             if path not in {name(p) for p in code("compiler/codegen", "compiler/fuse")}]
verdict(problems, "lists of ops")
