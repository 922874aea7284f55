# SPDX-License-Identifier: Apache-2.0
"""A model of a product and then N element-wise ops, one after the other.

    chain.py N
"""
import sys

count = int(sys.argv[1])
print("""mt.model @chain {
  %x = mt.input "x" : tensor<?x784xf32>
  %y = mt.target "y" : tensor<?xi32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<784x10xf32>
  %c0 = mt.matmul %x, %w : tensor<?x784xf32>, tensor<784x10xf32>""")
for i in range(count):
    print(f"  %c{i + 1} = mt.relu %c{i} : tensor<?x10xf32>")
print(f"""  %l = mt.sparse_categorical_crossentropy %c{count}, %y from_logits : tensor<?x10xf32>, tensor<?xi32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "out", %c{count} : tensor<?x10xf32>
  mt.sgd <{{learning_rate = 1.0e-2 : f32}}>
}}""")
