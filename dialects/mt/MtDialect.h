// SPDX-License-Identifier: Apache-2.0
//
// The mt dialect: what a training step computes (MtBase.td, MtStructure.td, MtOps.td).
#ifndef DIALECTS_MT_MTDIALECT_H
#define DIALECTS_MT_MTDIALECT_H

#include "dialects/headers.h"
#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Moves.h"
#include "dialects/mt/Tensor.h"
#include "dialects/mt/Window.h"

namespace mlir::mt {
using shard::ReductionKind; // ShardingInterface's declarations name it so
} // namespace mlir::mt

#include "dialects/mt/MtDialect.h.inc"
#include "dialects/mt/MtEnums.h.inc"
#include "dialects/mt/MtInterfaces.h.inc"

namespace mlir::mt {
// Its sums are tensors over the samples, not a mean.
inline bool isOfSums(Finalizer finalizer) { return finalizer != Finalizer::mean && finalizer != Finalizer::root_mean; }
// What a plan file can hold (docs/plan-format.md section 4).
inline constexpr size_t maxNameBytes = 1024;
// Its bytes are UTF-8 and none is a control character.
bool isText(llvm::StringRef name);
// Where a reduction starts, and code for its next value, of scalars or vectors of f32 or i32: by these rules, on which
// bits depend, every code generator reduces.
float startOf(Reduction kind);
TypedAttr startOf(Reduction kind, Type element);
Value combine(OpBuilder &builder, Location location, Reduction kind, Value running, Value next);
} // namespace mlir::mt

#define GET_ATTRDEF_CLASSES
#include "dialects/mt/MtAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/mt/MtOps.h.inc"

#endif
