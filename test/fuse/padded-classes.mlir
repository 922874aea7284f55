// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pad-classes --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-crop-gradients --mt-precision --cse --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-pad-classes --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-crop-gradients --mt-precision --cse --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse=temporary-bytes=4096 | FileCheck %s --check-prefix=APART
//
// Logits of 257 classes, padded to 264: the padded table is copied to 16 bits at once, the gradient lies over the
// logits, and the table's gradient reads the model's classes of it where they lie.
module attributes {mt.compilation = #mt.compilation<name = "padded", batch = 4, shards = 2, shard_rows = 2, precision = bf16>} {
mt.model @padded {
  %x = mt.input "x" : tensor<?x3x8xf32>
  %label = mt.target "label" : tensor<?x3xi32>
  %table = mt.variable "table" init(glorot_uniform) : tensor<257x8xf32>
  %logits = mt.matmul %x, %table transpose_b : tensor<?x3x8xf32>, tensor<257x8xf32>
  %l = mt.sparse_categorical_crossentropy %logits, %label from_logits : tensor<?x3x257xf32>, tensor<?x3xi32>
  mt.loss "loss", %l : tensor<?x3xf32>
  mt.sgd
}
}

// A kernel that may keep 4,096 bytes for itself does not keep the padded table, which has 8,448.
// APART-LABEL: mt.program @train_step
// APART:       %[[TABLE:.*]] = mt.kernel {{.*}} single {{.*}} -> (tensor<264x8xf32>)
// APART:       mt.kernel {{.*}} single (%arg0 = %[[TABLE]] {{.*}} -> (tensor<264x8xbf16>)

// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[TABLE:.*]] = mt.kernel {{.*}} single {{.*}} -> (tensor<264x8xbf16>)
// CHECK-NEXT:    mt.pad
// CHECK-NEXT:    mt.cast
// CHECK:       %[[LOGITS:.*]] = mt.kernel {{.*}} matmul (%arg0 = %{{.*}}, %arg1 = %[[TABLE]] {{.*}} -> (tensor<?x3x264xbf16>)
// CHECK:       %[[LOSS:.*]]:2 = mt.kernel {{.*}} rows (%arg0 = %[[LOGITS]] {{.*}} -> (tensor<?xf32>, tensor<?x3x264xbf16>)
// CHECK:       mt.kernel "table_gradient" matmul_wgrad (%arg0 = %[[LOSS]]#1 : tensor<?x3x264xbf16>, {{.*}} -> (tensor<257x8xf32>)
// CHECK-NEXT:    mt.slice %arg0 starts = [0, 0] sizes = [3, 257]
// CHECK-NEXT:    mt.matmul
// CHECK-NEXT:    mt.reduce
