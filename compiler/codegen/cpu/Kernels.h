// SPDX-License-Identifier: Apache-2.0
//
// Kernels on CPUs: the grid and the emitter of each kind. One file per kind (Elementwise.cpp, Matmul.cpp ...) emits the
// body of the function.
#ifndef COMPILER_CODEGEN_CPU_KERNELS_H
#define COMPILER_CODEGEN_CPU_KERNELS_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

// Rows of a tile of the grid: of the result of a matmul, of the result of a weight gradient, and of the operand of a
// transposition.
constexpr int64_t matmulRows = 8, treeRows = 12, transposeRows = 16;

// Whether a weight gradient is computed as its transpose.
bool isTransposed(int64_t height, int64_t columns);
// Whether every value that depends on the row has one element, so that the elements of a vector are rows.
bool isLine(mlir::plan::KernelOp op);
// Division of the samples of a rows kernel into lines, and number of lines of a tile.
LineForm cpuLineForm(mlir::plan::KernelOp op);
int64_t linesOfTile(const LineForm &form);

// Grid of each kind, equal for all CPUs, and the emitter of the function's body.
#define KIND(kind, name, Name)                                                                                         \
  Grid name##Grid(mlir::plan::KernelOp op);                                                                            \
  mlir::LogicalResult emit##Name(Kernel &kernel);
#include "dialects/mt/KernelKinds.def"
// out = a + b.
void emitSum(Kernel &kernel);

} // namespace mtc

#endif
