// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --mt-annotate --mt-propagate --mt-partition --mt-bucket | FileCheck %s

// As many buckets as the longest chain of all-reduces has links; what nothing waits for is in the last one.

module attributes {mt.compilation = #mt.compilation<shards = 8>} {
  mt.declare "w" trainable tensor<4x3xf32>
  mt.declare "b" trainable tensor<3xf32>

  // Without a divisor or statistic that crosses shards everything is one bucket.
  // CHECK-LABEL: mt.program @one
  // CHECK-COUNT-3: mt.bucket = 0
  // CHECK-NOT: mt.bucket
  mt.program @one {
    %x = mt.input "x" : tensor<?x4xf32>
    %g = mt.target "g" : tensor<?x3xf32>
    %n = mt.batch_size
    %l = mt.reduce sum, %g over [1] : tensor<?x3xf32>
    %t = mt.reduce sum, %l over [0] : tensor<?xf32>
    %dw = mt.matmul %x, %g transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
    %db = mt.reduce sum, %g over [0] : tensor<?x3xf32>
    mt.assign "w", %dw : tensor<4x3xf32>
    mt.assign "b", %db : tensor<3xf32>
    mt.result "loss", %t, %n loss
  }

  // The sum of the weights is needed by the gradients: it goes first, alone; the loss can wait for the gradients.
  // CHECK-LABEL: mt.program @weighted
  mt.program @weighted {
    %x = mt.input "x" : tensor<?x4xf32>
    %g = mt.target "g" : tensor<?x3xf32>
    %s = mt.sample_weight "s" : tensor<?xf32>
    // CHECK: mt.reduce sum, %{{.*}} over [0] : tensor<?xf32>
    // CHECK-NEXT: mt.bucket = 1
    %l = mt.reduce sum, %g over [1] : tensor<?x3xf32>
    %t = mt.reduce sum, %l over [0] : tensor<?xf32>
    // CHECK: mt.reduce sum, %{{.*}} over [0] : tensor<?xf32>
    // CHECK-NEXT: mt.bucket = 0
    %n = mt.reduce sum, %s over [0] : tensor<?xf32>
    %k = mt.broadcast %n : tensor<f32> to tensor<?x3xf32>
    %d = mt.div %g, %k : tensor<?x3xf32>, tensor<?x3xf32>
    // CHECK: mt.matmul
    // CHECK-NEXT: mt.bucket = 1
    %dw = mt.matmul %x, %d transpose_a : tensor<?x4xf32>, tensor<?x3xf32>
    // CHECK: mt.reduce sum, %{{.*}} over [0] : tensor<?x3xf32>
    // CHECK-NEXT: mt.bucket = 1
    %db = mt.reduce sum, %d over [0] : tensor<?x3xf32>
    mt.assign "w", %dw : tensor<4x3xf32>
    mt.assign "b", %db : tensor<3xf32>
    mt.result "loss", %t, %n loss
  }

  // A chain, as of two normalised layers: mean, variance, mean, gradient.
  // CHECK-LABEL: mt.program @chain
  mt.program @chain {
    %x = mt.input "x" : tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 0
    %m = mt.reduce sum, %x over [0] : tensor<?x3xf32>
    %c = mt.sub %x, %m : tensor<?x3xf32>, tensor<3xf32>
    %cc = mt.square %c : tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 1
    %v = mt.reduce sum, %cc over [0] : tensor<?x3xf32>
    %y = mt.mul %c, %v : tensor<?x3xf32>, tensor<3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 2
    %db = mt.reduce sum, %y over [0] : tensor<?x3xf32>
    mt.assign "b", %db : tensor<3xf32>
  }

  // Two sums of the same values, of which one is needed later: what reads both reads the values once.
  // CHECK-LABEL: mt.program @together
  mt.program @together {
    %x = mt.input "x" : tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 0
    %m = mt.reduce sum, %x over [0] : tensor<?x3xf32>
    %xx = mt.square %x : tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 0
    %q = mt.reduce sum, %xx over [0] : tensor<?x3xf32>
    %c = mt.sub %x, %m : tensor<?x3xf32>, tensor<3xf32>
    %y = mt.input "y" : tensor<?x3xf32>
    %cy = mt.mul %c, %y : tensor<?x3xf32>, tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 1
    %v = mt.reduce sum, %cy over [0] : tensor<?x3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 1
    %r = mt.reduce sum, %y over [0] : tensor<?x3xf32>
    %z = mt.mul %c, %v : tensor<?x3xf32>, tensor<3xf32>
    %zz = mt.mul %z, %q : tensor<?x3xf32>, tensor<3xf32>
    %zr = mt.mul %zz, %r : tensor<?x3xf32>, tensor<3xf32>
    // CHECK: over [0]
    // CHECK-NEXT: mt.bucket = 2
    %db = mt.reduce sum, %zr over [0] : tensor<?x3xf32>
    mt.assign "b", %db : tensor<3xf32>
  }
}

// A training step of a whole model meets once: gradients, loss and metric together.
// RUN: mt-opt %examples/mnist_mlp.mlir --mt-expand-optimizer --mt-differentiate --mt-decompose --mt-annotate=shards=8 --mt-propagate --mt-partition \
// RUN:   --mt-bucket | FileCheck %s --check-prefix=MODEL
// MODEL-LABEL: mt.program @init
// MODEL-NOT: shard.all_reduce
// MODEL-LABEL: mt.program @train_step
// MODEL-COUNT-8: shard.all_reduce {{.*}}mt.bucket = 0
// MODEL-LABEL: mt.program @eval_step
// MODEL-COUNT-2: shard.all_reduce {{.*}}mt.bucket = 0
// MODEL-LABEL: mt.program @predict
// MODEL-NOT: shard.all_reduce
