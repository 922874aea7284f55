// SPDX-License-Identifier: Apache-2.0
//
// What definitions of ops ask of types.
#ifndef DIALECTS_MT_TYPES_H
#define DIALECTS_MT_TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mlir::mt {

inline RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// Sizes up to here add, and multiply in pairs, without overflow.
constexpr int64_t maxExtent = int64_t{1} << 31;

} // namespace mlir::mt

#endif
