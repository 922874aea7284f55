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

// Lines of the left side of an instruction of a warpgroup: four warps, of which the first is a multiple of four.
constexpr int64_t warpgroupLines = 64;
// A product of a warpgroup (PTX ISA, wgmma.mma_async) of `rows` (a multiple of 64) x `columns` (a multiple of 8, at
// most 256), by `depth` positions of k (a multiple of 16). Sides are in workgroup memory from a multiple of 1024 bytes
// on, with the swizzle of 128 bytes: rows of 64 k of a line, or, `across`, for each 64 lines rows of them for each k.
// The 16-byte part p of row r lies at part p ^ (r % 8).
struct WarpgroupProduct {
  mlir::Type half; // bf16 or f16
  int64_t rows, columns, depth;
  bool leftAcross, rightAcross;
};
// Starts to compute sums + left . right: as many sums as are the thread's, for each 64 rows and each 8 columns those of
// multiplyHalves, of the 16 rows of its warp. They are there after awaitWarpgroup, which takes them and gives them
// back; nothing else may use them before it. All threads of the warpgroup together.
Emitter::Values startByWarpgroup(Emitter &emit, const WarpgroupProduct &product, mlir::Value left, mlir::Value right,
                                 mlir::ValueRange sums);
Emitter::Values awaitWarpgroup(Emitter &emit, mlir::ValueRange sums);
// What this thread has stored in workgroup memory, or has copied there, can be read by startByWarpgroup behind the next
// barrier.
void showToWarpgroups(Emitter &emit);
// The numbers of a product that its code is made from, in an attribute of its operation: for the simulated code.
struct WarpgroupForm {
  static constexpr llvm::StringLiteral name = "mtc.warpgroup";
  int64_t blocks, columns, steps;  // of 64 rows; of 16 k
  int64_t leftLow, rightLow, high; // words of the descriptors, without the address
  int64_t leftStep, rightStep;     // bytes from step to step
  int64_t block;                   // bytes of the left side from 64 rows to the next
  int64_t leftAcross, rightAcross, isBf16;
};

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
