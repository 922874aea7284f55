// SPDX-License-Identifier: Apache-2.0
//
// The logits of losses over classes, which passes before differentiation rewrite.
#ifndef COMPILER_DIFFERENTIATE_CLASSLOGITS_H
#define COMPILER_DIFFERENTIATE_CLASSLOGITS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// The logits that a product with a matrix of weights computes: its result, or its result plus a bias. Null if the
// product computes no logits.
mlir::Value logitsOf(mlir::mt::MatmulOp product);

// Losses and accuracies that read logits, in program order. Empty if any other op of train_step reads them too.
llvm::SmallVector<mlir::Operation *> criteriaOf(mlir::Value logits);

} // namespace mtc

#endif
