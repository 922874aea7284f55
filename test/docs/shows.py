# SPDX-License-Identifier: Apache-2.0
"""shows.py PAGE.md: what a page shows of a file is in that file.

<!-- shows: FILE --> before a block of code says which file of the working directory it is an excerpt of. The parts
between "..." must be there in this order. Spaces and ends of lines do not count, so that a page may break long lines.
"""
import pathlib
import re
import sys

MARK = re.compile(r"^<!-- shows: (\S+) -->\n\n?((?:    .*\n|\n(?=    ))+)", re.M)


def words(text):
    return " ".join(text.split())


page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
excerpts = MARK.findall(page)
for file, block in excerpts:
    text, at = words(pathlib.Path(file).read_text(encoding="utf-8")), 0
    for part in filter(None, map(words, block.split("..."))):
        found = text.find(part, at)
        if found < 0:
            sys.exit(f"{sys.argv[1]}: expected in {file}, after what stands before it on the page:\n{part}")
        at = found + len(part)
marks = page.count("<!-- shows:")
if not excerpts or len(excerpts) != marks:
    sys.exit(f"{sys.argv[1]}: expected a block of code behind each of {marks} marks, found {len(excerpts)}")
print(f"{len(excerpts)} excerpts")
