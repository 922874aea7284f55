# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Code, flags and pages use the words of the field (docs/glossary.md), not the ones that this project once made up."""
import fnmatch
import re

from tree import code, files, name, text, verdict

PAGES = ("README.md", "docs/*")
# (what must not come back, the word for it, where; where not, with the reason)
RULES = [
    (r"\b[Rr]eplicas?\b|\breplica_\w+|\bmt\.replicas", "shard, or device", ("*",),
     {"docs/glossary.md": "the words of other frameworks"}),
    (r"\bleaf\b|\bleaf_\w+|\bLeaf[A-Z]\w*|[a-z]Leaf\b|[a-z]Leaves\b", "shard", ("*",),
     {"docs/glossary.md": "the words of other frameworks"}),
    (r"(?<!square )(?<!cube )\b[Rr]oots\b|gatherRoots|corruptRoot|\brootsOf\b|\broot_(bytes|offset)\b", "partial sum",
     ("*",), {}),
    (r"\broads?\b", "pipeline", ("*",), {}),
    (r"\bValuePlace\w*|\bPlaces\.(h|cpp)\b", "buffer assignment", ("*",), {}),
    (r"\b[Tt]urned\b|\bisTurned\b|MT_GPU_TURN", "transposed",
     ("compiler/*", "dialects/*", "runtime/abi/*", "runtime/device/*", "docs/gpu.md", "docs/gpu-code.md",
      "docs/ir.md", "docs/libraries.md"),
     {}),
    (r"\b[Ww]iden(s|ed|ing)?\b|\bwidenedFrom\b", "extend", ("*",), {}),
    (r"\bnarrowOf\b|\b[Nn]arrow(s|ed|ing)\b", "truncate", ("*",), {}),
    (r"\brims?\b", "halo", ("*",), {}),
    (r"\b[Tt]eams?\b|TeamGroup", "thread pool, or threads", ("*",), {}),
    (r"\bPeers\.(h|cpp)\b|\bPeersOptions\b|\b[Mm]eetings?\b", "process group, rendezvous", ("*",), {}),
    (r"\b(Nccl|Local)?Links\.(h|cpp)\b|\b(Nccl|Local)Links\b|\bclass Links\b", "communicator", ("*",), {}),
    (r"\b[Cc]ards?\b", "GPU", ("*",), {}),
    (r"\bFlight\b|\bsettle[sd]?\b", "launch in flight, drain", ("runtime/device/*", "docs/gpu*.md"), {}),
    (r"\b(matmul|conv|scatter)_tree\b|\b(Matmul|Conv|Scatter)Tree\b", "matmul_wgrad, conv_wgrad, scatter_add",
     ("*",), {}),
    (r"kernel_kind (whole|map)\b|KernelKind(::|_)(Whole|Map)\b", "single, elementwise", ("*",), {}),
    (r"\bmt\.penalty\b|\b[Pp]enalt(y|ies)\b|\bPenalty\w*", "regularizer", ("*",),
     {"docs/glossary.md": "the words of other frameworks"}),
    (r"\bput_add\b|\bPutAdd\w*", "index_add", ("*",), {}),
    (r"\b[Ss]tandardi[sz]e\w*", "normalize", ("compiler/*", "dialects/*", "docs/ir.md"), {}),
    (r"\bMt_Formula\w*|\bFormula(::|Attr)", "finalizer", ("*",), {}),
    (r"\bMt\w+Meaning\b", "reference evaluation", ("*",), {}),
    (r"\bruntime/loop/Pass\b|\bclass Pass\b", "epoch loop", ("runtime/*", "tools/mtrun/*", "docs/*"), {}),
    (r"\b(most|least|fewest|enough)(Row|Column|Byte|Thread|Device|Shard|Rank|Step|Op|Tile|Sample|Name|Length)\w*",
     "max, min", ("*",), {}),
    (r"\b[Oo]wn code\b", "generated kernels", ("*",), {}),
    (r"\bMap (kernel|segment|launch)\w*|\bkind map\b", "Elementwise kernel", ("*",), {}),
    (r"\b[Tt]hin convolution", "small-K convolution", ("*",), {}),
    (r"\b[Tt]enants?\b|\bpackTenants\b|\bplaceAlignment\b|\balignPlace\b", "live buffer", ("*",), {}),
    (r"\b[Pp]lanes?\b|\bphase(Row|Column)\b", "residue", ("compiler/codegen/*",), {}),
    (r"(?<!in )(?<!whose )\b[Pp]laces?\b|\b(constant|at|run|chunk|[Ii]mage)Place\b|\bplace(Of|InWarps)\b",
     "pointer, address, index, position", ("compiler/codegen/*",), {}),
    (r"\bLaps\b|\bclass Ones\b|\bOnes\.(h|cpp)\b", "times, unit weights", ("runtime/*",), {}),
    (r"\b(samples|rows|us) a step\b", "per step", ("tools/*", "compiler/api/*"), {}),
    (r"\bkernel\.share\(|\bstruct Share\b", "workgroup memory, part", ("compiler/*", "runtime/*"), {}),
    (r"\bGroups\.(h|cpp)\b|\bclass Groups\b|\bstruct Unit\b|\bunits?Of\b|\b(absorb|joinThin\w*|release)\(",
     "fusion group, fusion graph, epilogue", ("compiler/fuse/*",), {}),
    (r"\bCheapValues\b|\bisCheap\b|\bisThin\b", "recomputed value, small-K convolution", ("compiler/*",), {}),
    (r"\b[Nn]eighbou?rs?\b", "adjacent", ("compiler/*",), {}),
    (r"\bisMap\b|\bfuse(Maps|Whole)\b|\bmap(Threads|Tile)\b|\b[cg]pu/Map\b", "elementwise, single",
     ("compiler/*",), {}),
    (r"\b(Spatial)?Moves\.cpp\b|\bPeriods\.cpp\b", "data movement, broadcast periods",
     ("compiler/*",), {}),
    (r"\bRowStep\b|\bPlanStep\b|\bplanSteps\b", "statement of a row, entry of a plan", ("compiler/*",), {}),
    (r"\bLane(Body)?\b", "vector expression, vectorized body", ("compiler/*", "dialects/*"), {}),
    (r"\bthreadElements\b", "elements per thread", ("compiler/*",), {}),
    (r"\b[Pp]atch(es)?\b|\bemitPatch\b", "halo buffer", ("compiler/codegen/*",), {}),
]
# Each of these is found by a rule.
OLD = """replicas replica_rows leaf_rows LeafCut splitLeaves gatherRoots road ValuePlace isTurned widened narrowOf rim
team TeamGroup Peers.h meeting NcclLinks cards settle conv_tree ScatterTree KernelKind::Whole mt.penalty put_add
standardize Mt_Formula MtCriteriaMeaning runtime/loop/Pass.cpp mostRows fewestDevices
Tenant alignPlace plane phaseRow places constantPlace placeOf Laps Ones.h kernel.share( Groups.cpp unitOf absorb(
CheapValues isThin neighbours isMap fuseWhole mapTile Moves.cpp Periods.cpp RowStep PlanStep LaneBody threadElements
patch""".split() + [
    "own code", "Map kernel", "thin convolutions"]
# Tests of an error, licences and this list may name an old word.
OUTSIDE = ("test/*", "LICENSE")
RENAMED_FLAG = re.compile(r'"--[a-z-]+", "it is called')  # a command line says the new name

pages = [p for p in files() if any(fnmatch.fnmatch(name(p), page) for page in PAGES) and p.suffix == ".md"]
sources = [p for p in files() if p.suffix in {".mlir", ".map"}]
problems = [f"no rule finds '{old}'" for old in OLD if not any(re.search(words, old) for words, *_ in RULES)]
for p in sorted({*code(), *pages, *sources}):
    path = name(p)
    if any(fnmatch.fnmatch(path, pattern) for pattern in OUTSIDE):
        continue
    rules = [(re.compile(words), instead) for words, instead, where, exceptions in RULES
             if any(fnmatch.fnmatch(path, pattern) for pattern in where) and path not in exceptions]
    for number, line in enumerate([path, *text(p).splitlines()]):  # line 0: the file's name
        for words, instead in rules:
            if (found := words.search(line)) and not RENAMED_FLAG.search(line):
                problems.append(f"{path}:{number}: expected '{instead}', found '{found.group()}'")
verdict(problems, "vocabulary")
