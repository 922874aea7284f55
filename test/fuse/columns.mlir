// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-fuse=images=false | FileCheck %s
// The gradients of a layer normalisation, for GPUs: sums over a token's channels are one kernel, which works by token;
// sums over the tokens are another, whose columns many blocks share, with the product that they add.

// CHECK-LABEL: mt.program @eval_step
// CHECK-DAG: mt.kernel "{{.*}}" rows ({{.*}}) -> (tensor<?x256x64xf32>)
// CHECK-DAG: mt.kernel "{{.*}}" rows ({{.*}}) -> (tensor<?x64xf32>, tensor<?x64xf32>)
// CHECK-NOT: mt.kernel
shard.grid @shards(shape = 8)
mt.program @eval_step {
  %g = mt.input "g" : tensor<?x256x64xf32>
  %n = mt.input "n" : tensor<?x256x64xf32>
  %0 = mt.reduce sum, %g over [1] : tensor<?x256x64xf32>
  %1 = mt.mul %g, %n : tensor<?x256x64xf32>, tensor<?x256x64xf32>
  %2 = mt.reduce sum, %1 over [1] : tensor<?x256x64xf32>
  %3 = mt.reduce sum, %g over [2] : tensor<?x256x64xf32>
  %4 = mt.reshape %3 : tensor<?x256xf32> to tensor<?x256x1xf32>
  %5 = mt.sub %g, %4 : tensor<?x256x64xf32>, tensor<?x256x1xf32>
  mt.output "beta", %0 : tensor<?x64xf32>
  mt.output "gamma", %2 : tensor<?x64xf32>
  mt.output "x", %5 : tensor<?x256x64xf32>
}
