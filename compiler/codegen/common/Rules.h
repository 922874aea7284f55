// SPDX-License-Identifier: Apache-2.0
//
// Rules on which results' bits depend, and the addresses that are read: the code generators for CPUs and for GPUs both
// write code by them. Values are scalars or vectors in registers, indices i64.
#ifndef COMPILER_CODEGEN_COMMON_RULES_H
#define COMPILER_CODEGEN_COMMON_RULES_H

#include "compiler/codegen/common/Emitter.h"
#include "dialects/mt/MtDialect.h"

namespace mtc {

// Where a reduction and the fold of a window start, and a reduction's next value.
mlir::Value identityOf(Emitter &emit, mlir::mt::Reduction kind);
mlir::Value startOf(Emitter &emit, mlir::mt::WindowOpInterface op);
mlir::Value combine(Emitter &emit, mlir::mt::Reduction kind, mlir::Value running, mlir::Value next);

// A search for the first of the largest elements: `best` is {element, its number} of those before `next`, the result
// that of all. A number below 0 says that there was none so far: then NaN is taken, too.
Emitter::Values firstLargest(Emitter &emit, mlir::ValueRange best, mlir::Value next, mlir::Value number);

// The entry of a table that an id (i32) names: ids outside of the table name its first or last one.
mlir::Value entryOf(Emitter &emit, mlir::Value id, int64_t entries);

// What an element of the op's result is that none of its operands gives.
mlir::Value fillOf(Emitter &emit, mlir::mt::MoveOpInterface op);

// Taps [first, end) of an output's window that lie in the image.
struct Taps {
  mlir::Value first, end;
};
Taps tapsInside(Emitter &emit, const mlir::mt::Window &window, mlir::Value output);

} // namespace mtc

#endif
