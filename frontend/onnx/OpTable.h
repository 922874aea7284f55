// SPDX-License-Identifier: Apache-2.0
//
// The closed table: which ONNX ops are known, and what builds them.
#ifndef FRONTEND_ONNX_OPTABLE_H
#define FRONTEND_ONNX_OPTABLE_H

#include "frontend/onnx/Call.h"

namespace mtc::onnx {

// Gives the results of a node, or throws Refused.
using BuildOp = void (*)(Call &);

struct OpEntry {
  const char *name;
  BuildOp build;
};

// Each family's part of the table, in ops/.
llvm::ArrayRef<OpEntry> activationOps();
llvm::ArrayRef<OpEntry> arithmeticOps();
llvm::ArrayRef<OpEntry> attentionOps();
llvm::ArrayRef<OpEntry> bitOps();
llvm::ArrayRef<OpEntry> comparisonOps();
llvm::ArrayRef<OpEntry> constantOps();
llvm::ArrayRef<OpEntry> functionOps();
llvm::ArrayRef<OpEntry> lookupOps();
llvm::ArrayRef<OpEntry> lossOps();
llvm::ArrayRef<OpEntry> normalizationOps();
llvm::ArrayRef<OpEntry> partOps();
llvm::ArrayRef<OpEntry> productOps();
llvm::ArrayRef<OpEntry> recurrentOps();
llvm::ArrayRef<OpEntry> reductionOps();
llvm::ArrayRef<OpEntry> resizingOps();
llvm::ArrayRef<OpEntry> sequenceOps();
llvm::ArrayRef<OpEntry> shapeOps();
llvm::ArrayRef<OpEntry> windowOps();

// The most elements of all constants together that the nodes of a file make.
constexpr int64_t maxKnownElements = int64_t{1} << 26;
// Whether a node has graphs of its own: If, Loop, Scan. The importer evaluates them itself.
bool isControl(const Node &node);
// Null where the op is not known.
BuildOp findOp(const Node &node);

} // namespace mtc::onnx

#endif
