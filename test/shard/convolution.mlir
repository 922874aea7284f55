// SPDX-License-Identifier: Apache-2.0
// A convolutional network as far as one shard's view: an all-reduce for each kernel, bias and table, for the loss and
// the metric.
// RUN: mtc compile %examples/mnist_cnn.mlir --stop-after=shard -o - | FileCheck %s
// RUN: mtc compile %examples/mnist_cnn.mlir --stop-after=shard -o - | FileCheck %s --check-prefix=COUNT
// RUN: mt-opt %s --mt-annotate --mt-propagate --mt-partition | FileCheck %s --check-prefix=OPS

// 4 kernels, 4 biases, loss and accuracy in train_step; loss and accuracy in eval_step.
// COUNT-COUNT-12: shard.all_reduce
// COUNT-NOT: shard.all_reduce

// CHECK-LABEL: mt.program @train_step
// CHECK: mt.conv2d %{{.*}}, %{{.*}} : tensor<?x28x28x1xf32>, tensor<3x3x1x32xf32>
// CHECK: mt.pool max, %{{.*}} window = [2, 2] strides = [2, 2] : tensor<?x26x26x32xf32>
// CHECK: mt.pool_gradient max, {{.*}} : tensor<?x5x5x64xf32>, tensor<?x11x11x64xf32> to tensor<?x11x11x64xf32>
// CHECK-DAG: mt.conv2d_input_gradient {{.*}} to tensor<?x13x13x32xf32>
// CHECK-DAG: %[[DW2:.*]] = mt.conv2d_kernel_gradient {{.*}} to tensor<3x3x32x64xf32>
// CHECK-DAG: shard.all_reduce %[[DW2]] on @shards grid_axes = [0] {{.*}}: tensor<3x3x32x64xf32> -> tensor<3x3x32x64xf32>
// CHECK-DAG: %[[DW1:.*]] = mt.conv2d_kernel_gradient {{.*}} to tensor<3x3x1x32xf32>
// CHECK-DAG: shard.all_reduce %[[DW1]] on @shards grid_axes = [0] {{.*}}: tensor<3x3x1x32xf32> -> tensor<3x3x1x32xf32>
// The gradient of the first layer's images is of no use.
// CHECK-NOT: to tensor<?x28x28x1xf32>
// CHECK-LABEL: mt.program @eval_step

module attributes {mt.compilation = #mt.compilation<shards = 4>} {
  // OPS-LABEL: mt.program @spatial
  mt.program @spatial {
    %x = mt.input "x" : tensor<?x8x8x4xf32>
    %ids = mt.input "ids" : tensor<?x3xi32>
    %dy = mt.target "dy" : tensor<?x3x2xf32>
    %table = mt.read "table" : tensor<10x2xf32>
    %w = mt.read "w" : tensor<3x3x1x8xf32>
    // Per-sample work needs no all-reduce.
    // OPS-NOT: shard.all_reduce
    %a = mt.conv2d %x, %w padding = [1, 1, 1, 1] groups = 4 : tensor<?x8x8x4xf32>, tensor<3x3x1x8xf32>
    %b = mt.conv2d_input_gradient %a, %w padding = [1, 1, 1, 1] groups = 4 : tensor<?x8x8x8xf32>, tensor<3x3x1x8xf32> to tensor<?x8x8x4xf32>
    %c = mt.pool sum, %b window = [2, 2] strides = [2, 2] : tensor<?x8x8x4xf32>
    %d = mt.pool_gradient sum, %c window = [2, 2] strides = [2, 2] : tensor<?x4x4x4xf32> to tensor<?x8x8x4xf32>
    %e = mt.pad %d low = [1, 1, 0] high = [1, 1, 0] : tensor<?x8x8x4xf32>
    %f = mt.slice %e starts = [1, 1, 0] sizes = [4, 8, 4] strides = [2, 1, 1] : tensor<?x10x10x4xf32>
    %g = mt.concat %f, %f dim = 1 : tensor<?x4x8x4xf32>, tensor<?x4x8x4xf32>
    %h = mt.reverse %g over [1, 2] : tensor<?x8x8x4xf32>
    mt.output "h", %h : tensor<?x8x8x4xf32>
    // OPS: mt.gather
    %rows = mt.gather %table, %ids : tensor<10x2xf32>, tensor<?x3xi32>
    %both = mt.add %rows, %dy : tensor<?x3x2xf32>, tensor<?x3x2xf32>
    // OPS: %[[S:.*]] = mt.scatter_add
    // OPS-NEXT: shard.all_reduce %[[S]] on @shards grid_axes = [0] : tensor<10x2xf32> -> tensor<10x2xf32>
    %s = mt.scatter_add %ids, %both : tensor<?x3xi32>, tensor<?x3x2xf32> to tensor<10x2xf32>
    mt.assign "table", %s : tensor<10x2xf32>
    // OPS: %[[K:.*]] = mt.conv2d_kernel_gradient
    // OPS-NEXT: shard.all_reduce %[[K]]
    %k = mt.conv2d_kernel_gradient %h, %a padding = [1, 1, 1, 1] groups = 4 : tensor<?x8x8x4xf32>, tensor<?x8x8x8xf32> to tensor<3x3x1x8xf32>
    mt.assign "w", %k : tensor<3x3x1x8xf32>
    // Of replicated operands it is no sum over the batch.
    // OPS-NOT: shard.all_reduce
    %i = mt.iota dim = 0 : tensor<3xi32>
    %z = mt.gather %table, %i : tensor<10x2xf32>, tensor<3xi32>
    %t = mt.scatter_add %i, %z : tensor<3xi32>, tensor<3x2xf32> to tensor<10x2xf32>
    mt.assign "u", %t : tensor<10x2xf32>
  }
}
