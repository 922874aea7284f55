// SPDX-License-Identifier: Apache-2.0
//
// Lines: if all ops of a rows kernel are independent along the first axes of a sample (dialects/mt/Lines.h), the unit
// of work is one line (an index of these axes) instead of one sample, and the body is rewritten to compute one line.
// The bits of the results do not depend on how a sample is divided into lines.
#ifndef COMPILER_CODEGEN_COMMON_LINEFORM_H
#define COMPILER_CODEGEN_COMMON_LINEFORM_H

#include "dialects/mt/Lines.h"
#include "dialects/plan/PlanDialect.h"

namespace mtc {

struct LineForm {
  int64_t lines = 1;                               // of a sample
  int64_t bytes = 0;                               // of all values of a line
  llvm::SmallVector<mlir::mt::LinePart> arguments; // what a line reads of each argument; empty: `lines` is 1
};

// The fewest lines of which each has values of at most `bytes`, else as many as there can be. One line for a kernel
// that has no such axes.
LineForm lineFormOf(mlir::plan::KernelOp op, int64_t bytes);

// Rewrites the body. Every argument that a line reads a part of has a batch axis then. Lines are numbered through: line
// `l` of row `r` is r * form.lines + l.
void becomeLine(mlir::plan::KernelOp op, const LineForm &form);

// The index of the part of an argument that a line, numbered through, reads; i64.
mlir::Value partAt(class Emitter &emit, const mlir::mt::LinePart &part, mlir::Value line);

} // namespace mtc

#endif
