// SPDX-License-Identifier: Apache-2.0
//
// What a warp does together: products on tensor cores and what brings their operands. On sm_80 and newer. All threads
// of the block come to each of these calls (the simulated driver lets them meet).
#ifndef COMPILER_CODEGEN_GPU_TENSORCORES_H
#define COMPILER_CODEGEN_GPU_TENSORCORES_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// sums + a b (PTX ISA, mma.m16n8k16): `half` is bf16 or f16. With (g, t) = (lane / 4, lane % 4), a lane has
//   a     four i32 of two k each: (row g, k 2t), (row g + 8, k 2t), (row g, k 2t + 8), (row g + 8, k 2t + 8)
//   b     two i32: (k 2t, column g), (k 2t + 8, column g)
//   sums  four f32: (row g, columns 2t and 2t + 1), (row g + 8, the same)
Emitter::Values multiplyHalves(Emitter &emit, mlir::Type half, mlir::ValueRange a, mlir::ValueRange b,
                               mlir::ValueRange sums);
// sums + a b in TF32 (mma.m16n8k8): a has four numbers of 32 bits, (row g, k t), (row g + 8, k t), (row g, k t + 4),
// (row g + 8, k t + 4); b has two, (k t, column g), (k t + 4, column g).
Emitter::Values multiplySingles(Emitter &emit, mlir::ValueRange a, mlir::ValueRange b, mlir::ValueRange sums);

// `count` (1, 2, 4) matrices of 8 x 8 numbers of 16 bits from workgroup memory (ldmatrix). Thread 8 i + j of the warp
// passes the address of row j of matrix i, 16 bytes on their boundary. A thread gets an i32 of each matrix: columns 2t
// and 2t + 1 of row g; transposed: rows 2t and 2t + 1 of column g.
Emitter::Values loadMatrices(Emitter &emit, mlir::Value address, int64_t count, bool transposed);

// Starts to copy 4, 8 or 16 bytes from device to workgroup memory, or as many zeros if `there` (i1) is false; both on
// their boundary. `from` can be read in any case.
void copyAsync(Emitter &emit, mlir::Value to, mlir::Value from, mlir::Value there, int64_t bytes = 16);
// Ends a group of copies of this thread; waits until all but the last `pending` groups are done. What is copied is
// there for the other threads of the block after a barrier.
void commitCopies(Emitter &emit);
void awaitCopies(Emitter &emit, int64_t pending);

// Two f32 as numbers of 16 bits, to nearest, in an i32.
mlir::Value packHalves(Emitter &emit, mlir::Type half, mlir::Value low, mlir::Value high);
// About 2^a: ex2.approx.ftz, to 2 ulp; 0 where that is no normal number. On all architectures.
mlir::Value approximateExp2(Emitter &emit, mlir::Value a);
constexpr llvm::StringLiteral approximateExp2Name = "llvm.nvvm.ex2.approx.ftz";

} // namespace mtc

#endif
