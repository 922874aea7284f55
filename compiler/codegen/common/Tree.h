// SPDX-License-Identifier: Apache-2.0
//
// Sums over samples by the fixed tree of docs/exactness.md: shard after shard, each node combined as soon as both its
// children are there. A stack holds the finished left siblings, one a level; after shard i the levels in use are the
// bits of i + 1.
#ifndef COMPILER_CODEGEN_COMMON_TREE_H
#define COMPILER_CODEGEN_COMMON_TREE_H

#include "compiler/codegen/common/Kernel.h"

namespace mtc {

struct Shards {
  mlir::Value rows;  // valid rows of the device, i64
  mlir::Value size;  // rows of a shard, i64
  mlir::Value count; // shards with a valid row, i64
  int64_t levels;    // of the stack
};
Shards shardsOf(Kernel &kernel);

// Sums in registers: `shard(from, to)` gives a shard's sums over rows [from, to). The stack has `levels` times as many
// vectors. The tree may come in parts: `shards` are then those of this part, with rows counted from its first, `first`
// the shards before it, `all` the shards of the whole tree; the stack lasts from part to part, and the root is what the
// last part's `finish` is given.
void emitTree(Emitter &emit, const Shards &shards, mlir::Value first, mlir::Value all, mlir::Value stack,
              int64_t vectors, llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
              llvm::function_ref<void(mlir::ValueRange root)> finish);

// Where finished left siblings wait: `add` gives those of a level plus `sums`, `save` keeps sums at a level.
struct Siblings {
  llvm::function_ref<Emitter::Values(mlir::Value level, mlir::ValueRange sums)> add;
  llvm::function_ref<void(mlir::Value level, mlir::ValueRange sums)> save;
};
// The same for sums of any type, which start as `zeros`.
void emitTree(Emitter &emit, const Shards &shards, mlir::Value first, mlir::Value all, mlir::ValueRange zeros,
              Siblings siblings, llvm::function_ref<Emitter::Values(mlir::Value from, mlir::Value to)> shard,
              llvm::function_ref<void(mlir::ValueRange root)> finish);

// Sums in memory: `shard(from, to)` writes them, then `combine(level)` is to put stack[level] + sums into sums,
// `push(level)` to copy sums to stack[level]. The root is left in sums.
void emitTreeInMemory(Emitter &emit, const Shards &shards,
                      llvm::function_ref<void(mlir::Value from, mlir::Value to)> shard,
                      llvm::function_ref<void(mlir::Value level)> combine,
                      llvm::function_ref<void(mlir::Value level)> push);

} // namespace mtc

#endif
