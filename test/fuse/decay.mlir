// SPDX-License-Identifier: Apache-2.0
// RUN: mtc compile %s --batch 8 --shards 1 --precision bf16 --target cuda:grids --stop-after schedule -o %t.mlir && FileCheck %s < %t.mlir
// RUN: mtc compile %s --batch 8 --shards 1 --precision bf16 --stop-after schedule -o %t.mlir && FileCheck %s --check-prefix=CPU < %t.mlir
//
// The decay of a weight is part of the kernel that updates it, and not of the one that copies it in 16 bits, which
// would store the decayed weight. For GPUs, the copies of both weights come first, together; on CPUs each comes before
// its reader.

// CHECK-LABEL: mt.program @train_step
// CHECK:      mt.kernel "a/cast" elementwise (%{{.*}} : tensor<8x16xf32>) -> (tensor<8x16xbf16>) wait none
// CHECK-NEXT:   mt.cast
// CHECK-NEXT:   mt.yield
// CHECK:      mt.kernel "b/cast" elementwise (%{{.*}} : tensor<16x4xf32>) -> (tensor<16x4xbf16>) wait none
// CHECK-NEXT:   mt.cast
// CHECK-NEXT:   mt.yield
// CHECK:      mt.kernel {{.*}} matmul
// CHECK:      mt.kernel "a/kernel/update" elementwise
// CHECK:        mt.sub
// CHECK:        mt.yield

// CPU-LABEL: mt.program @train_step
// CPU:      mt.kernel "a/cast" elementwise (%{{.*}} : tensor<8x16xf32>) -> (tensor<8x16xbf16>) wait none
// CPU:      mt.kernel {{.*}} matmul
// CPU:      mt.kernel "b/cast" elementwise (%{{.*}} : tensor<16x4xf32>) -> (tensor<16x4xbf16>)
mt.model @decay {
  %x = mt.input "x" : tensor<?x8xf32>
  %t = mt.target "t" : tensor<?x4xf32>
  %a = mt.variable "a/kernel" init(glorot_uniform) : tensor<8x16xf32>
  %b = mt.variable "b/kernel" init(glorot_uniform) : tensor<16x4xf32>
  %0 = mt.matmul %x, %a : tensor<?x8xf32>, tensor<8x16xf32>
  %1 = mt.tanh %0 : tensor<?x16xf32>
  %2 = mt.matmul %1, %b : tensor<?x16xf32>, tensor<16x4xf32>
  %d = mt.sub %2, %t : tensor<?x4xf32>, tensor<?x4xf32>
  %s = mt.square %d : tensor<?x4xf32>
  %l = mt.reduce sum, %s over [1] : tensor<?x4xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.adamw <{learning_rate = 1.0e-3 : f32, weight_decay = 1.0e-1 : f32}>
}
