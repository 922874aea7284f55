// SPDX-License-Identifier: Apache-2.0
//
// Warp operations: products on tensor cores, and loads of their operands, for sm_80 and newer. All threads of the block
// must execute each of these calls (the simulated driver synchronizes them).
#ifndef COMPILER_CODEGEN_GPU_TENSORCORES_H
#define COMPILER_CODEGEN_GPU_TENSORCORES_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// sums + a b (PTX ISA, mma.m16n8k16); `half` is bf16 or f16. With (g, t) = (lane / 4, lane % 4), a lane has
//   a     four i32 of two k each: (row g, k 2t), (row g + 8, k 2t), (row g, k 2t + 8), (row g + 8, k 2t + 8)
//   b     two i32: (k 2t, column g), (k 2t + 8, column g)
//   sums  four f32: (row g, columns 2t and 2t + 1), (row g + 8, the same)
Emitter::Values multiplyHalves(Emitter &emit, mlir::Type half, mlir::ValueRange a, mlir::ValueRange b,
                               mlir::ValueRange sums);
// sums + a b in TF32 (mma.m16n8k8): a has four 32-bit numbers, (row g, k t), (row g + 8, k t), (row g, k t + 4), (row g
// + 8, k t + 4); b has two, (k t, column g), (k t + 4, column g).
Emitter::Values multiplySingles(Emitter &emit, mlir::ValueRange a, mlir::ValueRange b, mlir::ValueRange sums);

// Rows of the left side of an instruction of a warpgroup: four warps, the first of which has a number that is a
// multiple of four.
constexpr int64_t warpgroupLines = 64;
// A product of a warpgroup (PTX ISA, wgmma.mma_async) of `rows` (a multiple of 64) x `columns` (a multiple of 8, at
// most 256), by `depth` positions of k (a multiple of 16). Sides are in workgroup memory, aligned to 1024 bytes, with
// the swizzle of 128 bytes: memory rows of 64 k of a row of the side or, if `across`, for each 64 rows of the side one
// memory row per k. The 16-byte part p of memory row r is stored as part p ^ (r % 8).
struct WarpgroupProduct {
  mlir::Type half; // bf16 or f16
  int64_t rows, columns, depth;
  bool leftAcross, rightAcross;
};
// Starts to compute sums + left . right. A thread has the sums of multiplyHalves for each 64 rows and 8 columns, for
// the 16 rows of its warp. The sums are valid only after awaitWarpgroup, which takes and returns them. All threads of
// the warpgroup must execute it.
Emitter::Values startByWarpgroup(Emitter &emit, const WarpgroupProduct &product, mlir::Value left, mlir::Value right,
                                 mlir::ValueRange sums);
Emitter::Values awaitWarpgroup(Emitter &emit, mlir::ValueRange sums);
// Makes this thread's stores and copies to workgroup memory visible to startByWarpgroup after the next barrier.
void showToWarpgroups(Emitter &emit);
// Parameters of a product's code, stored in an attribute of its operation for the simulated code.
struct WarpgroupForm {
  static constexpr llvm::StringLiteral name = "mtc.warpgroup";
  int64_t blocks, columns, steps;  // blocks of 64 rows; steps of 16 k
  int64_t leftLow, rightLow, high; // words of the descriptors, without the address
  int64_t leftStep, rightStep;     // distance of steps in bytes
  int64_t block;                   // distance of blocks of 64 rows of the left side, in bytes
  int64_t leftAcross, rightAcross, isBf16;
};

// Loads `count` (1, 2, 4) matrices of 8 x 8 16-bit numbers from workgroup memory (ldmatrix). Thread 8 i + j of the warp
// passes the address of row j of matrix i, aligned to 16 bytes. A thread gets an i32 of each matrix: columns 2t and 2t
// + 1 of row g, or, transposed, rows 2t and 2t + 1 of column g.
Emitter::Values loadMatrices(Emitter &emit, mlir::Value address, int64_t count, bool transposed);

// Starts to copy 4, 8 or 16 bytes from device to workgroup memory, or zeros if `there` (i1) is false. Both addresses
// are aligned to the size. `from` must be valid in any case.
void copyAsync(Emitter &emit, mlir::Value to, mlir::Value from, mlir::Value there, int64_t bytes = 16);
// commitCopies ends a group of copies of this thread; awaitCopies waits until all but the last `pending` groups are
// complete. Other threads of the block can read copied data after a barrier.
void commitCopies(Emitter &emit);
void awaitCopies(Emitter &emit, int64_t pending);

// Rounds two f32 to 16-bit numbers, to nearest, and packs them into an i32.
mlir::Value packHalves(Emitter &emit, mlir::Type half, mlir::Value low, mlir::Value high);
// Approximation of 2^a: ex2.approx.ftz, to 2 ulp; 0 if the result is not a normal number. On all architectures.
mlir::Value approximateExp2(Emitter &emit, mlir::Value a);
constexpr llvm::StringLiteral approximateExp2Name = "llvm.nvvm.ex2.approx.ftz";

} // namespace mtc

#endif
