// mt-opt runs the passes of a stage by its name.
// RUN: mt-opt %examples/linear.mlir --stage-differentiate --stage-shard | FileCheck %s --check-prefix=SHARD
// RUN: mt-opt %examples/linear.mlir --stage-differentiate --stage-shard --stage-fuse --stage-schedule | FileCheck %s
// SHARD: mt.program @train_step
// SHARD: shard.all_reduce
// SHARD-NOT: mt.kernel
// CHECK: mt.kernel
