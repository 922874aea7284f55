// SPDX-License-Identifier: Apache-2.0
//
// The logits of a model's losses over classes, which passes before differentiation give another form.
#ifndef COMPILER_DIFFERENTIATE_CLASSLOGITS_H
#define COMPILER_DIFFERENTIATE_CLASSLOGITS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// The logits that a product with a matrix of weights makes: its result, or that with a bias added. Null for what is no
// such product.
mlir::Value logitsOf(mlir::mt::MatmulOp product);

// Losses and accuracies that read logits, in program order; none where something else reads them in train_step too.
llvm::SmallVector<mlir::Operation *> criteriaOf(mlir::Value logits);

} // namespace mtc

#endif
