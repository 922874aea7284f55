// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-pad-channels --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-precision --cse --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse=images=false | FileCheck %s
//
// Images of three channels with a border, and a stride of 2: one kernel makes the copy in 16 bits of 4 channels and
// pairs of columns, whatever the images' size, another that of the kernel. The gradient of a small kernel is a product
// over the batch, of which the update reads the model's part.
module attributes {mt.compilation = #mt.compilation<name = "padded", batch = 4, shards = 2, shard_rows = 2, precision = bf16>} {
mt.model @padded {
  %x = mt.input "x" : tensor<?x512x512x3xf32>
  %half = mt.constant dense<0.5> : tensor<f32>
  %w = mt.variable "w" init(glorot_uniform) : tensor<7x7x3x8xf32>
  %v = mt.variable "v" init(glorot_uniform) : tensor<3x3x3x2xf32>
  %border = mt.pad %x low = [3, 3, 0] high = [3, 3, 0] : tensor<?x512x512x3xf32>
  %y = mt.conv2d %border, %w strides = [2, 2] : tensor<?x518x518x3xf32>, tensor<7x7x3x8xf32>
  %square = mt.square %y : tensor<?x256x256x8xf32>
  %l = mt.reduce sum, %square over [1, 2, 3] : tensor<?x256x256x8xf32>
  mt.loss "first", %l : tensor<?xf32>
  %scaled = mt.mul %x, %half : tensor<?x512x512x3xf32>, tensor<f32>
  %z = mt.conv2d %scaled, %v strides = [16, 16] padding = [1, 1, 1, 1] dilation = [2, 2] : tensor<?x512x512x3xf32>, tensor<3x3x3x2xf32>
  %r = mt.relu %z : tensor<?x32x32x2xf32>
  %m = mt.reduce sum, %r over [1, 2, 3] : tensor<?x32x32x2xf32>
  mt.loss "second", %m : tensor<?xf32>
  mt.sgd
}
}

// CHECK-LABEL: mt.program @train_step
// CHECK:       %[[IMAGES:.*]]:2 = mt.kernel {{.*}} rows (%arg0 = %0 : tensor<?x512x512x3xf32>) -> (tensor<?x512x256x8xbf16>, tensor<?x512x512x4xbf16>)
// CHECK-NEXT:    mt.pad
// CHECK-NEXT:    mt.reshape
// CHECK-NEXT:    mt.cast
// CHECK-NEXT:    mt.constant
// CHECK-NEXT:    mt.mul
// CHECK-NEXT:    mt.cast
// CHECK-NEXT:    mt.pad
// CHECK:       %[[W:.*]] = mt.kernel {{.*}} single (%{{.*}} : tensor<7x7x3x8xf32>) -> (tensor<7x4x8x8xbf16>)
// CHECK-NEXT:    mt.pad
// CHECK-NEXT:    mt.reshape
// CHECK-NEXT:    mt.cast
// CHECK:       mt.kernel {{.*}} conv (%arg0 = %[[IMAGES]]#0 : {{.*}}, %arg1 = %[[W]] :
// CHECK:       %[[DV:.*]] = mt.kernel {{.*}} conv_wgrad (%arg0 = %[[IMAGES]]#1 : {{.*}} -> (tensor<3x3x4x2xf32>)
// CHECK:       %[[ALL:.*]] = shard.all_reduce %[[DV]]
// CHECK:       %[[PART:.*]] = mt.kernel {{.*}} single (%arg0 = %[[ALL]] : tensor<3x3x4x2xf32>) -> (tensor<3x3x3x2xf32>)
// CHECK-NEXT:    mt.slice %arg0 starts = [0, 0, 0, 0] sizes = [3, 3, 3, 2]
// CHECK:       mt.kernel "v/update" elementwise (%arg0 = %[[PART]] :
