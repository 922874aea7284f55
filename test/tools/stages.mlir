// mt-opt runs the passes of a stage by its name, on what `mtc compile --stop-after` prints.
// RUN: mtc compile %examples/linear.mlir --batch 8 --stop-after import -o %t.mlir
// RUN: mt-opt %t.mlir --stage-differentiate --stage-shard | FileCheck %s --check-prefix=SHARD
// RUN: mt-opt %t.mlir --stage-differentiate --stage-shard --stage-fuse --stage-schedule --stage-allocate | FileCheck %s
// SHARD: mt.program @train_step
// SHARD: shard.all_reduce
// SHARD-NOT: mt.kernel
// CHECK: plan.program
// CHECK-NOT: mt.kernel
