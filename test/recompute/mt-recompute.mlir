// SPDX-License-Identifier: Apache-2.0
// Of two activations that wait for the backward pass, the one that costs less for its bytes runs again: the sine, not
// the product.
// RUN: mt-opt %s --mt-recompute=device-memory=9587184 | FileCheck %s
// RUN: mt-opt %s --mt-recompute=device-memory=9587184 --mt-schedule | FileCheck %s --check-prefix=ORDER
// Where that is not enough, the product runs again too, and the second sine reads the second product.
// RUN: mt-opt %s --mt-recompute=device-memory=9572184 | FileCheck %s --check-prefix=BOTH
// BOTH: %[[AGAIN:.*]] = mt.kernel "product" {{.*}} recomputed
// BOTH: mt.kernel "sine" rows (%{{.*}} = %[[AGAIN]] {{.*}} recomputed
// Without a limit, or with one that holds, nothing happens.
// RUN: mt-opt %s --mt-recompute | FileCheck %s --check-prefix=NONE
// RUN: mt-opt %s --mt-recompute=device-memory=10937184 | FileCheck %s --check-prefix=NONE
// NONE-NOT: recomputed
// RUN: not mt-opt %source/test/fuse/recompute.mlir --mt-fuse --mt-recompute=device-memory=100 2>&1 | FileCheck %s --check-prefix=NO-ROWS
// NO-ROWS: error: expected `shards` and `shard_rows` in the module's `mt.compilation`, found none

module attributes {mt.compilation = #mt.compilation<batch = 8, shards = 8, shard_rows = 1>} {
// CHECK-LABEL: mt.program @train_step
mt.program @train_step {
  %x = mt.input "x" : tensor<?x512xf32>
  %w = mt.constant dense<1.0> : tensor<512x512xf32>
  %v = mt.constant dense<1.0> : tensor<512x2048xf32>
  %u = mt.constant dense<1.0> : tensor<2048x512xf32>
  // CHECK: %[[A:.*]] = mt.kernel "product" matmul
  // CHECK-NOT: mt.kernel "product"
  %a = mt.kernel "product" matmul (%i = %x : tensor<?x512xf32>, %k = %w : tensor<512x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.matmul %i, %k : tensor<?x512xf32>, tensor<512x512xf32>
    mt.yield %0 : tensor<?x512xf32>
  }
  // CHECK: %[[B:.*]] = mt.kernel "sine" rows (%{{.*}} = %[[A]] : tensor<?x512xf32>) -> (tensor<?x512xf32>) {
  // CHECK: %[[AGAIN:.*]] = mt.kernel "sine" rows (%{{.*}} = %[[A]] : tensor<?x512xf32>) -> (tensor<?x512xf32>) recomputed
  // ORDER: mt.kernel "sine"
  // ORDER-NEXT: mt.sin
  // ORDER-NEXT: mt.yield
  // ORDER: mt.kernel "middle"
  // ORDER: mt.kernel "wide"
  // ORDER: mt.kernel "top"
  // ORDER: mt.kernel "narrow"
  // ORDER: mt.kernel "further" {{.*}}wait device
  // ORDER: mt.kernel "sine" {{.*}}recomputed wait none
  // ORDER: mt.kernel "last"
  %b = mt.kernel "sine" rows (%i = %a : tensor<?x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.sin %i : tensor<?x512xf32>
    mt.yield %0 : tensor<?x512xf32>
  }
  // CHECK: mt.kernel "middle" rows (%{{.*}} = %[[B]]
  %c = mt.kernel "middle" rows (%i = %b : tensor<?x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.cos %i : tensor<?x512xf32>
    mt.yield %0 : tensor<?x512xf32>
  }
  %d = mt.kernel "wide" matmul (%i = %c : tensor<?x512xf32>, %k = %v : tensor<512x2048xf32>) -> (tensor<?x2048xf32>) {
    %0 = mt.matmul %i, %k : tensor<?x512xf32>, tensor<512x2048xf32>
    mt.yield %0 : tensor<?x2048xf32>
  }
  %e = mt.kernel "top" rows (%i = %d : tensor<?x2048xf32>) -> (tensor<?x2048xf32>) {
    %0 = mt.reshape %i : tensor<?x2048xf32> to tensor<?x2x1024xf32>
    %1 = mt.transpose %0 by [0, 2, 1] : tensor<?x2x1024xf32>
    %2 = mt.reshape %1 : tensor<?x1024x2xf32> to tensor<?x2048xf32>
    mt.yield %2 : tensor<?x2048xf32>
  }
  %f = mt.kernel "narrow" matmul (%i = %e : tensor<?x2048xf32>, %k = %u : tensor<2048x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.matmul %i, %k : tensor<?x2048xf32>, tensor<2048x512xf32>
    mt.yield %0 : tensor<?x512xf32>
  }
  %h = mt.kernel "further" rows (%i = %f : tensor<?x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.exp %i : tensor<?x512xf32>
    mt.yield %0 : tensor<?x512xf32>
  }
  // CHECK: mt.kernel "last" rows (%{{.*}} = %[[A]] : {{.*}}, %{{.*}} = %[[AGAIN]] : {{.*}}, %
  %g = mt.kernel "last" rows (%i = %a : tensor<?x512xf32>, %j = %b : tensor<?x512xf32>, %k = %h : tensor<?x512xf32>) -> (tensor<?x512xf32>) {
    %0 = mt.mul %i, %j : tensor<?x512xf32>, tensor<?x512xf32>
    %1 = mt.mul %0, %k : tensor<?x512xf32>, tensor<?x512xf32>
    mt.yield %1 : tensor<?x512xf32>
  }
  mt.output "g", %g : tensor<?x512xf32>
}
}
