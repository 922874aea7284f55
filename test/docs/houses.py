# SPDX-License-Identifier: Apache-2.0
"""houses.py: the table of docs/data.md in this folder, houses.csv and new.csv, and a linear model of its 6 numbers."""
import pathlib

HOUSES = "id,area,city,price\n1,80,Oslo,8\n2,120,Bergen,12\n3,95,Oslo,10\n4,60,Molde,5\n5,70,Voss,7\n"
MODEL = """mt.model @houses {
  %x = mt.input "x" : tensor<?x6xf32>
  %y = mt.target "y" : tensor<?x1xf32>
  %w = mt.variable "kernel" init(zeros) : tensor<6x1xf32>
  %p = mt.matmul %x, %w : tensor<?x6xf32>, tensor<6x1xf32>
  %l = mt.mean_squared_error %p, %y : tensor<?x1xf32>, tensor<?x1xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "price", %p : tensor<?x1xf32>
  mt.sgd <{learning_rate = 1.0e-2 : f32}>
}
"""
pathlib.Path("houses.csv").write_text(HOUSES)
pathlib.Path("new.csv").write_text("city,area\nOslo,90\nRoma,75\n")
pathlib.Path("houses.mlir").write_text(MODEL)
