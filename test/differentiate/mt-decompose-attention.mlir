// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-decompose-attention --split-input-file | FileCheck %s --check-prefixes=ALL,BOTH
// RUN: mt-opt %s --mt-decompose-attention=all=false --split-input-file | FileCheck %s --check-prefixes=SOME,BOTH
// RUN: mt-opt %s --mt-decompose-attention="all=false max-channels=2" --split-input-file | FileCheck %s --check-prefixes=ALL
//
// Every attention as products and softmax; or those alone that no kernel computes, on CPUs or on GPUs.
mt.model @grouped {
  %q = mt.input "q" : tensor<?x9x12xf32>
  %k = mt.input "k" : tensor<?x7x6xf32>
  %m = mt.input "m" : tensor<?x1x1x7xi1>
  %0 = mt.attention %q, %k, %k mask %m heads = 4 key_heads = 2 causal dropout "s" rate = 0.25 : tensor<?x9x12xf32>,
    tensor<?x7x6xf32>, tensor<?x7x6xf32>, tensor<?x1x1x7xi1>
  %l = mt.reduce sum, %0 over [1, 2] : tensor<?x9x12xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
// ALL-LABEL: mt.model @grouped
// ALL:       mt.broadcast %{{.*}} : tensor<?x2x1x7x3xf32> to tensor<?x2x2x7x3xf32>
// ALL:       %[[S:.*]] = mt.matmul %{{.*}}, %{{.*}} transpose_b : tensor<?x4x9x3xf32>, tensor<?x4x7x3xf32>
// ALL:       %[[MASK:.*]] = mt.and %{{.*}}, %{{.*}} : tensor<?x1x1x7xi1>, tensor<9x7xi1>
// ALL:       %[[SHOWN:.*]] = mt.select %[[MASK]], %[[S]], %{{.*}}
// ALL:       %[[P:.*]] = mt.softmax %[[SHOWN]] : tensor<?x4x9x7xf32>
// ALL:       %[[SEEN:.*]] = mt.select %[[MASK]], %[[P]], %{{.*}}
// ALL:       %[[KEPT:.*]] = mt.dropout %[[SEEN]] "s" rate = 2.500000e-01
// ALL:       mt.matmul %[[KEPT]], %{{.*}} : tensor<?x4x9x7xf32>, tensor<?x4x7x3xf32>
// ALL-NOT:   mt.attention
// SOME-LABEL: mt.model @grouped
// SOME:       mt.attention
// SOME-NOT:   mt.softmax

// -----

mt.model @replicated {
  %x = mt.input "x" : tensor<?x4xf32>
  %q = mt.variable "q" init(ones) : tensor<2x9x12xf32>
  %0 = mt.attention %q, %q, %q : tensor<2x9x12xf32>, tensor<2x9x12xf32>, tensor<2x9x12xf32>
  mt.regularizer %0 l2 = 0.5 : tensor<2x9x12xf32>
  %l = mt.reduce sum, %x over [1] : tensor<?x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
// BOTH-LABEL: mt.model @replicated
// BOTH-NOT:   mt.attention
// BOTH:       mt.softmax

// -----

module attributes {mt.compilation = #mt.compilation<precision = bf16>} {
  mt.model @half {
    %q = mt.input "q" : tensor<?x9x12xf32>
    %0 = mt.attention %q, %q, %q : tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>
    %1 = mt.attention %q, %0, %0 {mt.precision = "f32"} : tensor<?x9x12xf32>, tensor<?x9x12xf32>, tensor<?x9x12xf32>
    %l = mt.reduce sum, %1 over [1, 2] : tensor<?x9x12xf32>
    mt.loss "loss", %l : tensor<?xf32>
    mt.sgd
  }
}
// ALL-LABEL:  mt.model @half
// ALL:        mt.softmax
// ALL:        mt.matmul {{.*}}mt.precision = "f32"
// ALL-NOT:    mt.attention
// SOME-LABEL: mt.model @half
// SOME-NOT:   mt.softmax
