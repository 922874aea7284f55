// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pad-channels --split-input-file | FileCheck %s
//
// Three channels become four. Of a stride of 2, pairs of columns become one: the window, which begins at an odd column
// because of the border, gets a tap of zeros in front. The border is the convolution's padding then. What two
// convolutions read alike is made once.

// CHECK-LABEL: mt.model @three
// CHECK:       %[[IMAGES:.*]] = mt.input "x"
// CHECK-DAG:   %[[FOUR:.*]] = mt.pad %[[IMAGES]] low = [0, 0, 0] high = [0, 0, 1] : tensor<?x10x12x3xf32>
// CHECK-DAG:   %[[MORE:.*]] = mt.pad %[[IMAGES]] low = [0, 0, 0] high = [0, 0, 1] : tensor<?x10x12x3xf32>
// CHECK-DAG:   %[[PAIRS:.*]] = mt.reshape %{{.*}} : tensor<?x10x12x4xf32> to tensor<?x10x6x8xf32>
// CHECK-DAG:   %[[W:.*]] = mt.variable "w"
// CHECK-DAG:   %[[WIDE:.*]] = mt.pad %[[W]] low = [0, 0, 0, 0] high = [0, 0, 1, 0] : tensor<3x3x3x8xf32>
// CHECK-DAG:   %[[V:.*]] = mt.variable "v"
// CHECK-DAG:   %[[TAPS:.*]] = mt.pad %[[V]] low = [0, 1, 0, 0] high = [0, 0, 1, 0] : tensor<7x7x3x8xf32>
// CHECK-DAG:   %[[VPAIRS:.*]] = mt.reshape %[[TAPS]] : tensor<7x8x4x8xf32> to tensor<7x4x8x8xf32>
// CHECK-DAG:   mt.conv2d %[[PAIRS]], %[[VPAIRS]] strides = [2, 1] padding = [3, 3, 2, 1] : tensor<?x10x6x8xf32>, tensor<7x4x8x8xf32>
// CHECK-COUNT-2: mt.conv2d %{{.*}}, %[[WIDE]] padding = [1, 1, 1, 1] : tensor<?x10x12x4xf32>, tensor<3x3x4x8xf32>
module attributes {mt.compilation = #mt.compilation<name = "three", precision = bf16>} {
mt.model @three {
  %x = mt.input "x" : tensor<?x10x12x3xf32>
  %w = mt.variable "w" init(zeros) : tensor<3x3x3x8xf32>
  %v = mt.variable "v" init(zeros) : tensor<7x7x3x8xf32>
  %border = mt.pad %x low = [3, 3, 0] high = [3, 3, 0] : tensor<?x10x12x3xf32>
  %a = mt.conv2d %border, %v strides = [2, 2] : tensor<?x16x18x3xf32>, tensor<7x7x3x8xf32>
  %b = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x10x12x3xf32>, tensor<3x3x3x8xf32>
  %c = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x10x12x3xf32>, tensor<3x3x3x8xf32>
  mt.output "a", %a : tensor<?x5x6x8xf32>
  mt.output "b", %b : tensor<?x10x12x8xf32>
  mt.output "c", %c : tensor<?x10x12x8xf32>
  %square = mt.square %b : tensor<?x10x12x8xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x10x12x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}

// -----

// One channel becomes two. Patches of 16 columns are folded as they are, patches of 4 with a fourth channel. An odd
// number of columns gets another, in which no window of the model's lies; the last window reads all of the padding.

// CHECK-LABEL: mt.model @others
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} : tensor<?x32x32x2xf32>, tensor<3x3x2x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [16, 1] : tensor<?x32x2x48xf32>, tensor<16x1x48x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [4, 1] : tensor<?x32x8x16xf32>, tensor<4x1x16x8xf32>
// CHECK-DAG:   mt.pad %{{.*}} low = [0, 0, 0] high = [0, 1, 1] : tensor<?x9x9x3xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [2, 1] padding = [0, 1, 0, 0] : tensor<?x9x5x8xf32>, tensor<3x2x8x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [2, 1] padding = [1, 1, 1, 0] : tensor<?x9x5x8xf32>, tensor<3x2x8x8xf32>
module attributes {mt.compilation = #mt.compilation<name = "others", precision = f16>} {
mt.model @others {
  %gray = mt.input "gray" : tensor<?x32x32x1xf32>
  %x = mt.input "x" : tensor<?x32x32x3xf32>
  %odd = mt.input "odd" : tensor<?x9x9x3xf32>
  %w1 = mt.variable "w1" init(zeros) : tensor<3x3x1x8xf32>
  %w3 = mt.variable "w3" init(zeros) : tensor<3x3x3x8xf32>
  %w4 = mt.variable "w4" init(zeros) : tensor<4x4x3x8xf32>
  %w16 = mt.variable "w16" init(zeros) : tensor<16x16x3x8xf32>
  %a = mt.conv2d %gray, %w1 : tensor<?x32x32x1xf32>, tensor<3x3x1x8xf32>
  %b = mt.conv2d %x, %w16 strides = [16, 16] : tensor<?x32x32x3xf32>, tensor<16x16x3x8xf32>
  %c = mt.conv2d %x, %w4 strides = [4, 4] : tensor<?x32x32x3xf32>, tensor<4x4x3x8xf32>
  %d = mt.conv2d %odd, %w3 strides = [2, 2] padding = [0, 1, 0, 0] : tensor<?x9x9x3xf32>, tensor<3x3x3x8xf32>
  %e = mt.conv2d %odd, %w3 strides = [2, 2] padding = [1, 1, 1, 1] : tensor<?x9x9x3xf32>, tensor<3x3x3x8xf32>
  mt.output "a", %a : tensor<?x30x30x8xf32>
  mt.output "b", %b : tensor<?x2x2x8xf32>
  mt.output "c", %c : tensor<?x8x8x8xf32>
  mt.output "d", %d : tensor<?x4x4x8xf32>
  mt.output "e", %e : tensor<?x5x5x8xf32>
  %square = mt.square %a : tensor<?x30x30x8xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x30x30x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}

// -----

// Not folded, but padded: patches of 4 of 30 columns, of which no window reads the last two; strides with dilations;
// strides of 5, since 20 channels make no larger copies than 4; a window that would become twice as wide. A border of
// ones stays, and one that is wider than a window.

// CHECK-LABEL: mt.model @apart
// CHECK:       mt.pad %{{.*}} low = [2, 2, 0] high = [2, 2, 0] value = 1.0
// CHECK:       mt.pad %{{.*}} low = [2, 2, 0] high = [2, 2, 0] :
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [4, 4] : tensor<?x30x30x4xf32>, tensor<4x4x4x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [2, 2] dilation = [2, 2] : tensor<?x30x30x4xf32>, tensor<4x4x4x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [5, 5] : tensor<?x30x30x4xf32>, tensor<4x4x4x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} strides = [4, 4] padding = [1, 1, 1, 1] : tensor<?x30x30x4xf32>, tensor<4x4x4x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} : tensor<?x34x34x4xf32>, tensor<4x4x4x8xf32>
// CHECK-DAG:   mt.conv2d %{{.*}}, %{{.*}} : tensor<?x34x34x4xf32>, tensor<1x1x4x8xf32>
module attributes {mt.compilation = #mt.compilation<name = "apart", precision = bf16>} {
mt.model @apart {
  %x = mt.input "x" : tensor<?x30x30x3xf32>
  %w = mt.variable "w" init(zeros) : tensor<4x4x3x8xf32>
  %one = mt.variable "one" init(zeros) : tensor<1x1x3x8xf32>
  %ones = mt.pad %x low = [2, 2, 0] high = [2, 2, 0] value = 1.0 : tensor<?x30x30x3xf32>
  %zeros = mt.pad %x low = [2, 2, 0] high = [2, 2, 0] : tensor<?x30x30x3xf32>
  %a = mt.conv2d %x, %w strides = [4, 4] : tensor<?x30x30x3xf32>, tensor<4x4x3x8xf32>
  %b = mt.conv2d %x, %w strides = [2, 2] dilation = [2, 2] : tensor<?x30x30x3xf32>, tensor<4x4x3x8xf32>
  %c = mt.conv2d %x, %w strides = [5, 5] : tensor<?x30x30x3xf32>, tensor<4x4x3x8xf32>
  %f = mt.conv2d %x, %w strides = [4, 4] padding = [1, 1, 1, 1] : tensor<?x30x30x3xf32>, tensor<4x4x3x8xf32>
  %d = mt.conv2d %ones, %w : tensor<?x34x34x3xf32>, tensor<4x4x3x8xf32>
  %e = mt.conv2d %zeros, %one : tensor<?x34x34x3xf32>, tensor<1x1x3x8xf32>
  mt.output "a", %a : tensor<?x7x7x8xf32>
  mt.output "b", %b : tensor<?x12x12x8xf32>
  mt.output "c", %c : tensor<?x6x6x8xf32>
  mt.output "f", %f : tensor<?x8x8x8xf32>
  mt.output "d", %d : tensor<?x31x31x8xf32>
  mt.output "e", %e : tensor<?x34x34x8xf32>
  %square = mt.square %a : tensor<?x7x7x8xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x7x7x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}

// -----

// As they are: four channels, and eight; groups; images that a product computes; a convolution that stays in f32.
// CHECK-LABEL: mt.model @whole
// CHECK-NOT:   mt.pad
// CHECK-NOT:   mt.reshape
module attributes {mt.compilation = #mt.compilation<name = "whole", precision = bf16>} {
mt.model @whole {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %four = mt.input "four" : tensor<?x8x8x4xf32>
  %eight = mt.input "eight" : tensor<?x8x8x8xf32>
  %w3 = mt.variable "w3" init(zeros) : tensor<3x3x3x3xf32>
  %w4 = mt.variable "w4" init(zeros) : tensor<3x3x4x3xf32>
  %w8 = mt.variable "w8" init(zeros) : tensor<2x2x8x8xf32>
  %w1 = mt.variable "w1" init(zeros) : tensor<3x3x1x3xf32>
  %0 = mt.conv2d %four, %w4 padding = [1, 1, 1, 1] : tensor<?x8x8x4xf32>, tensor<3x3x4x3xf32>
  %1 = mt.relu %0 : tensor<?x8x8x3xf32>
  %2 = mt.conv2d %1, %w3 : tensor<?x8x8x3xf32>, tensor<3x3x3x3xf32>
  mt.output "product", %2 : tensor<?x6x6x3xf32>
  %3 = mt.conv2d %eight, %w8 strides = [2, 2] : tensor<?x8x8x8xf32>, tensor<2x2x8x8xf32>
  mt.output "strided", %3 : tensor<?x4x4x8xf32>
  %4 = mt.conv2d %x, %w1 groups = 3 : tensor<?x8x8x3xf32>, tensor<3x3x1x3xf32>
  mt.output "groups", %4 : tensor<?x6x6x3xf32>
  %5 = mt.conv2d %x, %w3 {mt.precision = "f32"} : tensor<?x8x8x3xf32>, tensor<3x3x3x3xf32>
  mt.output "kept", %5 : tensor<?x6x6x3xf32>
  %square = mt.square %5 : tensor<?x6x6x3xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x6x6x3xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
}

// -----

// In f32.
// CHECK-LABEL: mt.model @single
// CHECK-NOT:   mt.pad
mt.model @single {
  %x = mt.input "x" : tensor<?x8x8x3xf32>
  %w = mt.variable "w" init(zeros) : tensor<3x3x3x8xf32>
  %0 = mt.conv2d %x, %w : tensor<?x8x8x3xf32>, tensor<3x3x3x8xf32>
  %square = mt.square %0 : tensor<?x6x6x8xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x6x6x8xf32>
  mt.loss "loss", %l : tensor<?xf32>
  mt.sgd
}
