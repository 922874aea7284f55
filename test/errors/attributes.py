# SPDX-License-Identifier: Apache-2.0
"""Compiles a small model with an attribute of each kind that MLIR's own parser may not survive: attributes.py FOLDER.
Prints the exit code and the message; a signal is a negative code."""
import pathlib
import subprocess
import sys

ATTRIBUTES = {"array": "array<index: 1>", "empty integer": 'dense<"0x"> : tensor<i0>',
              "no bits": "dense<1> : tensor<?x4xi0>", "wide": "1 : si128",
              "distinct": "distinct[18446744073709551615]<distinct[0]<{}>>",
              "resource": "dense_resource<a> : tensor<4xf32>", "sparse": "sparse<[[0]], [1.0]> : tensor<4xf32>",
              "fine": "[array<i64: 1>, array<f32>, 1 : i64, dense<1> : tensor<4xui8>]"}
MODEL = """mt.model @m {
  %%x = mt.input "x" : tensor<?x4xf32>
  %%y = mt.target "y" : tensor<?x4xf32>
  %%i0 = mt.variable "w" init(zeros) : tensor<4x4xf32>
  %%z = mt.matmul %%x, %%i0 {i0 = 1 : i64, f = %s} : tensor<?x4xf32>, tensor<4x4xf32>
  %%l = mt.mean_squared_error %%z, %%y : tensor<?x4xf32>, tensor<?x4xf32>
  mt.loss "loss", %%l : tensor<?xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
"""
path = pathlib.Path(sys.argv[1]) / "attribute.mlir"
for name, attribute in ATTRIBUTES.items():
    path.write_text(MODEL % attribute)
    run = subprocess.run(["mtc", "compile", path, "--stop-after", "import", "-o", "-"], capture_output=True, text=True)
    print(f"{name}: {run.returncode}: {run.stderr.strip()}")
