// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %source/test/allocate/inputs/train_step.mlir --mt-fuse | FileCheck %s
// RUN: mt-opt %s --mt-fuse | FileCheck %s --check-prefix=MORE

// A matmul turns a weight while it packs it: no kernel transposes.
// CHECK-NOT: mt.transpose

// Bias and activation are the matmul's epilogue.
// CHECK: %[[H:.*]] = mt.kernel "matmul+add+relu" matmul
// CHECK-NEXT: mt.matmul
// CHECK-NEXT: mt.add
// CHECK-NEXT: mt.relu
// CHECK-NEXT: mt.yield

// CHECK: mt.kernel "matmul+sub+square+mul" matmul

// Sums over the batch: the tree matmuls, and one kernel for all others of the bucket.
// CHECK: mt.kernel "w2_gradient" matmul_wgrad
// CHECK: mt.kernel "input_gradient+compare+more" matmul
// CHECK-NEXT: mt.matmul {{.*}} transpose_b
// CHECK: mt.compare gt
// CHECK: mt.select
// CHECK: mt.kernel "sums" reduce ({{.*}}) -> (tensor<f32>, tensor<4xf32>)
// CHECK: mt.kernel "{{[a-z+]+}}" single

// The scalars that no all-reduce feeds are one kernel, the batch size reported as a weight among them.
// CHECK: mt.kernel "{{[a-z+]+}}" single
// CHECK: mt.batch_size
// CHECK: mt.yield {{.*}} : tensor<f32>, tensor<f32>

// The update of a variable and its slot is one map kernel.
// CHECK: mt.kernel "{{[a-z0-9]+}}/update" elementwise {{.*}} -> (tensor<8x4xf32>, tensor<8x4xf32>)

// MORE-LABEL: @rows
mt.program @rows {
  %x = mt.input "x" : tensor<?x4xf32>
  // Per-sample work is one kernel, reductions along a row included.
  // MORE: mt.kernel {{"[^"]*"}} rows
  // MORE: mt.reduce max
  // MORE: mt.yield
  // MORE-NOT: mt.kernel
  %m = mt.reduce max, %x over [1] : tensor<?x4xf32>
  %m1 = mt.reshape %m : tensor<?xf32> to tensor<?x1xf32>
  %d = mt.sub %x, %m1 : tensor<?x4xf32>, tensor<?x1xf32>
  %e = mt.exp %d : tensor<?x4xf32>
  mt.output "e", %e : tensor<?x4xf32>
  // MORE: mt.output "e"
}

// What must have a place of its own gets a copy.
// MORE-LABEL: @copies
mt.program @copies {
  %x = mt.input "x" : tensor<?x4xf32>
  %a = mt.read "a" : tensor<4xf32>
  // MORE-DAG: %[[X:.*]] = mt.kernel "copy" rows
  mt.output "y", %x : tensor<?x4xf32>
  // MORE-DAG: %[[B:.*]] = mt.kernel "copy" elementwise
  mt.assign "b", %a : tensor<4xf32>
  %zero = mt.constant dense<0.0> : tensor<4xf32>
  // MORE-DAG: mt.kernel "copy" elementwise () -> (tensor<4xf32>)
  mt.assign "c", %zero : tensor<4xf32>
}

// An update that does not apply keeps the old value.
// MORE-LABEL: @conditional
mt.program @conditional {
  %a = mt.read "a" : tensor<4xf32>
  %g = mt.read "go" : tensor<i1>
  %b = mt.square %a : tensor<4xf32>
  // MORE: mt.kernel {{"[^"]*"}} elementwise
  // MORE: mt.square
  // MORE: mt.select
  mt.assign "a", %b if %g : tensor<4xf32>
}

// A matmul that waits for the other one cannot take its epilogue in: no cycle is ever made.
// MORE-LABEL: @no_cycle
mt.program @no_cycle {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4x4xf32>
  // MORE: %[[P:.*]] = mt.kernel {{"[^"]*"}} matmul
  // MORE: mt.kernel {{"[^"]*"}} matmul (%{{.*}} = %[[P]]
  // MORE: mt.matmul
  // MORE-NEXT: mt.add
  %p = mt.matmul %x, %w : tensor<?x4xf32>, tensor<4x4xf32>
  %q = mt.matmul %p, %w : tensor<?x4xf32>, tensor<4x4xf32>
  %s = mt.add %p, %q : tensor<?x4xf32>, tensor<?x4xf32>
  mt.output "s", %s : tensor<?x4xf32>
}

// Work on what the product reads has the product's shape here, and still is no part of its kernel.
// MORE-LABEL: @square
mt.program @square {
  %x = mt.input "x" : tensor<?x4xf32>
  %w = mt.read "w" : tensor<4x4xf32>
  // MORE: mt.kernel {{"[^"]*"}} rows
  // MORE-NEXT: mt.exp
  // MORE: mt.kernel {{"[^"]*"}} matmul
  // MORE-NOT: mt.exp
  // MORE: mt.matmul %arg{{[0-9]+}}, %arg{{[0-9]+}}
  // MORE: mt.add
  %0 = mt.exp %x : tensor<?x4xf32>
  %1 = mt.matmul %0, %w : tensor<?x4xf32>, tensor<4x4xf32>
  %2 = mt.add %1, %0 : tensor<?x4xf32>, tensor<?x4xf32>
  mt.output "y", %2 : tensor<?x4xf32>
}

// A sum computes what it adds: the squares of a norm are not stored.
// MORE-LABEL: @norm
mt.program @norm {
  %g = mt.read "g" : tensor<64x32xf32>
  // MORE: mt.kernel {{"[^"]*"}} single
  // MORE-NEXT: mt.square
  // MORE-NEXT: mt.reduce sum
  // MORE: mt.kernel {{"[^"]*"}} elementwise
  // MORE-NOT: mt.square
  // MORE: mt.mul
  %s = mt.square %g : tensor<64x32xf32>
  %n = mt.reduce sum, %s over [0, 1] : tensor<64x32xf32>
  %d = mt.mul %g, %n : tensor<64x32xf32>, tensor<f32>
  mt.assign "g", %d : tensor<64x32xf32>
}
