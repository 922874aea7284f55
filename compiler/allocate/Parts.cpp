// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Parts.h"

#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Types.h"

namespace mtc {

using namespace mlir;

// Weight gradients of a few lines are summed in registers, a whole tree at a time.
static bool canContinue(mt::KernelOp kernel, int64_t shardRows) {
  constexpr int64_t fewLines = 128;
  if (kernel.getKind() == mt::KernelKind::reduce)
    return true;
  if (kernel.getKind() != mt::KernelKind::matmul_wgrad || !llvm::all_of(kernel->getOperandTypes(), mt::isSplit))
    return false;
  mt::MatmulOp product = mt::batchProductOf(kernel.getBody().front().getTerminator()->getOperand(0)).product;
  RankedTensorType side = mt::tensorOf(product.getLhs());
  return mt::elementsPerRow(side) / side.getShape().back() * shardRows > fewLines;
}

ContinuedSums continuedSums(mt::ProgramOp program, int64_t shardRows) {
  ContinuedSums sums;
  llvm::DenseSet<Value> ofSums; // values of one part that are computed from sums
  for (auto kernel : program.getBody().front().getOps<mt::KernelOp>()) {
    bool readsRows = llvm::any_of(kernel->getOperandTypes(), mt::isSplit);
    bool readsSums = llvm::any_of(kernel->getOperands(), [&](Value value) { return ofSums.contains(value); });
    bool sumsRows = readsRows && !llvm::all_of(kernel->getResultTypes(), mt::isSplit);
    if ((readsSums && (readsRows || llvm::any_of(kernel->getResultTypes(), mt::isSplit))) ||
        (sumsRows && !canContinue(kernel, shardRows)))
      return {};
    if (sumsRows)
      sums.insert(kernel->getResults().begin(), kernel->getResults().end());
    if (sumsRows || readsSums)
      ofSums.insert(kernel->getResults().begin(), kernel->getResults().end());
  }
  return sums;
}

} // namespace mtc
