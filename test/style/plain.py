# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Comments, docstrings and messages read at once: patterns that make a reader look back for the noun are refused.

A folder joins FOLDERS when all of its comments have been read and rewritten.
"""
import ast
import io
import re
import tokenize

from tree import code, name, text, verdict

FOLDERS = [  # one per line, in alphabetical order
    "compiler",
    "dialects",
    "frontend/keras",
    "frontend/mlir",
    "frontend/training",
    "runtime",
    "tools",
]
# The options are described in one list, which has help texts and documentation comments.
OUTSIDE = {"runtime/abi/mtc.h", "runtime/abi/mtrun_loop.h", "runtime/abi/mtrun_session.h", "runtime/loop/FitOpen.cpp",
           "tools/mtc/Arguments.cpp", "tools/mtrun/Arguments.h", "tools/mtrun/Compiler.cpp", "tools/mtrun/Options.cpp"}
START = r"(?:^|(?<=[.:;?!] ))"  # of a sentence
PER = (r"bytes?|bits?|floats?|elements?|values?|rows?|columns?|samples?|threads?|warps?|lanes?|blocks?|kernels?|"
       r"devices?|process(?:es)?|steps?|shards?|epochs?|lines?|times?|entry|entries|batch(?:es)?|images?|files?")
# (pattern, what to write instead)
RULES = [
    (r"\b[Tt]hose\b", "the noun"),
    (r"\b(the|[Oo]f|all|only|other|few|many|new|old|short|long|small|large|same|which|these) ones\b", "the noun"),
    (r"\b[Tt]he ones?(?= (that|which|who|of|in|with|whose|for|from|at|to)\b)", "the noun"),
    (r"(?<![Nn]o )\b[Ss]uch\b(?! as\b)", "the noun, or 'such as'"),
    (r"\b[Bb]esides?\b", "'next to', 'in addition to' or 'except'"),
    (r"\b[Bb]ehind\b", "'after', or 'past the end of'"),
    (r"\b[Aa]part\b", "'stride', 'distance', or 'except for'"),
    (r"\banew\b", "'again'"),
    (r"\b[Nn]obody\b|\b[Ww]hoever\b|\b[Tt]hose who\b", "the subject"),
    (r"\b[Ww]hat (is|was|are) (said|told|given|held|taken|asked|meant|known)\b", "the noun"),
    (r"\b(is|are|was|were) said of\b", "the property"),
    (r"\b(of|for|in|from|to|at|by) which (each|one|all|none|some|there)\b", "two sentences"),
    (r"(^|(?<=[.:;?!,] ))[Oo]f which\b", "two sentences"),
    (rf"{START}(What|Of|Those|That|Such|Who)\b(?! is,)", "a sentence that begins with its subject"),
    (r"\bof so many\b|\bso many (bytes|rows|elements|samples|steps|columns|threads)\b", "the number's name"),
    (rf"\b({PER}) an? ({PER}|second|axis|run|launch|group|vector|head|channel|class|variable)\b(?!['-])", "'per'"),
]
# Each of these is found by a rule.
OLD = [
    "as those of a row", "the other ones", "the one that waits", "of such a kernel", "the bytes beside it",
    "the rows behind it", "16 floats apart", "begins anew", "where nobody says", "what is said of it", "what is given",
    "lists, of which each is sorted", "batches. Of which one is read", "What the start takes", "Of one that waits",
    "a loop of so many elements", "two bytes an element", "one device a process",
]
LINE_COMMENT = {".cpp": "//", ".h": "//", ".def": "//", ".c": "//", ".td": "//", ".fbs": "//"}
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'', re.DOTALL)


def paragraphs(pieces):
    """Joins comments on consecutive lines that begin in the same column: (line, text) of each paragraph.

    A piece is (line, column, whether code precedes it, text). Code before a comment begins a new paragraph.
    """
    joined = []
    for line, column, trails, piece in pieces:
        if joined and joined[-1][1:3] == [line - 1, column] and piece and not trails:
            joined[-1][1], joined[-1][3] = line, f"{joined[-1][3]} {piece}"
        elif piece:
            joined.append([line, line, column, piece])
    return [(first, sentence) for first, _, _, sentence in joined]


def cpp(source):
    """Comments and messages (string literals with a space) of a file in the syntax of C."""
    comments, strings = [], []
    for token in TOKEN.finditer(source):
        line, found = source.count("\n", 0, token.start()) + 1, token.group()
        begin = source.rfind("\n", 0, token.start()) + 1
        trails = bool(source[begin:token.start()].strip())
        if found.startswith("//"):
            comments.append((line, token.start() - begin, trails, found.lstrip("/<! ").rstrip()))
        elif found.startswith("/*"):
            comments += [(line + i, token.start() - begin, trails and i == 0, part.strip(" */<"))
                         for i, part in enumerate(found.split("\n"))]
        elif found.startswith('"') and " " in found:
            strings.append((line, found[1:-1]))
    return paragraphs(comments) + strings


def python(source):
    """Comments and docstrings of a Python file."""
    comments = [(*token.start, bool(token.line[:token.start[1]].strip()), token.string.lstrip("#! "))
                for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [(node.body[0].lineno, " ".join(part.split()))
                  for node in ast.walk(ast.parse(source)) if isinstance(node, documented) and ast.get_docstring(node)
                  for part in ast.get_docstring(node).split("\n\n")]
    return paragraphs(comments) + docstrings


def hashes(source):
    """Comments of CMake and of the shell, on lines of their own."""
    return paragraphs([(number, len(line) - len(line.lstrip()), False, line.strip().lstrip("#! "))
                       for number, line in enumerate(source.split("\n"), 1) if line.strip().startswith("#")])


def sentences(path):
    source = text(path)
    if path.suffix in LINE_COMMENT:
        return cpp(source)
    if path.suffix == ".py" or source.startswith("#!") and "python" in source.split("\n", 1)[0]:
        return python(source)
    return hashes(source)


rules = [(re.compile(pattern), instead) for pattern, instead in RULES]
problems = [f"no rule finds '{old}'" for old in OLD if not any(pattern.search(old) for pattern, _ in rules)]
problems += [f"FOLDERS: expected alphabetical order, found '{b}' after '{a}'" for a, b in zip(FOLDERS, FOLDERS[1:])
             if a >= b]
for p in code(*FOLDERS):
    if name(p) in OUTSIDE:
        continue
    for number, sentence in sentences(p):
        for pattern, instead in rules:
            if found := pattern.search(sentence):
                around = sentence[max(0, found.start() - 30):found.end() + 30]
                problems.append(f"{name(p)}:{number}: expected {instead}, found '{found.group()}' in '{around}'")
verdict(problems, "plain")
