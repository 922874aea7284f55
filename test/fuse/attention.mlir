// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-expand-optimizer --mt-differentiate --mt-decompose --cse --mt-annotate=shards=4 --mt-propagate --mt-partition --mt-bucket --mt-fuse | FileCheck %s
//
// One kernel computes an attention and its log sums, one its gradients; no kernel holds a score for each pair of
// places. A mask that is one constant has a buffer.
mt.model @attention {
  %x = mt.input "x" : tensor<?x96x8xf32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<8x8xf32>
  %all = mt.constant dense<true> : tensor<96x96xi1>
  %q = mt.matmul %x, %w : tensor<?x96x8xf32>, tensor<8x8xf32>
  %y = mt.attention %q, %q, %x mask %all heads = 2 causal : tensor<?x96x8xf32>, tensor<?x96x8xf32>, tensor<?x96x8xf32>,
    tensor<96x96xi1>
  %l = mt.reduce sum, %y over [1, 2] : tensor<?x96x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[A:.*]]:2 = mt.kernel "attention" attention ({{.*}}) -> (tensor<?x96x8xf32>, tensor<?x2x96xf32>)
// CHECK-DAG:     mt.attention %
// CHECK-DAG:     mt.attention_log_sums %
// CHECK:       mt.kernel "attention_gradient" attention_gradient ({{.*}}%[[A]]#1{{.*}}) -> (tensor<?x96x8xf32>, tensor<?x96x8xf32>)
// CHECK-DAG:     mt.attention_gradient query
// CHECK-DAG:     mt.attention_gradient key
// CHECK-NOT:   96x96xf32
// CHECK:       mt.program @eval_step
// CHECK:         mt.kernel "attention" attention ({{.*}}) -> (tensor<?x96x8xf32>)
