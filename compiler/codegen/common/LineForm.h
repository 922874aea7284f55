// SPDX-License-Identifier: Apache-2.0
//
// Lines: if all ops of a rows kernel are independent along the first axes of a sample (dialects/mt/Lines.h), the unit
// of work is one line (an index of these axes) instead of one sample, and the body is rewritten to compute one line.
// The bits of the results do not depend on the number of lines.
#ifndef COMPILER_CODEGEN_COMMON_LINEFORM_H
#define COMPILER_CODEGEN_COMMON_LINEFORM_H

#include "dialects/mt/Lines.h"
#include "dialects/plan/PlanDialect.h"

namespace mtc {

struct LineForm {
  int64_t lines = 1;                               // per sample
  int64_t bytes = 0;                               // of all values of a line
  llvm::SmallVector<mlir::mt::LinePart> arguments; // part of each argument that a line reads; empty if `lines` is 1
};

// The smallest number of lines whose values have at most `bytes` each; if there is none, the largest number of lines.
// The number is 1 for a kernel whose ops are not independent along any axes.
LineForm lineFormOf(mlir::plan::KernelOp op, int64_t bytes);

// Rewrites the body to compute one line. Every argument of which a line reads a part then has a batch axis. Line `l` of
// row `r` has the number r * form.lines + l.
void becomeLine(mlir::plan::KernelOp op, const LineForm &form);

// Index (i64) of the part of an argument that the line with number `line` reads.
mlir::Value partAt(class Emitter &emit, const mlir::mt::LinePart &part, mlir::Value line);

} // namespace mtc

#endif
