// SPDX-License-Identifier: Apache-2.0
//
// Kernels on CPUs: the grid and the emitter of each kind. A file for each kind (Map.cpp, Matmul.cpp ...) writes its
// function's body.
#ifndef COMPILER_CODEGEN_CPU_KERNELS_H
#define COMPILER_CODEGEN_CPU_KERNELS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

// Rows of a tile of the grid: of a matmul's and of a weight gradient's result, of a transposition's operand.
constexpr int64_t matmulRows = 8, treeRows = 12, transposeRows = 16;

// Whether a weight gradient is computed as its transpose.
bool isTransposed(int64_t height, int64_t columns);
// Every value that depends on the row is one element: rows lie in lanes.
bool isLine(mlir::plan::KernelOp op);
// How the samples of a kernel of rows are cut into lines, and how many lines a tile has.
LineForm cpuLineForm(mlir::plan::KernelOp op);
int64_t linesOfTile(const LineForm &form);

// How the tiles of each kind are counted, on all CPUs alike; the body of its function.
#define KIND(kind, name, Name)                                                                                         \
  Grid name##Grid(mlir::plan::KernelOp op);                                                                            \
  mlir::LogicalResult emit##Name(Kernel &kernel);
#include "dialects/mt/KernelKinds.def"
// out = a + b.
void emitSum(Kernel &kernel);

} // namespace mtc

#endif
