// SPDX-License-Identifier: Apache-2.0
//
// Lines: the indices of a sample's first axes along which ops are independent, so that each can be computed by itself.
// The number of lines says which axes these are: a value [?, 8, 128, 64] has 8 lines of [128, 64], or 1024 of [64].
#ifndef DIALECTS_MT_LINES_H
#define DIALECTS_MT_LINES_H

#include "dialects/mt/MtDialect.h"

namespace mlir::mt {

// The part of an operand that line `l` of an op's result needs: part (l / divisor) % modulus of those that the
// operand's first `axes` axes (after a batch axis) count.
struct LinePart {
  int64_t divisor = 1; // 0: every line needs the whole operand
  int64_t modulus = 0; // 0: no remainder is taken
  int64_t axes = 0;
  bool isOwn() const { return divisor == 1 && modulus == 0; }
  bool isWhole() const { return divisor == 0; }
  bool operator==(const LinePart &other) const {
    return divisor == other.divisor && modulus == other.modulus && axes == other.axes;
  }
};

// The number of first axes of a sample of a split value, the fewest that count `lines`; -1: none do.
int64_t lineAxes(Type type, int64_t lines);

// Whether each of `lines` lines of the op's only result, which is split, depends on a part of each operand alone, and
// on which. Operands without a batch axis may be read by part, too.
bool isComputedByLine(Operation *op, int64_t lines, SmallVectorImpl<LinePart> &parts);

// Whether each of `lines` lines of these ops, of one kernel and in program order, can be computed by itself, and what
// it reads of values that come from elsewhere: one that is missing in `parts` is not read by ops with a batch axis.
bool areComputedByLine(ArrayRef<Operation *> ops, int64_t lines, llvm::DenseMap<Value, LinePart> &parts);

// Turns an op that isComputedByLine into the op of one line. Its operands have been replaced; `axes` is how many first
// axes its result loses.
void becomeLine(Operation *op, int64_t axes);

} // namespace mlir::mt

#endif
