// SPDX-License-Identifier: Apache-2.0
//
// Rules that determine the bits of results and the addresses of reads; both code generators share them. Values are
// scalars or vectors in registers; indices are i64.
#ifndef COMPILER_CODEGEN_COMMON_RULES_H
#define COMPILER_CODEGEN_COMMON_RULES_H

#include "compiler/codegen/common/Emitter.h"
#include "dialects/mt/MtDialect.h"

namespace mtc {

// Initial values of a reduction and of the fold over a window, and one step of a reduction.
mlir::Value identityOf(Emitter &emit, mlir::mt::Reduction kind, mlir::Type element);
mlir::Value identityOf(Emitter &emit, mlir::mt::ReduceOp op);
mlir::Value startOf(Emitter &emit, mlir::mt::WindowOpInterface op);
mlir::Value combine(Emitter &emit, mlir::mt::Reduction kind, mlir::Value running, mlir::Value next);

// Whether element a replaces b, an earlier element, as the largest one: a is larger, or the first NaN.
mlir::Value beats(Emitter &emit, mlir::Value a, mlir::Value b);

// One step of argmax. `best` is {element, index of the element} for the elements before `next`; the result includes
// `next`. The first of equal elements is kept. A negative index means that there was no element yet.
Emitter::Values firstLargest(Emitter &emit, mlir::ValueRange best, mlir::Value next, mlir::Value number);

// Index of the table row that an id (i32) selects; ids out of range are clamped.
mlir::Value entryOf(Emitter &emit, mlir::Value id, int64_t entries);

// The value of elements of the result that come from no operand (padding).
mlir::Value fillOf(Emitter &emit, mlir::mt::MoveOpInterface op);

// Range [first, end) of the taps of an output's window that are inside the image.
struct Taps {
  mlir::Value first, end;
};
// Whether all taps are inside the image for each output.
bool areTapsInside(const mlir::mt::Window &window);
Taps tapsInside(Emitter &emit, const mlir::mt::Window &window, mlir::Value output);

} // namespace mtc

#endif
