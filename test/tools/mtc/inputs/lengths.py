# SPDX-License-Identifier: Apache-2.0
"""lengths.py DIR: models with {length}, good and bad, and data for one of them."""
import pathlib
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mtrun/inputs"))
import arrays

MODELS = {
    # A mean over the positions that the mask has.
    "mask": """
  %x = mt.input "x" : tensor<?x{length}xf32>
  %m = mt.input "mask" : tensor<?x{length}xf32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %0 = mt.mul %x, %w : tensor<?x{length}xf32>, tensor<f32>
  mt.loss "loss", %0 weights(%m : tensor<?x{length}xf32>) by weights : tensor<?x{length}xf32>
""",
    "none": """
  %x = mt.input "x" : tensor<?x3xf32>
  %w = mt.variable "w" init(ones) : tensor<3xf32>
  %0 = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
  mt.loss "loss", %0 : tensor<?x3xf32>
""",
    "both": """
  %x = mt.input "x" : tensor<?x{length}x{length}xf32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %0 = mt.mul %x, %w : tensor<?x{length}x{length}xf32>, tensor<f32>
  mt.loss "loss", %0 : tensor<?x{length}x{length}xf32>
""",
    "variable": """
  %x = mt.input "x" : tensor<?x{length}xf32>
  %w = mt.variable "w" init(ones) : tensor<{length}xf32>
  %0 = mt.mul %x, %w : tensor<?x{length}xf32>, tensor<{length}xf32>
  mt.loss "loss", %0 : tensor<?x{length}xf32>
""",
    # Two positions have no third one.
    "short": """
  %x = mt.input "x" : tensor<?x{length}xf32>
  %w = mt.variable "w" init(ones) : tensor<f32>
  %0 = mt.slice %x starts = [2] sizes = [1] : tensor<?x{length}xf32>
  %1 = mt.mul %0, %w : tensor<?x1xf32>, tensor<f32>
  mt.loss "loss", %1 : tensor<?x1xf32>
""",
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
for name, text in MODELS.items():
    (folder / (name + ".mlir")).write_text(f"mt.model @{name} {{{text}  mt.sgd\n}}\n")
with zipfile.ZipFile(folder / "mask.npz", "w") as archive:
    archive.writestr("x.npy", arrays.npy("<f4", (3, 4), [5.0] * 12))
    archive.writestr("mask.npy", arrays.npy("<f4", (3, 4), [1.0, 1.0, 0.0, 0.0] * 3))
