// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-join-sums --split-input-file | FileCheck %s

// Three steps. The parts of %x are one concatenation, whose order the right sides of the products for %w follow. The
// sums for %v follow the first concatenation of what they add.
mt.program @steps {
  %a = mt.input "a" : tensor<?x2xf32>
  %b = mt.input "b" : tensor<?x2xf32>
  %c = mt.input "c" : tensor<?x2xf32>
  %wc = mt.matmul %a, %c transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %wb = mt.matmul %b, %b transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %wa = mt.matmul %c, %a transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w0 = mt.add %wc, %wb : tensor<2x2xf32>, tensor<2x2xf32>
  %w = mt.add %w0, %wa : tensor<2x2xf32>, tensor<2x2xf32>
  mt.assign "w", %w : tensor<2x2xf32>
  %bc = mt.reduce sum, %c over [0] : tensor<?x2xf32>
  %bb = mt.reduce sum, %b over [0] : tensor<?x2xf32>
  %ba = mt.reduce sum, %a over [0] : tensor<?x2xf32>
  %v0 = mt.add %bc, %bb : tensor<2xf32>, tensor<2xf32>
  %v = mt.add %v0, %ba : tensor<2xf32>, tensor<2xf32>
  mt.assign "v", %v : tensor<2xf32>
  %xa = mt.pad %a low = [0] high = [4] : tensor<?x2xf32>
  %xb = mt.pad %b low = [2] high = [2] : tensor<?x2xf32>
  %xc = mt.pad %c low = [4] high = [0] : tensor<?x2xf32>
  %x0 = mt.add %xc, %xb : tensor<?x6xf32>, tensor<?x6xf32>
  %x = mt.add %x0, %xa : tensor<?x6xf32>, tensor<?x6xf32>
  mt.output "x", %x : tensor<?x6xf32>
}
// CHECK-LABEL: mt.program @steps
// CHECK-DAG:   %[[A:.*]] = mt.input "a"
// CHECK-DAG:   %[[B:.*]] = mt.input "b"
// CHECK-DAG:   %[[C:.*]] = mt.input "c"
// CHECK:       %[[L:.*]] = mt.concat %[[C]], %[[B]], %[[A]] dim = 1
// CHECK:       %[[LS:.*]] = mt.reshape %[[L]] : tensor<?x6xf32> to tensor<?x3x2xf32>
// CHECK:       %[[R:.*]] = mt.concat %[[A]], %[[B]], %[[C]] dim = 1
// CHECK:       %[[RS:.*]] = mt.reshape %[[R]] : tensor<?x6xf32> to tensor<?x3x2xf32>
// CHECK:       %[[EACH:.*]] = mt.matmul %[[LS]], %[[RS]] transpose_a
// CHECK:       %[[W:.*]] = mt.reduce sum, %[[EACH]] over [0] : tensor<?x2x2xf32>
// CHECK:       mt.assign "w", %[[W]]
// CHECK:       %[[S:.*]] = mt.reduce sum, %[[LS]] over [1] : tensor<?x3x2xf32>
// CHECK:       %[[V:.*]] = mt.reduce sum, %[[S]] over [0] : tensor<?x2xf32>
// CHECK:       mt.assign "v", %[[V]]
// CHECK:       mt.output "x", %[[R]]

// -----

// Parts along the first axis of a sample, from the second one on.
mt.program @rows {
  %a = mt.input "a" : tensor<?x1x2xf32>
  %b = mt.input "b" : tensor<?x1x2xf32>
  %c = mt.input "c" : tensor<?x1x2xf32>
  %xa = mt.pad %a low = [1, 0] high = [2, 0] : tensor<?x1x2xf32>
  %xb = mt.pad %b low = [2, 0] high = [1, 0] : tensor<?x1x2xf32>
  %xc = mt.pad %c low = [3, 0] high = [0, 0] : tensor<?x1x2xf32>
  %x0 = mt.add %xc, %xb : tensor<?x4x2xf32>, tensor<?x4x2xf32>
  %x = mt.add %x0, %xa : tensor<?x4x2xf32>, tensor<?x4x2xf32>
  mt.output "x", %x : tensor<?x4x2xf32>
}
// CHECK-LABEL: mt.program @rows
// CHECK:       %[[J:.*]] = mt.concat %{{.*}}, %{{.*}}, %{{.*}} dim = 1
// CHECK:       %[[X:.*]] = mt.pad %[[J]] low = [1, 0] high = [0, 0]
// CHECK:       mt.output "x", %[[X]]

// -----

// Left alone: parts with a gap, a product that something else reads.
mt.program @others {
  %a = mt.input "a" : tensor<?x2xf32>
  %b = mt.input "b" : tensor<?x2xf32>
  %xa = mt.pad %a low = [0] high = [6] : tensor<?x2xf32>
  %xb = mt.pad %b low = [2] high = [4] : tensor<?x2xf32>
  %xc = mt.pad %a low = [6] high = [0] : tensor<?x2xf32>
  %x0 = mt.add %xc, %xb : tensor<?x8xf32>, tensor<?x8xf32>
  %x = mt.add %x0, %xa : tensor<?x8xf32>, tensor<?x8xf32>
  mt.output "x", %x : tensor<?x8xf32>
  %w0 = mt.matmul %a, %b transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w2 = mt.matmul %a, %a transpose_a : tensor<?x2xf32>, tensor<?x2xf32>
  %w = mt.add %w0, %w2 : tensor<2x2xf32>, tensor<2x2xf32>
  mt.assign "w", %w : tensor<2x2xf32>
  mt.assign "v", %w2 : tensor<2x2xf32>
}
// CHECK-LABEL: mt.program @others
// CHECK-NOT:   mt.concat
// CHECK:       mt.assign "v"

// -----

// A variable that is used twice: for one row of a sample and for several rows; a table that is looked up twice, which
// the ids of a sample follow one another in; and a gradient of a product and a lookup, which stay two sums.
mt.program @twice {
  %a = mt.input "a" : tensor<?x2xf32>
  %s = mt.input "s" : tensor<?x5x2xf32>
  %x = mt.input "x" : tensor<?x5x3xf32>
  %y = mt.input "y" : tensor<?x3xf32>
  %i = mt.input "i" : tensor<?xi32>
  %j = mt.input "j" : tensor<?x5xi32>
  %p = mt.matmul %s, %x transpose_a : tensor<?x5x2xf32>, tensor<?x5x3xf32>
  %w1 = mt.reduce sum, %p over [0] : tensor<?x2x3xf32>
  %w0 = mt.matmul %a, %y transpose_a : tensor<?x2xf32>, tensor<?x3xf32>
  %w = mt.add %w1, %w0 : tensor<2x3xf32>, tensor<2x3xf32>
  mt.assign "w", %w : tensor<2x3xf32>
  %t1 = mt.scatter_add %j, %s : tensor<?x5xi32>, tensor<?x5x2xf32> to tensor<9x2xf32>
  %t0 = mt.scatter_add %i, %a : tensor<?xi32>, tensor<?x2xf32> to tensor<9x2xf32>
  %t = mt.add %t1, %t0 : tensor<9x2xf32>, tensor<9x2xf32>
  mt.assign "t", %t : tensor<9x2xf32>
  %u1 = mt.matmul %y, %a transpose_a : tensor<?x3xf32>, tensor<?x2xf32>
  %u0 = mt.scatter_add %i, %a : tensor<?xi32>, tensor<?x2xf32> to tensor<3x2xf32>
  %u = mt.add %u1, %u0 : tensor<3x2xf32>, tensor<3x2xf32>
  mt.assign "u", %u : tensor<3x2xf32>
}
// CHECK-LABEL: mt.program @twice
// CHECK-DAG:   %[[A:.*]] = mt.input "a"
// CHECK-DAG:   %[[S:.*]] = mt.input "s"
// CHECK-DAG:   %[[X:.*]] = mt.input "x"
// CHECK-DAG:   %[[Y:.*]] = mt.input "y"
// CHECK-DAG:   %[[I:.*]] = mt.input "i"
// CHECK-DAG:   %[[J:.*]] = mt.input "j"
// CHECK:       %[[A1:.*]] = mt.reshape %[[A]] : tensor<?x2xf32> to tensor<?x1x2xf32>
// CHECK:       %[[L:.*]] = mt.concat %[[A1]], %[[S]] dim = 1
// CHECK:       %[[Y1:.*]] = mt.reshape %[[Y]] : tensor<?x3xf32> to tensor<?x1x3xf32>
// CHECK:       %[[R:.*]] = mt.concat %[[Y1]], %[[X]] dim = 1
// CHECK:       %[[P:.*]] = mt.matmul %[[L]], %[[R]] transpose_a : tensor<?x6x2xf32>, tensor<?x6x3xf32>
// CHECK:       %[[W:.*]] = mt.reduce sum, %[[P]] over [0]
// CHECK:       mt.assign "w", %[[W]]
// CHECK:       %[[I1:.*]] = mt.reshape %[[I]] : tensor<?xi32> to tensor<?x1xi32>
// CHECK:       %[[IDS:.*]] = mt.concat %[[I1]], %[[J]] dim = 1
// CHECK:       %[[T:.*]] = mt.scatter_add %[[IDS]], %[[L]] : tensor<?x6xi32>, tensor<?x6x2xf32> to tensor<9x2xf32>
// CHECK:       mt.assign "t", %[[T]]
// CHECK:       mt.add
// CHECK:       mt.assign "u"

// -----

// The sum over the batch of differences from its mean is 0. What is added to it is left.
mt.program @centred {
  %x = mt.input "x" : tensor<?x4x4x8xf32>
  %n = mt.batch_size
  %pixels = mt.constant dense<16.0> : tensor<f32>
  %two = mt.constant dense<2.0> : tensor<f32>
  %count = mt.mul %n, %pixels : tensor<f32>, tensor<f32>
  %k = mt.read "k" : tensor<8xf32>
  %s = mt.reduce sum, %x over [1, 2] : tensor<?x4x4x8xf32>
  %t = mt.reduce sum, %s over [0] : tensor<?x8xf32>
  %mean = mt.div %t, %count : tensor<8xf32>, tensor<f32>
  %d = mt.sub %x, %mean : tensor<?x4x4x8xf32>, tensor<8xf32>
  %d2 = mt.mul %two, %d : tensor<f32>, tensor<?x4x4x8xf32>
  %g = mt.mul %k, %d2 : tensor<8xf32>, tensor<?x4x4x8xf32>
  %h = mt.neg %g : tensor<?x4x4x8xf32>
  %u = mt.reduce sum, %h over [1, 2] : tensor<?x4x4x8xf32>
  %v = mt.reduce sum, %u over [0] : tensor<?x8xf32>
  %w = mt.div %v, %count : tensor<8xf32>, tensor<f32>
  %y = mt.add %g, %w : tensor<?x4x4x8xf32>, tensor<8xf32>
  mt.output "y", %y : tensor<?x4x4x8xf32>
}
// CHECK-LABEL: mt.program @centred
// CHECK:       %[[MEAN:.*]] = mt.div
// CHECK-NEXT:  %[[D:.*]] = mt.sub %{{.*}}, %[[MEAN]]
// CHECK-NEXT:  %[[D2:.*]] = mt.mul %{{.*}}, %[[D]]
// CHECK-NEXT:  %[[G:.*]] = mt.mul %{{.*}}, %[[D2]]
// CHECK-NEXT:  mt.output "y", %[[G]]

// -----

// These are not 0: of another mean, of the mean of each sample, with a factor for each sample, with another divisor.
mt.program @not_centred {
  %x = mt.input "x" : tensor<?x4x8xf32>
  %z = mt.input "z" : tensor<?x4x8xf32>
  %f = mt.input "f" : tensor<?x1x1xf32>
  %n = mt.batch_size
  %four = mt.constant dense<4.0> : tensor<f32>
  %count = mt.mul %n, %four : tensor<f32>, tensor<f32>
  %s = mt.reduce sum, %x over [1] : tensor<?x4x8xf32>
  %t = mt.reduce sum, %s over [0] : tensor<?x8xf32>
  %mean = mt.div %t, %count : tensor<8xf32>, tensor<f32>
  %other = mt.div %t, %n : tensor<8xf32>, tensor<f32>
  %d0 = mt.sub %z, %mean : tensor<?x4x8xf32>, tensor<8xf32>
  %u0 = mt.reduce sum, %d0 over [1] : tensor<?x4x8xf32>
  %v0 = mt.reduce sum, %u0 over [0] : tensor<?x8xf32>
  mt.assign "a", %v0 : tensor<8xf32>
  %d1 = mt.sub %x, %mean : tensor<?x4x8xf32>, tensor<8xf32>
  %m1 = mt.mul %d1, %f : tensor<?x4x8xf32>, tensor<?x1x1xf32>
  %u1 = mt.reduce sum, %m1 over [1] : tensor<?x4x8xf32>
  %v1 = mt.reduce sum, %u1 over [0] : tensor<?x8xf32>
  mt.assign "b", %v1 : tensor<8xf32>
  %d2 = mt.sub %x, %other : tensor<?x4x8xf32>, tensor<8xf32>
  %u2 = mt.reduce sum, %d2 over [1] : tensor<?x4x8xf32>
  %v2 = mt.reduce sum, %u2 over [0] : tensor<?x8xf32>
  mt.assign "c", %v2 : tensor<8xf32>
  %v3 = mt.reduce sum, %d1 over [0] : tensor<?x4x8xf32>
  mt.assign "d", %v3 : tensor<4x8xf32>
}
// CHECK-LABEL: mt.program @not_centred
// CHECK-COUNT-5: over [0]
