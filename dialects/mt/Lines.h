// SPDX-License-Identifier: Apache-2.0
//
// A line is one index of the first axes of a sample, if ops are independent along these axes, so that each line can be
// computed by itself. The number of lines determines the axes: a value [?, 8, 128, 64] has 8 lines of [128, 64], or
// 1024 lines of [64].
#ifndef DIALECTS_MT_LINES_H
#define DIALECTS_MT_LINES_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// The part of an operand that line `l` of a result reads: part (l / divisor) % modulus, where the operand's first
// `axes` axes (after the batch axis) count the parts.
struct LinePart {
  int64_t divisor = 1; // 0: every line reads the whole operand
  int64_t modulus = 0; // 0: no remainder
  int64_t axes = 0;
  bool isOwn() const { return divisor == 1 && modulus == 0; }
  bool isWhole() const { return divisor == 0; }
  bool operator==(const LinePart &other) const {
    return divisor == other.divisor && modulus == other.modulus && axes == other.axes;
  }
};

// The smallest number of first axes of a sample whose sizes multiply to `lines`; -1 if there is none.
int64_t lineAxes(Type type, int64_t lines);

// Whether each of `lines` lines of the op's only result, which is split, depends on one part of each operand. Returns
// these parts. Operands without a batch axis may have parts too.
bool isComputedByLine(Operation *op, int64_t lines, SmallVectorImpl<LinePart> &parts);

// Whether each of `lines` lines of these ops, which belong to one kernel and are in program order, can be computed by
// itself. Returns in `parts` the part that a line reads of each value from outside of `ops`. A value without an entry
// is read only by ops without a batch axis.
bool areComputedByLine(ArrayRef<Operation *> ops, int64_t lines, llvm::DenseMap<Value, LinePart> &parts);

// Changes an op for which isComputedByLine holds to compute one line. The caller has replaced the operands; `axes` is
// the number of first axes that the result loses.
void becomeLine(Operation *op, int64_t axes);

} // namespace mlir::mt

#endif
