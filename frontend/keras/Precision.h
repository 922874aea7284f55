// SPDX-License-Identifier: Apache-2.0
//
// Keras' dtype policies: what a model computes in (docs/precision.md).
#ifndef FRONTEND_KERAS_PRECISION_H
#define FRONTEND_KERAS_PRECISION_H

#include "dialects/mt/MtDialect.h"

namespace mtc::keras {

// "f32", "bf16" or "f16" of the policy float32, mixed_bfloat16 or mixed_float16; "" of any other.
llvm::StringRef precisionOf(llvm::StringRef policy);
// Gives the contractions behind `last` (null: all) of a block the precision of the layer that they are of.
void markPrecision(mlir::Block &block, mlir::Operation *last, llvm::StringRef precision);
// The module's `mt.precision` from those of its contractions; f32 stays on those alone that differ from it. A model of
// both 16-bit policies is an error.
mlir::LogicalResult settlePrecision(mlir::ModuleOp module);

} // namespace mtc::keras

#endif
