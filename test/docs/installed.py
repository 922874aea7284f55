# SPDX-License-Identifier: Apache-2.0
"""installed.py BUILD FOLDER: what the reader of docs/embedding.md has.

FOLDER/moved holds what `cmake --install` of each component made elsewhere, FOLDER/host the reader's files, FOLDER/bin a
cc. No installed file may hold the path of the sources, of the build or of where it was installed first.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPONENTS = ("runtime", "compiler", "dev", "doc")


def install(build, prefix):
    for component in COMPONENTS:
        subprocess.run(["cmake", "--install", build, "--prefix", prefix, "--component", component], check=True,
                       stdout=subprocess.DEVNULL)


def main():
    build, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    first, moved, host = folder / "first", folder / "moved", folder / "host"
    install(build, first)
    first.rename(moved)
    wrong = [f"{file} holds {path}" for file in moved.rglob("*") if file.is_file() and not file.is_symlink()
             for path in (ROOT, build, first) if str(path).encode() in file.read_bytes()]
    if wrong:
        sys.exit("\n".join(wrong))

    examples = moved / "share/doc/mtc/examples"
    shutil.copytree(examples / "embed", host)
    shutil.copy(examples / "mnist_mlp.mlir", host)
    shutil.copytree(examples / "mnist", host / "mnist")
    page = (ROOT / "docs/embedding.md").read_text()
    files = re.findall(r"^<!-- file: (\S+) -->\n\n```\w*\n(.*?)^```$", page, re.M | re.S)
    for name, text in files:
        (host / name).write_text(text)
    compilers = folder / "bin"
    compilers.mkdir()
    (compilers / "cc").symlink_to(shutil.which("clang-22"))


main()
