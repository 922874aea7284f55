// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-recognize-softmax --split-input-file | FileCheck %s

// CHECK-LABEL: mt.model @softmax
// CHECK-NEXT:  %[[X:.*]] = mt.input "x"
// CHECK-NEXT:  %[[Y:.*]] = mt.softmax %[[X]] : tensor<?x3x8xf32>
// CHECK-NEXT:  mt.output "y", %[[Y]]
mt.model @softmax {
  %x = mt.input "x" : tensor<?x3x8xf32>
  %0 = mt.reduce max, %x over [2] : tensor<?x3x8xf32>
  %1 = mt.reshape %0 : tensor<?x3xf32> to tensor<?x3x1xf32>
  %2 = mt.sub %x, %1 : tensor<?x3x8xf32>, tensor<?x3x1xf32>
  %3 = mt.exp %2 : tensor<?x3x8xf32>
  %4 = mt.reduce sum, %3 over [2] : tensor<?x3x8xf32>
  %5 = mt.reshape %4 : tensor<?x3xf32> to tensor<?x3x1xf32>
  %6 = mt.div %3, %5 : tensor<?x3x8xf32>, tensor<?x3x1xf32>
  mt.output "y", %6 : tensor<?x3x8xf32>
  %l = mt.reduce sum, %x over [1, 2] : tensor<?x3x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// The maximum of JAX: without a gradient, and 0 where it is not finite. The maximum of StableHLO starts at -infinity.

// CHECK-LABEL: mt.model @log_softmax
// CHECK-NEXT:  %[[X:.*]] = mt.input "x"
// CHECK-NEXT:  %[[Y:.*]] = mt.log_softmax %[[X]] : tensor<?x8xf32>
// CHECK-NEXT:  mt.output "y", %[[Y]]
mt.model @log_softmax {
  %x = mt.input "x" : tensor<?x8xf32>
  %0 = mt.reduce max, %x over [1] : tensor<?x8xf32>
  %lowest = mt.constant dense<0xFF800000> : tensor<f32>
  %1 = mt.maximum %lowest, %0 : tensor<f32>, tensor<?xf32>
  %2 = mt.stop_gradient %1 : tensor<?xf32>
  %3 = mt.reshape %2 : tensor<?xf32> to tensor<?x1xf32>
  %size = mt.abs %3 : tensor<?x1xf32>
  %infinity = mt.constant dense<0x7F800000> : tensor<f32>
  %finite = mt.compare lt, %size, %infinity : tensor<?x1xf32>, tensor<f32>
  %zero = mt.constant dense<0.0> : tensor<f32>
  %4 = mt.select %finite, %3, %zero : tensor<?x1xi1>, tensor<?x1xf32>, tensor<f32>
  %5 = mt.sub %x, %4 : tensor<?x8xf32>, tensor<?x1xf32>
  %6 = mt.exp %5 : tensor<?x8xf32>
  %7 = mt.reduce sum, %6 over [1] : tensor<?x8xf32>
  %8 = mt.log %7 : tensor<?xf32>
  %9 = mt.reshape %8 : tensor<?xf32> to tensor<?x1xf32>
  %10 = mt.sub %5, %9 : tensor<?x8xf32>, tensor<?x1xf32>
  mt.output "y", %10 : tensor<?x8xf32>
  %l = mt.reduce sum, %x over [1] : tensor<?x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}

// -----
// Without a maximum, with that of another value, along another axis, and of sums over other axes: as they are.

// CHECK-LABEL: mt.model @others
// CHECK-NOT:   mt.softmax
// CHECK-COUNT-4: mt.div
// CHECK-NOT:   mt.softmax
mt.model @others {
  %x = mt.input "x" : tensor<?x8x8xf32>
  %z = mt.input "z" : tensor<?x8x8xf32>
  %e = mt.exp %x : tensor<?x8x8xf32>
  %s = mt.reduce sum, %e over [2] : tensor<?x8x8xf32>
  %s1 = mt.reshape %s : tensor<?x8xf32> to tensor<?x8x1xf32>
  %naive = mt.div %e, %s1 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  mt.output "naive", %naive : tensor<?x8x8xf32>

  %m = mt.reduce max, %z over [2] : tensor<?x8x8xf32>
  %m1 = mt.reshape %m : tensor<?x8xf32> to tensor<?x8x1xf32>
  %d = mt.sub %x, %m1 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  %f = mt.exp %d : tensor<?x8x8xf32>
  %t = mt.reduce sum, %f over [2] : tensor<?x8x8xf32>
  %t1 = mt.reshape %t : tensor<?x8xf32> to tensor<?x8x1xf32>
  %foreign = mt.div %f, %t1 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  mt.output "foreign", %foreign : tensor<?x8x8xf32>

  %n = mt.reduce max, %x over [1] : tensor<?x8x8xf32>
  %n1 = mt.reshape %n : tensor<?x8xf32> to tensor<?x1x8xf32>
  %g = mt.sub %x, %n1 : tensor<?x8x8xf32>, tensor<?x1x8xf32>
  %h = mt.exp %g : tensor<?x8x8xf32>
  %u = mt.reduce sum, %h over [1] : tensor<?x8x8xf32>
  %u1 = mt.reshape %u : tensor<?x8xf32> to tensor<?x1x8xf32>
  %columns = mt.div %h, %u1 : tensor<?x8x8xf32>, tensor<?x1x8xf32>
  mt.output "columns", %columns : tensor<?x8x8xf32>

  %k = mt.reduce max, %x over [2] : tensor<?x8x8xf32>
  %k1 = mt.reshape %k : tensor<?x8xf32> to tensor<?x8x1xf32>
  %i = mt.sub %x, %k1 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  %j = mt.exp %i : tensor<?x8x8xf32>
  %v = mt.reduce sum, %j over [1] : tensor<?x8x8xf32>
  %v1 = mt.reshape %v : tensor<?x8xf32> to tensor<?x8x1xf32>
  %mixed = mt.div %j, %v1 : tensor<?x8x8xf32>, tensor<?x8x1xf32>
  mt.output "mixed", %mixed : tensor<?x8x8xf32>
  %l = mt.reduce sum, %x over [1, 2] : tensor<?x8x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
