// SPDX-License-Identifier: Apache-2.0
//
// Keras' dtype policies: the precision of a model (docs/precision.md).
#ifndef FRONTEND_KERAS_PRECISION_H
#define FRONTEND_KERAS_PRECISION_H

#include "dialects/mt/MtDialect.h"

namespace mtc::keras {

// "f32", "bf16" or "f16" for the policies float32, mixed_bfloat16 and mixed_float16; "" for any other.
llvm::StringRef precisionOf(llvm::StringRef policy);
// Sets the precision of the contractions after `last` (null: all) in a block to that of their layer.
void markPrecision(mlir::Block &block, mlir::Operation *last, llvm::StringRef precision);
// Derives the module's precision from the precisions of its contractions; contractions in f32 keep their attribute if
// the module's precision differs. Fails for a model with both 16-bit policies.
mlir::LogicalResult settlePrecision(mlir::ModuleOp module);

} // namespace mtc::keras

#endif
