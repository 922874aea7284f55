// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra of small matrices, [..., n, n], by halves: half the rows first, then the rest without what those
// explain. Each step is a product of matrices or a division, so the formulas have gradients.
#ifndef FRONTEND_LOGICAL_LINEAR_H
#define FRONTEND_LOGICAL_LINEAR_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

constexpr int64_t maxRows = 64; // of a matrix here

// X of op(A) X = B, or of X op(A) = B: A [..., n, n] is triangular, and what lies in the other triangle is not read.
struct Triangle {
  bool left = true, lower = true, transposed = false; // op(A) is A or its transpose
  bool unit = false;                                  // the diagonal is 1, and not read
};
Value solveTriangular(Ops &ops, const Value &a, const Value &b, Triangle triangle);
// The lower triangle L of A = L L^T. One triangle of A is read; the gradient is that of a symmetric matrix.
Value cholesky(Ops &ops, const Value &a, bool lower);

} // namespace mtc::logical

#endif
