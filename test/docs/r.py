# SPDX-License-Identifier: Apache-2.0
"""r.py PAGE.md PYTHON: runs the R code of a page, with MNIST's test images for both of its parts.

PYTHON is one with Keras. The environment names the package and its libraries.
"""
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]

PRELUDE = """
reticulate::py_run_string("import keras, numpy
part = tuple(numpy.load('mnist.npz')[name] for name in ('x', 'y'))
keras.datasets.mnist.load_data = lambda: (part, part)")
"""


def read(name, offset):
    return np.frombuffer(gzip.decompress((ROOT / "examples/mnist" / name).read_bytes()), "u1", offset=offset)


def main():
    page, python = sys.argv[1:]
    code = re.search(r"^```r\n(.*?)^```$", pathlib.Path(page).read_text(), re.M | re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "mnist.npz"), x=read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28),
                 y=read("t10k-labels-idx1-ubyte.gz", 8))
        script = pathlib.Path(folder, "script.R")
        script.write_text(PRELUDE + code)
        done = subprocess.run(["Rscript", script], cwd=folder, text=True, stdout=subprocess.PIPE,
                              env={**os.environ, "RETICULATE_PYTHON": python, "KERAS_BACKEND": "jax"})
    print(done.stdout, end="")
    if done.returncode:
        sys.exit(done.returncode)
    accuracies = [float(number) for number in re.findall(r"0\.\d+", done.stdout.splitlines()[-1])]
    if len(accuracies) != 2 or accuracies[-1] < 0.9:
        sys.exit(f"expected two accuracies, the last above 0.9, found {done.stdout.splitlines()[-1]}")


main()
