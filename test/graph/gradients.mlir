// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --graph-layout | FileCheck %s --implicit-check-not=graph. --implicit-check-not=mt.pad

// Gradients of convolutions and pools, as frameworks write them out, become the ops that mt-differentiate makes.
module attributes {graph.version = 1 : i32} {
  // CHECK-LABEL: mt.model @gradients
  mt.model @gradients {
    %xt = mt.input "x" : tensor<?x10x12x5xf32>
    %dt = mt.input "d" : tensor<?x4x5x7xf32>
    %st = mt.input "s" : tensor<?x10x12x7xf32>
    %wt = mt.variable "w" init(zeros) : tensor<3x3x5x7xf32>
    %pt = mt.variable "p" init(zeros) : tensor<1x1x5x7xf32>
    %xs = graph.logical %xt : tensor<?x10x12x5xf32> -> !graph.value<[b, 10, 12, 5], f32>
    %ds = graph.logical %dt : tensor<?x4x5x7xf32> -> !graph.value<[b, 4, 5, 7], f32>
    %ss = graph.logical %st : tensor<?x10x12x7xf32> -> !graph.value<[b, 10, 12, 7], f32>
    %ws = graph.logical %wt : tensor<3x3x5x7xf32> -> !graph.value<[3, 3, 5, 7], f32>
    %ps = graph.logical %pt : tensor<1x1x5x7xf32> -> !graph.value<[1, 1, 5, 7], f32>
    // CHECK: %[[X:.*]] = mt.input "x"
    // CHECK: %[[D:.*]] = mt.input "d"
    // CHECK: %[[S:.*]] = mt.input "s"
    // CHECK: %[[W:.*]] = mt.variable "w"
    // CHECK: %[[P:.*]] = mt.variable "p"

    // The batch is the feature of both: a kernel's gradient. The forward strides are the dilation.
    %x1 = graph.transpose %xs by [3, 0, 1, 2] : (!graph.value<[b, 10, 12, 5], f32>) -> !graph.value<[5, b, 10, 12], f32>
    %d1 = graph.transpose %ds by [3, 0, 1, 2] : (!graph.value<[b, 4, 5, 7], f32>) -> !graph.value<[7, b, 4, 5], f32>
    %g1 = graph.convolution %x1, %d1 padding [0, -1, 0, -1] dilation [2, 2] : (!graph.value<[5, b, 10, 12], f32>, !graph.value<[7, b, 4, 5], f32>) -> !graph.value<[5, 7, 3, 3], f32>
    %h1 = graph.transpose %g1 by [2, 3, 0, 1] : (!graph.value<[5, 7, 3, 3], f32>) -> !graph.value<[3, 3, 5, 7], f32>
    %b1 = graph.broadcast %h1 dims [1, 2, 3, 4] : (!graph.value<[3, 3, 5, 7], f32>) -> !graph.value<[b, 3, 3, 5, 7], f32>
    %o1 = graph.tensor %b1 : !graph.value<[b, 3, 3, 5, 7], f32> -> tensor<?x3x3x5x7xf32>
    mt.output "kernel", %o1 : tensor<?x3x3x5x7xf32>
    // CHECK: %[[G:.*]] = mt.conv2d_kernel_gradient %[[X]], %[[D]] strides = [2, 2] : tensor<?x10x12x5xf32>, tensor<?x4x5x7xf32> to tensor<3x3x5x7xf32>
    // CHECK-NEXT: mt.broadcast %[[G]]
    // CHECK-NEXT: mt.output "kernel"

    // Zeros between the elements, and a reversed kernel: the images' gradient.
    %d2 = graph.transpose %ds by [0, 3, 1, 2] : (!graph.value<[b, 4, 5, 7], f32>) -> !graph.value<[b, 7, 4, 5], f32>
    %r2 = graph.reverse %ws over [0, 1] : (!graph.value<[3, 3, 5, 7], f32>) -> !graph.value<[3, 3, 5, 7], f32>
    %w2 = graph.transpose %r2 by [2, 3, 0, 1] : (!graph.value<[3, 3, 5, 7], f32>) -> !graph.value<[5, 7, 3, 3], f32>
    %g2 = graph.convolution %d2, %w2 padding [2, 3, 2, 3] spread [2, 2] : (!graph.value<[b, 7, 4, 5], f32>, !graph.value<[5, 7, 3, 3], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %h2 = graph.transpose %g2 by [0, 2, 3, 1] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 10, 12, 5], f32>
    %o2 = graph.tensor %h2 : !graph.value<[b, 10, 12, 5], f32> -> tensor<?x10x12x5xf32>
    mt.output "images", %o2 : tensor<?x10x12x5xf32>
    // CHECK: %[[G:.*]] = mt.conv2d_input_gradient %[[D]], %[[W]] strides = [2, 2] : tensor<?x4x5x7xf32>, tensor<3x3x5x7xf32> to tensor<?x10x12x5xf32>
    // CHECK-NEXT: mt.output "images", %[[G]]

    // The same without strides, where the reversal alone tells it from a convolution.
    %s3 = graph.transpose %ss by [0, 3, 1, 2] : (!graph.value<[b, 10, 12, 7], f32>) -> !graph.value<[b, 7, 10, 12], f32>
    %g3 = graph.convolution %s3, %w2 padding [1, 1, 1, 1] : (!graph.value<[b, 7, 10, 12], f32>, !graph.value<[5, 7, 3, 3], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %h3 = graph.transpose %g3 by [0, 2, 3, 1] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 10, 12, 5], f32>
    %o3 = graph.tensor %h3 : !graph.value<[b, 10, 12, 5], f32> -> tensor<?x10x12x5xf32>
    mt.output "same", %o3 : tensor<?x10x12x5xf32>
    // CHECK: %[[G:.*]] = mt.conv2d_input_gradient %[[S]], %[[W]] padding = [1, 1, 1, 1]
    // CHECK-NEXT: mt.output "same", %[[G]]

    // Of one tap there is nothing to reverse: the convolution with this kernel tells.
    %x4 = graph.transpose %xs by [0, 3, 1, 2] : (!graph.value<[b, 10, 12, 5], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %p4 = graph.transpose %ps by [3, 2, 0, 1] : (!graph.value<[1, 1, 5, 7], f32>) -> !graph.value<[7, 5, 1, 1], f32>
    %y4 = graph.convolution %x4, %p4 : (!graph.value<[b, 5, 10, 12], f32>, !graph.value<[7, 5, 1, 1], f32>) -> !graph.value<[b, 7, 10, 12], f32>
    %q4 = graph.transpose %ps by [2, 3, 0, 1] : (!graph.value<[1, 1, 5, 7], f32>) -> !graph.value<[5, 7, 1, 1], f32>
    %g4 = graph.convolution %y4, %q4 : (!graph.value<[b, 7, 10, 12], f32>, !graph.value<[5, 7, 1, 1], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %h4 = graph.transpose %g4 by [0, 2, 3, 1] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 10, 12, 5], f32>
    %o4 = graph.tensor %h4 : !graph.value<[b, 10, 12, 5], f32> -> tensor<?x10x12x5xf32>
    mt.output "point", %o4 : tensor<?x10x12x5xf32>
    // CHECK: %[[Y:.*]] = mt.conv2d %[[X]], %[[P]]
    // CHECK: %[[G:.*]] = mt.conv2d_input_gradient %[[Y]], %[[P]]
    // CHECK-NEXT: mt.output "point", %[[G]]

    // Padding behind the images that no window reads is that of the convolution.
    %p5 = graph.transpose %ws by [3, 2, 0, 1] : (!graph.value<[3, 3, 5, 7], f32>) -> !graph.value<[7, 5, 3, 3], f32>
    %y5 = graph.convolution %x4, %p5 strides [2, 2] padding [1, 1, 1, 1] : (!graph.value<[b, 5, 10, 12], f32>, !graph.value<[7, 5, 3, 3], f32>) -> !graph.value<[b, 7, 5, 6], f32>
    %z5 = graph.transpose %y5 by [1, 0, 2, 3] : (!graph.value<[b, 7, 5, 6], f32>) -> !graph.value<[7, b, 5, 6], f32>
    %g5 = graph.convolution %x1, %z5 padding [1, 0, 1, 0] dilation [2, 2] : (!graph.value<[5, b, 10, 12], f32>, !graph.value<[7, b, 5, 6], f32>) -> !graph.value<[5, 7, 3, 3], f32>
    %b5 = graph.broadcast %g5 dims [1, 2, 3, 4] : (!graph.value<[5, 7, 3, 3], f32>) -> !graph.value<[b, 5, 7, 3, 3], f32>
    %o5 = graph.tensor %b5 : !graph.value<[b, 5, 7, 3, 3], f32> -> tensor<?x5x7x3x3xf32>
    mt.output "like", %o5 : tensor<?x5x7x3x3xf32>
    // CHECK: %[[Y:.*]] = mt.conv2d %[[X]], %[[W]] strides = [2, 2] padding = [1, 1, 1, 1]
    // CHECK: mt.conv2d_kernel_gradient %[[X]], %[[Y]] strides = [2, 2] padding = [1, 1, 1, 1]
    // CHECK: mt.output "like"

    // Channels by themselves.
    %c6 = graph.slice %s3 starts [0, 0, 0, 0] : (!graph.value<[b, 7, 10, 12], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %c7 = graph.transpose %c6 by [1, 0, 2, 3] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[5, b, 10, 12], f32>
    %g6 = graph.convolution %x1, %c7 padding [1, 1, 1, 1] sample_groups = 5 : (!graph.value<[5, b, 10, 12], f32>, !graph.value<[5, b, 10, 12], f32>) -> !graph.value<[1, 5, 3, 3], f32>
    %b6 = graph.broadcast %g6 dims [1, 2, 3, 4] : (!graph.value<[1, 5, 3, 3], f32>) -> !graph.value<[b, 1, 5, 3, 3], f32>
    %o6 = graph.tensor %b6 : !graph.value<[b, 1, 5, 3, 3], f32> -> tensor<?x1x5x3x3xf32>
    mt.output "channels", %o6 : tensor<?x1x5x3x3xf32>
    // CHECK: mt.conv2d_kernel_gradient %[[X]], %{{.*}} padding = [1, 1, 1, 1] groups = 5 : {{.*}} to tensor<3x3x1x5xf32>
    // CHECK: mt.output "channels"

    %m7 = graph.pool max, %x4 window [2, 2] strides [2, 2] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 5, 5, 6], f32>
    %g7 = graph.pool_gradient %m7 at %x4 window [2, 2] strides [2, 2] : (!graph.value<[b, 5, 5, 6], f32>, !graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 5, 10, 12], f32>
    %h7 = graph.transpose %g7 by [0, 2, 3, 1] : (!graph.value<[b, 5, 10, 12], f32>) -> !graph.value<[b, 10, 12, 5], f32>
    %o7 = graph.tensor %h7 : !graph.value<[b, 10, 12, 5], f32> -> tensor<?x10x12x5xf32>
    mt.output "maximum", %o7 : tensor<?x10x12x5xf32>
    // CHECK: %[[M:.*]] = mt.pool max, %[[X]]
    // CHECK: %[[G:.*]] = mt.pool_gradient max, %[[M]] at %[[X]] window = [2, 2] strides = [2, 2]
    // CHECK-NEXT: mt.output "maximum", %[[G]]
    mt.loss "loss", %xt by samples : tensor<?x10x12x5xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }

  // CHECK-LABEL: mt.model @average
  mt.model @average {
    %xt = mt.input "x" : tensor<?x5x6x4xf32>
    %xs = graph.logical %xt : tensor<?x5x6x4xf32> -> !graph.value<[b, 5, 6, 4], f32>
    %x = graph.transpose %xs by [0, 3, 1, 2] : (!graph.value<[b, 5, 6, 4], f32>) -> !graph.value<[b, 4, 5, 6], f32>
    %p = graph.pad %x low [0, 0, 1, 1] high [0, 0, 1, 1] interior [0, 0, 1, 1] : (!graph.value<[b, 4, 5, 6], f32>) -> !graph.value<[b, 4, 11, 13], f32>
    %g = graph.pool sum, %p window [2, 2] : (!graph.value<[b, 4, 11, 13], f32>) -> !graph.value<[b, 4, 10, 12], f32>
    %h = graph.transpose %g by [0, 2, 3, 1] : (!graph.value<[b, 4, 10, 12], f32>) -> !graph.value<[b, 10, 12, 4], f32>
    %o = graph.tensor %h : !graph.value<[b, 10, 12, 4], f32> -> tensor<?x10x12x4xf32>
    mt.output "sum", %o : tensor<?x10x12x4xf32>
    // CHECK: mt.pool_gradient sum, %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x5x6x4xf32> to tensor<?x10x12x4xf32>
    mt.loss "loss", %xt by samples : tensor<?x5x6x4xf32>
    mt.sgd <{learning_rate = 0.1 : f32}>
  }
}
