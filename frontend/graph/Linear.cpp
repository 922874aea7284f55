// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra and Fourier transforms.
#include "frontend/logical/Linear.h"
#include "frontend/graph/Lower.h"
#include "frontend/logical/Fourier.h"

namespace mtc::lower {
namespace {

Value lowerSolveTriangular(Call &call, graph::SolveTriangularOp op) {
  logical::Triangle triangle{!op.getRightSide(), !op.getUpper(), op.getTransposed(), op.getUnitDiagonal()};
  return logical::solveTriangular(call.ops, call.operands[0], call.operands[1], triangle);
}

Value lowerCholesky(Call &call, graph::CholeskyOp op) {
  return logical::cholesky(call.ops, call.operands[0], !op.getUpper());
}

Value lowerFft(Call &call, graph::FftOp op) {
  logical::Fourier form{op.getInverse(), op.getReal(), llvm::to_vector(op.getLengths())};
  return logical::fourier(call.ops, call.operands[0], form);
}

} // namespace

llvm::ArrayRef<Entry> linearOps() {
  static constexpr Entry entries[] = {entry<graph::SolveTriangularOp, lowerSolveTriangular>(),
                                      entry<graph::CholeskyOp, lowerCholesky>(), entry<graph::FftOp, lowerFft>()};
  return entries;
}

} // namespace mtc::lower
