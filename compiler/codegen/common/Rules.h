// SPDX-License-Identifier: Apache-2.0
//
// What decides the bits of results and which addresses are read, written once for both code generators. Values are
// scalars or vectors in registers; indices are i64.
#ifndef COMPILER_CODEGEN_COMMON_RULES_H
#define COMPILER_CODEGEN_COMMON_RULES_H

#include "compiler/codegen/common/Emitter.h"
#include "dialects/mt/MtDialect.h"

namespace mtc {

// The initial value of a reduction and of the fold of a window, and one step of a reduction.
mlir::Value identityOf(Emitter &emit, mlir::mt::Reduction kind, mlir::Type element);
mlir::Value identityOf(Emitter &emit, mlir::mt::ReduceOp op);
mlir::Value startOf(Emitter &emit, mlir::mt::WindowOpInterface op);
mlir::Value combine(Emitter &emit, mlir::mt::Reduction kind, mlir::Value running, mlir::Value next);

// Whether element a, which stands behind b, is the largest one instead of it: it is larger, or the first NaN.
mlir::Value beats(Emitter &emit, mlir::Value a, mlir::Value b);

// One step of argmax. `best` is {element, its index} of the elements before `next`; the result includes `next`. The
// first of equal elements wins. A negative index means that there was no element yet.
Emitter::Values firstLargest(Emitter &emit, mlir::ValueRange best, mlir::Value next, mlir::Value number);

// The entry of a table that an id (i32) names: ids outside of the table name its first or last one.
mlir::Value entryOf(Emitter &emit, mlir::Value id, int64_t entries);

// The value of elements of the result that come from no operand (padding).
mlir::Value fillOf(Emitter &emit, mlir::mt::MoveOpInterface op);

// Taps [first, end) of an output's window that lie in the image.
struct Taps {
  mlir::Value first, end;
};
// Whether they are all taps, for each output.
bool areTapsInside(const mlir::mt::Window &window);
Taps tapsInside(Emitter &emit, const mlir::mt::Window &window, mlir::Value output);

} // namespace mtc

#endif
