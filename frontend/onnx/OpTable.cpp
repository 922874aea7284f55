// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/OpTable.h"

namespace mtc::onnx {

static constexpr llvm::ArrayRef<OpEntry> (*families[])() = {
    activationOps, arithmeticOps, attentionOps, bitOps,           comparisonOps, constantOps,
    functionOps,   lookupOps,     lossOps,      normalizationOps, partOps,       productOps,
    recurrentOps,  reductionOps,  resizingOps,  sequenceOps,      shapeOps,      windowOps};

bool isControl(const Node &node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
}

BuildOp findOp(const Node &node) {
  if (!node.domain.empty())
    return nullptr;
  for (auto family : families)
    for (const OpEntry &entry : family())
      if (node.op == entry.name)
        return entry.build;
  return nullptr;
}

} // namespace mtc::onnx
