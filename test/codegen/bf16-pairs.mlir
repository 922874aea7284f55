// SPDX-License-Identifier: Apache-2.0
// Products of bf16 operands: an instruction for pairs where the target has one, else FMAs while subnormal numbers count
// as zero.
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v4-bf16 object=%t.bf16.so" -o /dev/null && llvm-objdump -d %t.bf16.so | FileCheck %s --check-prefix=PAIRS
// RUN: mt-opt %s --plan-codegen="cpus=x86-64-v3 object=%t.v3.so" -o /dev/null && llvm-objdump -d %t.v3.so | FileCheck %s --check-prefix=FMA
// RUN: mt-opt %s --plan-codegen="cpus=armv8-a object=%t.arm.so" -o /dev/null && llvm-objdump -d %t.arm.so | FileCheck %s --check-prefix=ARM
// PAIRS-NOT: ldmxcsr
// PAIRS: vdpbf16ps
// PAIRS-NOT: ldmxcsr
// FMA-NOT: vdpbf16ps
// FMA: ldmxcsr
// ARM: msr FPCR
module attributes {mt.compilation = #mt.compilation<shards = 8, shard_rows = 4>} {
  plan.kernel @dense attributes {kind = #mt<kernel_kind matmul>, bytes_fixed = 0 : i64, bytes_per_row = 0 : i64,
                                 flops_fixed = 0 : i64, flops_per_row = 0 : i64} {
  ^bb0(%x: tensor<?x20xbf16>, %w: tensor<20x40xbf16>):
    %0 = mt.matmul %x, %w : tensor<?x20xbf16>, tensor<20x40xbf16>
    mt.yield %0 : tensor<?x40xf32>
  }
}
