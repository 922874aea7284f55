// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s | mt-opt | FileCheck %s

// Two inputs of which one is replicated, a carry, an output, a value from outside; backwards.
// CHECK-LABEL: func @all
func.func @all(%xs: tensor<?x5x3xf32>, %ws: tensor<5x3xf32>, %h0: tensor<?x3xf32>, %b: tensor<3xf32>) {
  // CHECK: %[[R:.*]]:3 = mt.scan over(%[[X:.*]] = %arg0 : tensor<?x5x3xf32>, %[[W:.*]] = %arg1 : tensor<5x3xf32>) from(%[[H:.*]] = %arg2 : tensor<?x3xf32>) reverse {
  // CHECK:   mt.mul %[[X]], %[[W]] : tensor<?x3xf32>, tensor<3xf32>
  // CHECK:   mt.yield %{{.*}}, %{{.*}}, %[[W]] : tensor<?x3xf32>, tensor<?x3xf32>, tensor<3xf32>
  %h, %ys, %zs = mt.scan over(%x = %xs : tensor<?x5x3xf32>, %w = %ws : tensor<5x3xf32>)
                         from(%before = %h0 : tensor<?x3xf32>) reverse {
    %0 = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %1 = mt.add %0, %before : tensor<?x3xf32>, tensor<?x3xf32>
    %2 = mt.add %1, %b : tensor<?x3xf32>, tensor<3xf32>
    mt.yield %2, %1, %w : tensor<?x3xf32>, tensor<?x3xf32>, tensor<3xf32>
  }
  // CHECK: mt.relu %[[R]]#0 : tensor<?x3xf32>
  %3 = mt.relu %h : tensor<?x3xf32>
  // CHECK: mt.relu %[[R]]#1 : tensor<?x5x3xf32>
  %4 = mt.relu %ys : tensor<?x5x3xf32>
  // CHECK: mt.relu %[[R]]#2 : tensor<5x3xf32>
  %5 = mt.relu %zs : tensor<5x3xf32>
  return
}

// Without inputs; a loop in a loop; one number a step.
// CHECK-LABEL: func @nested
func.func @nested(%h0: tensor<?xf32>, %xs: tensor<?x7xf32>) {
  // CHECK: mt.scan from(%{{.*}} = %arg0 : tensor<?xf32>) steps = 4 {
  // CHECK:   mt.scan over(%{{.*}} = %arg1 : tensor<?x7xf32>) from(%{{.*}} = %{{.*}} : tensor<?xf32>) {
  %h = mt.scan from(%a = %h0 : tensor<?xf32>) steps = 4 {
    %inner = mt.scan over(%x = %xs : tensor<?x7xf32>) from(%c = %a : tensor<?xf32>) {
      %0 = mt.add %x, %c : tensor<?xf32>, tensor<?xf32>
      mt.yield %0 : tensor<?xf32>
    }
    mt.yield %inner : tensor<?xf32>
  }
  return
}
