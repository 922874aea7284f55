// SPDX-License-Identifier: Apache-2.0
//
// Errors of the functions of dialects/mt/VectorExpr.h, as compiled code has them.
#ifndef TEST_UNIT_CODEGEN_LANESWEEP_H
#define TEST_UNIT_CODEGEN_LANESWEEP_H

#include "test/unit/codegen/Harness.h"

namespace codegentest {

struct LaneFunction {
  const char *name;          // of the op
  double (*exact)(double a); // in double precision
  double limit;              // ulp
};
const std::vector<LaneFunction> &laneFunctions();

// One map kernel for each function, and `pow` of two operands.
std::string laneKernels();

struct Sweep {
  double worst = 0; // ulp
  float at = 0;
  uint64_t wrong = 0; // special results (NaN, infinity) that differ
  float wrongAt = 0;
};
// Runs a function on every `stride`-th of all floats.
Sweep sweep(const Code &code, const LaneFunction &function, uint64_t stride);

// Error of `actual` in units of the last place of the f32 nearest to `exact`; infinite where one is NaN or infinite and
// the other is not.
double ulpError(float actual, double exact);

} // namespace codegentest

#endif
