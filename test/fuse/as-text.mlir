// SPDX-License-Identifier: Apache-2.0
//
// A convolutional network needed twice the memory when it came as text: a pass compared an attribute that text leaves
// out with one that spells the default. Passes that see the program as it was made and passes that see it as text leave
// the same kernels.
// RUN: mtc compile %examples/mnist_cnn.mlir --batch 128 --stop-after import -o %t.model.mlir
// RUN: mt-opt %t.model.mlir --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-precision --cse --mt-annotate --mt-propagate --mt-partition --mt-bucket -o %t.shard.mlir
// RUN: mt-opt %t.shard.mlir --mt-fuse -o %t.read.mlir
// RUN: mt-opt %t.model.mlir --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-precision --cse --mt-annotate --mt-propagate --mt-partition --mt-bucket --mt-fuse -o %t.made.mlir
// RUN: cmp %t.read.mlir %t.made.mlir
//
// And it is the better form, in which relu's mask is one of the pooled image.
// RUN: FileCheck %s --input-file %t.made.mlir
// CHECK-LABEL: mt.program @train_step
// CHECK-NOT: tensor<?x11x11x64xi1>
// CHECK: mt.compare gt, %{{.*}} : tensor<?x5x5x64xf32>, tensor<f32>
// CHECK: mt.program @eval_step
