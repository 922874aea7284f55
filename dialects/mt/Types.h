// SPDX-License-Identifier: Apache-2.0
//
// Helpers for types in definitions of ops.
#ifndef DIALECTS_MT_TYPES_H
#define DIALECTS_MT_TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mlir::mt {

inline RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// Sums and products of two sizes up to this one do not overflow.
constexpr int64_t maxExtent = int64_t{1} << 31;

} // namespace mlir::mt

#endif
