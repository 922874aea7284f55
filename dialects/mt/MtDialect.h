// SPDX-License-Identifier: Apache-2.0
//
// The mt dialect: operations of a training step (MtBase.td, MtStructure.td, MtOps.td).
#ifndef DIALECTS_MT_MTDIALECT_H
#define DIALECTS_MT_MTDIALECT_H

#include "dialects/headers.h"
#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Moves.h"
#include "dialects/mt/Tensor.h"
#include "dialects/mt/Window.h"

namespace mlir::mt {
using shard::ReductionKind; // the generated declarations of ShardingInterface use this name
} // namespace mlir::mt

#include "dialects/mt/MtDialect.h.inc"
#include "dialects/mt/MtEnums.h.inc"
#include "dialects/mt/MtInterfaces.h.inc"

namespace mlir::mt {
// Whether the finalizer computes a metric from sums over the samples, and not from a mean.
inline bool isOfSums(Finalizer finalizer) { return finalizer != Finalizer::mean && finalizer != Finalizer::root_mean; }
// Limit of a plan file (docs/plan-format.md section 4).
inline constexpr size_t maxNameBytes = 1024;
// Whether the name is UTF-8 without control characters.
bool isText(llvm::StringRef name);
// The initial value of a reduction, and code for one step of it on scalars or vectors of f32 or i32. Every code
// generator uses these functions, because the bits depend on them.
float startOf(Reduction kind);
TypedAttr startOf(Reduction kind, Type element);
Value combine(OpBuilder &builder, Location location, Reduction kind, Value running, Value next);
} // namespace mlir::mt

#define GET_ATTRDEF_CLASSES
#include "dialects/mt/MtAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/mt/MtOps.h.inc"

#endif
