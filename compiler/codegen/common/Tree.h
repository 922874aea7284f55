// SPDX-License-Identifier: Apache-2.0
//
// Sums over samples along the reduction tree (docs/exactness.md): one shard after the other; a node is combined as soon
// as both its children are complete. A stack holds the completed left siblings, one per level: after shard i, the
// levels in use are the set bits of i + 1.
#ifndef COMPILER_CODEGEN_COMMON_TREE_H
#define COMPILER_CODEGEN_COMMON_TREE_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct Shards {
  mlir::Value rows;  // number of valid rows of the device, i64
  mlir::Value size;  // number of rows of a shard, i64
  mlir::Value count; // number of shards with a valid row, i64
  int64_t levels;    // levels of the stack
};
Shards shardsOf(Kernel &kernel);

// Sums in registers: `shard(from, to)` returns a shard's sums over rows [from, to). The stack has `levels` times as
// many vectors as there are sums. The tree may be computed in parts: `shards` then describes this part, whose rows are
// counted from its first row, `first` is the number of shards before the part, and `all` the number of shards of the
// whole tree. The stack is kept from part to part, and `finish` of the last part receives the root.
void emitTree(Emitter &emit, const Shards &shards, mlir::Value first, mlir::Value all, mlir::Value stack,
              int64_t vectors, llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
              llvm::function_ref<void(mlir::ValueRange root)> finish);

// Access to the completed left siblings: `add` returns the sums of a level plus `sums`, and `save` stores sums at a
// level.
struct Siblings {
  llvm::function_ref<Emitter::Values(mlir::Value level, mlir::ValueRange sums)> add;
  llvm::function_ref<void(mlir::Value level, mlir::ValueRange sums)> save;
};
// The same for sums of any type, with the initial values `zeros`.
void emitTree(Emitter &emit, const Shards &shards, mlir::Value first, mlir::Value all, mlir::ValueRange zeros,
              Siblings siblings, llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
              llvm::function_ref<void(mlir::ValueRange root)> finish);

// Sums in memory: `shard(from, to)` writes the sums of a shard, `combine(level)` must add stack[level] to the sums, and
// `push(level)` must copy the sums to stack[level]. At the end the sums are the root.
void emitTreeInMemory(Emitter &emit, const Shards &shards,
                      llvm::function_ref<void(mlir::Value from, mlir::Value to)> shard,
                      llvm::function_ref<void(mlir::Value level)> combine,
                      llvm::function_ref<void(mlir::Value level)> push);

} // namespace mtc

#endif
