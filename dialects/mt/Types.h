// SPDX-License-Identifier: Apache-2.0
//
// Helpers for types in definitions of ops.
#ifndef DIALECTS_MT_TYPES_H
#define DIALECTS_MT_TYPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mlir::mt {

inline RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// Whether elements are numbers that ops compute with: f32, or f64 in a module of precision f64.
inline bool isReal(Type element) { return element.isF32() || element.isF64(); }
// The type of the result of an op that reads `element` and computes: f64 of f64, and f32 of all others.
inline Type computedType(Type element) {
  return element.isF64() ? element : Type(Float32Type::get(element.getContext()));
}

// Sums and products of two sizes up to this one do not overflow.
constexpr int64_t maxExtent = int64_t{1} << 31;

} // namespace mlir::mt

#endif
