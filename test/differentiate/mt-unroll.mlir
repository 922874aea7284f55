// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-unroll --split-input-file | FileCheck %s

// Backwards: the last step's part comes first, and outputs lie where their inputs do. Each step draws numbers of its
// own.
mt.model @steps {
  %xs = mt.input "x" : tensor<?x3x2xf32>
  %w = mt.variable "w" init(ones) : tensor<2x2xf32>
  %h0 = mt.input "h" : tensor<?x2xf32>
  %h, %ys = mt.scan over(%x = %xs : tensor<?x3x2xf32>) from(%before = %h0 : tensor<?x2xf32>) reverse {
    %0 = mt.matmul %before, %w : tensor<?x2xf32>, tensor<2x2xf32>
    %1 = mt.add %x, %0 : tensor<?x2xf32>, tensor<?x2xf32>
    %2 = mt.dropout %1 "s" rate = 0.5 : tensor<?x2xf32>
    mt.yield %1, %2 : tensor<?x2xf32>, tensor<?x2xf32>
  }
  %l = mt.reduce sum, %ys over [1, 2] : tensor<?x3x2xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.output "last", %h : tensor<?x2xf32>
  mt.sgd
}
// CHECK-LABEL: mt.model @steps
// CHECK:     %[[ROW:.*]] = mt.reshape %{{.*}} : tensor<?x3x2xf32> to tensor<?x6xf32>
// CHECK:     %[[X2:.*]] = mt.slice %[[ROW]] starts = [4] sizes = [2] : tensor<?x6xf32>
// CHECK:     %[[A2:.*]] = mt.add %[[X2]], %{{.*}}
// CHECK:     %[[Y2:.*]] = mt.dropout %[[A2]] "s/2"
// CHECK:     %[[X1:.*]] = mt.slice %[[ROW]] starts = [2] sizes = [2] : tensor<?x6xf32>
// CHECK:     mt.matmul %[[A2]]
// CHECK:     %[[A1:.*]] = mt.add %[[X1]], %{{.*}}
// CHECK:     %[[Y1:.*]] = mt.dropout %[[A1]] "s/1"
// CHECK:     %[[X0:.*]] = mt.slice %[[ROW]] starts = [0] sizes = [2] : tensor<?x6xf32>
// CHECK:     %[[A0:.*]] = mt.add %[[X0]], %{{.*}}
// CHECK:     %[[Y0:.*]] = mt.dropout %[[A0]] "s/0"
// CHECK:     %[[Y:.*]] = mt.concat %[[Y0]], %[[Y1]], %[[Y2]] dim = 1
// CHECK:     %[[YS:.*]] = mt.reshape %[[Y]] : tensor<?x6xf32> to tensor<?x3x2xf32>
// CHECK:     mt.reduce sum, %[[YS]]
// CHECK:     mt.output "last", %[[A0]]
// CHECK-NOT: mt.scan

// -----

// A loop in a loop; steps of one number; replicated values.
mt.model @nested {
  %xs = mt.input "x" : tensor<?x2xf32>
  %ws = mt.variable "w" init(ones) : tensor<2x3xf32>
  %zs = mt.scan over(%x = %xs : tensor<?x2xf32>, %w = %ws : tensor<2x3xf32>) {
    %ys = mt.scan over(%v = %w : tensor<3xf32>) {
      %0 = mt.mul %x, %v : tensor<?xf32>, tensor<f32>
      mt.yield %0 : tensor<?xf32>
    }
    mt.yield %ys : tensor<?x3xf32>
  }
  %l = mt.reduce sum, %zs over [1, 2] : tensor<?x2x3xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
// CHECK-LABEL: mt.model @nested
// CHECK:         %[[W:.*]] = mt.reshape %{{.*}} : tensor<2x3xf32> to tensor<6xf32>
// CHECK:         %[[ONE:.*]] = mt.slice %{{.*}} starts = [0] sizes = [1] : tensor<?x2xf32>
// CHECK:         %[[X:.*]] = mt.reshape %[[ONE]] : tensor<?x1xf32> to tensor<?xf32>
// CHECK:         %[[V:.*]] = mt.slice %[[W]] starts = [0] sizes = [3] : tensor<6xf32>
// CHECK-COUNT-6: mt.mul %{{.*}}, %{{.*}} : tensor<?xf32>, tensor<f32>
// CHECK-NOT:     mt.scan
