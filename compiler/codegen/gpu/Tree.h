// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_GPU_TREE_H
#define COMPILER_CODEGEN_GPU_TREE_H

#include "compiler/codegen/Tree.h"
#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Sums over samples by the tree (compiler/codegen/Tree.h), each thread its own `sums` of them: `leaf(from, to)` gives a
// leaf's. Finished left siblings wait in workgroup memory. All threads together.
void emitBlockTree(BlockKernel &kernel, int64_t sums,
                   llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> leaf,
                   llvm::function_ref<void(mlir::ValueRange root)> finish);

// Levels at which siblings wait, of this many leaves.
int64_t siblingLevels(mlir::plan::KernelOp op, bool fast);

} // namespace mtc

#endif
