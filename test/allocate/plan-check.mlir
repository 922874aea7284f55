// SPDX-License-Identifier: Apache-2.0
// RUN: mt-opt %s --plan-check --split-input-file --verify-diagnostics

module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @double attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind rows>} {
  ^bb0(%arg0: tensor<?x16xf32>):
    %0 = mt.add %arg0, %arg0 : tensor<?x16xf32>, tensor<?x16xf32>
    mt.yield %0 : tensor<?x16xf32>
  }
  plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 512>, variant_bound = array<i64: 512>} {
    %x = plan.buffer "x" signature [] of "x" : <tensor<?x16xf32>>
    %a = plan.buffer "a" arena [0] : <tensor<?x16xf32>>
    %b = plan.buffer "b" arena [256] : <tensor<?x16xf32>>
    plan.launch @double wait none reads(%x : !plan.buffer<tensor<?x16xf32>>) writes(%a : !plan.buffer<tensor<?x16xf32>>) counts [0]
    // expected-error @+1 {{expected a barrier of the device between step 0 (@double) and step 1 (@double), which both use bytes 0 to 256 of arena, found none}}
    plan.launch @double wait none reads(%a : !plan.buffer<tensor<?x16xf32>>) writes(%b : !plan.buffer<tensor<?x16xf32>>) counts [0]
  }
}

// -----

// Ordered, but the value is gone.
module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @double attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind rows>} {
  ^bb0(%arg0: tensor<?x16xf32>):
    %0 = mt.add %arg0, %arg0 : tensor<?x16xf32>, tensor<?x16xf32>
    mt.yield %0 : tensor<?x16xf32>
  }
  plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 512>, variant_bound = array<i64: 512>} {
    %x = plan.buffer "x" signature [] of "x" : <tensor<?x16xf32>>
    %y = plan.buffer "y" signature [] of "y" : <tensor<?x16xf32>>
    %a = plan.buffer "a" arena [0] : <tensor<?x16xf32>>
    %b = plan.buffer "b" arena [128] : <tensor<?x16xf32>>
    plan.launch @double wait none reads(%x : !plan.buffer<tensor<?x16xf32>>) writes(%a : !plan.buffer<tensor<?x16xf32>>) counts [0]
    plan.launch @double wait device reads(%x : !plan.buffer<tensor<?x16xf32>>) writes(%b : !plan.buffer<tensor<?x16xf32>>) counts [0]
    // expected-error @+1 {{expected bytes 0 to 256 of arena to hold "a", found another value or none at step 2 (@double)}}
    plan.launch @double wait device reads(%a : !plan.buffer<tensor<?x16xf32>>) writes(%y : !plan.buffer<tensor<?x16xf32>>) counts [0]
  }
}

// -----

// Writing a variable is for launches that devices share.
module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @negate attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind elementwise>} {
  ^bb0(%arg0: tensor<16xf32>):
    %0 = mt.neg %arg0 : tensor<16xf32>
    mt.yield %0 : tensor<16xf32>
  }
  plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 0, 0>, variant_bound = array<i64: 0, 0>} {
    %w = plan.buffer "w" variable [] of "w" : <tensor<16xf32>>
    // expected-error @+1 {{expected `share` on a launch that writes bytes 0 to 64 of variable w, found none at step 0 (@negate)}}
    plan.launch @negate wait none reads(%w : !plan.buffer<tensor<16xf32>>) writes(%w : !plan.buffer<tensor<16xf32>>) counts [16]
  }
}

// -----

// A shared read after a shared write needs all devices.
module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @negate attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind elementwise>} {
  ^bb0(%arg0: tensor<16xf32>):
    %0 = mt.neg %arg0 : tensor<16xf32>
    mt.yield %0 : tensor<16xf32>
  }
  plan.program @p attributes {shared_bytes = 64 : i64, variant_arena = array<i64: 0, 0>, variant_bound = array<i64: 0, 0>} {
    %w = plan.buffer "w" variable [] of "w" : <tensor<16xf32>>
    %t = plan.buffer "t" shared [0] : <tensor<16xf32>>
    plan.launch @negate wait none share reads(%w : !plan.buffer<tensor<16xf32>>) writes(%t : !plan.buffer<tensor<16xf32>>) counts [16]
    // expected-error @+1 {{expected a barrier of all devices between step 0 (@negate) and step 1 (@negate)}}
    plan.launch @negate wait device share reads(%t : !plan.buffer<tensor<16xf32>>) writes(%w : !plan.buffer<tensor<16xf32>>) counts [16]
  }
}

// -----

// A kernel that writes a part of a value leaves the rest where it was: the operand must lie there.
module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @part attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind matmul_wgrad>} {
  ^bb0(%arg0: tensor<?x2xf32>, %arg1: tensor<?x4xf32>, %arg2: tensor<8x4xf32>):
    %0 = mt.matmul %arg0, %arg1 transpose_a : tensor<?x2xf32>, tensor<?x4xf32>
    %1 = mt.slice %arg2 starts = [2, 0] sizes = [6, 4] : tensor<8x4xf32>
    %2 = mt.concat %0, %1 dim = 0 {mt.blocks = array<i64: 0, 2>} : tensor<2x4xf32>, tensor<6x4xf32>
    mt.yield %2 : tensor<8x4xf32>
  }
  plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 512>, variant_bound = array<i64: 512>} {
    %x = plan.buffer "x" signature [] of "x" : <tensor<?x2xf32>>
    %y = plan.buffer "y" signature [] of "y" : <tensor<?x4xf32>>
    %w = plan.buffer "w" variable [] of "w" : <tensor<8x4xf32>>
    %a = plan.buffer "a" arena [0] : <tensor<8x4xf32>>
    // expected-error @+1 {{expected a part of bytes 0 to 128 of arena to be written in place, found the rest in another buffer at step 0 (@part)}}
    plan.launch @part wait none reads(%x, %y, %w : !plan.buffer<tensor<?x2xf32>>, !plan.buffer<tensor<?x4xf32>>, !plan.buffer<tensor<8x4xf32>>) writes(%a : !plan.buffer<tensor<8x4xf32>>) counts [0]
  }
}

// -----

// A tail writes where other blocks of its head still read. On CPUs there is a barrier between them.
module attributes {mt.compilation = #mt.compilation<shard_rows = 4>} {
  plan.kernel @double attributes {bytes_fixed = 0 : i64, bytes_per_row = 8 : i64, flops_fixed = 0 : i64, flops_per_row = 1 : i64, kind = #mt<kernel_kind rows>} {
  ^bb0(%arg0: tensor<?x16xf32>):
    %0 = mt.add %arg0, %arg0 : tensor<?x16xf32>, tensor<?x16xf32>
    mt.yield %0 : tensor<?x16xf32>
  }
  plan.kernel @sum attributes {bytes_fixed = 64 : i64, bytes_per_row = 64 : i64, flops_fixed = 0 : i64, flops_per_row = 16 : i64, kind = #mt<kernel_kind reduce>} {
  ^bb0(%arg0: tensor<?x16xf32>):
    %0 = mt.reduce sum, %arg0 over [0] : tensor<?x16xf32>
    mt.yield %0 : tensor<16xf32>
  }
  plan.program @p attributes {shared_bytes = 0 : i64, variant_arena = array<i64: 768>, variant_bound = array<i64: 768>} {
    %x = plan.buffer "x" signature [] of "x" : <tensor<?x16xf32>>
    %a = plan.buffer "a" arena [0] : <tensor<?x16xf32>>
    %b = plan.buffer "b" arena [256] : <tensor<?x16xf32>>
    %c = plan.buffer "c" arena [512] : <tensor<16xf32>>
    %d = plan.buffer "d" arena [64] : <tensor<16xf32>>
    plan.launch @double wait none reads(%x : !plan.buffer<tensor<?x16xf32>>) writes(%a : !plan.buffer<tensor<?x16xf32>>) counts [0]
    plan.launch @double wait device reads(%a : !plan.buffer<tensor<?x16xf32>>) writes(%b : !plan.buffer<tensor<?x16xf32>>) counts [0]
    plan.launch @sum wait device reads(%b : !plan.buffer<tensor<?x16xf32>>) writes(%c : !plan.buffer<tensor<16xf32>>) counts [0] {mt.tail}
    plan.launch @double wait device reads(%a : !plan.buffer<tensor<?x16xf32>>) writes(%b : !plan.buffer<tensor<?x16xf32>>) counts [0]
    // expected-error @+1 {{expected a barrier of the device between step 3 (@double) and step 4 (@sum), which both use bytes 64 to 128 of arena, found none}}
    plan.launch @sum wait device reads(%b : !plan.buffer<tensor<?x16xf32>>) writes(%d : !plan.buffer<tensor<16xf32>>) counts [0] {mt.tail}
  }
}
