// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra.
#include "frontend/logical/Linear.h"
#include "frontend/graph/Lower.h"

namespace mtc::lower {
namespace {

Value lowerSolveTriangular(Call &call, graph::SolveTriangularOp op) {
  logical::Triangle triangle{!op.getRightSide(), !op.getUpper(), op.getTransposed(), op.getUnitDiagonal()};
  return logical::solveTriangular(call.ops, call.operands[0], call.operands[1], triangle);
}

Value lowerCholesky(Call &call, graph::CholeskyOp op) {
  return logical::cholesky(call.ops, call.operands[0], !op.getUpper());
}

} // namespace

llvm::ArrayRef<Entry> linearOps() {
  static constexpr Entry entries[] = {entry<graph::SolveTriangularOp, lowerSolveTriangular>(),
                                      entry<graph::CholeskyOp, lowerCholesky>()};
  return entries;
}

} // namespace mtc::lower
