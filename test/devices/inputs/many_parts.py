# SPDX-License-Identifier: Apache-2.0
"""Prints a model that cuts images of 784 pixels into 49 parts, multiplies each by a matrix of 16 x 3 or 16 x 4, and
joins the products."""
PARTS = 49
lines = ["mt.model @many_parts {", '  %image = mt.input "image" : tensor<?x784xf32>',
         '  %label = mt.target "label" : tensor<?xi32>']
for width in (3, 4):
    lines.append(f'  %w{width} = mt.variable "part/kernel{width}" init(glorot_uniform) : tensor<16x{width}xf32>')
widths = [3 + i % 2 for i in range(PARTS)]
for i, width in enumerate(widths):
    lines += [f"  %x{i} = mt.slice %image starts = [{16 * i}] sizes = [16] : tensor<?x784xf32>",
              f"  %s{i} = mt.tanh %x{i} : tensor<?x16xf32>",
              f"  %p{i} = mt.matmul %s{i}, %w{width} : tensor<?x16xf32>, tensor<16x{width}xf32>"]
parts = ", ".join(f"%p{i}" for i in range(PARTS))
types = ", ".join(f"tensor<?x{width}xf32>" for width in widths)
total = sum(widths)
lines += [f"  %all = mt.concat {parts} dim = 1 : {types}",
          f"  %h = mt.tanh %all : tensor<?x{total}xf32>",
          f'  %w = mt.variable "dense/kernel" init(glorot_uniform) : tensor<{total}x10xf32>',
          f"  %logits = mt.matmul %h, %w : tensor<?x{total}xf32>, tensor<{total}x10xf32>",
          "  %loss = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x10xf32>, tensor<?xi32>",
          '  mt.loss "loss", %loss : tensor<?xf32>', '  mt.output "logits", %logits : tensor<?x10xf32>', "  mt.adam",
          "}"]
print("\n".join(lines))
