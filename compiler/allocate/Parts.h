// SPDX-License-Identifier: Apache-2.0
//
// Whether a device may compute a shard in parts.
#pragma once

#include "dialects/mt/MtDialect.h"

#include "llvm/ADT/SetVector.h"

namespace mtc {

// Sums over the batch that a kernel can continue: it begins with the result of its launch for the rows before.
using ContinuedSums = llvm::SmallSetVector<mlir::Value, 16>;

// Returns all sums over the batch of a program whose rows can be computed in parts of a shard. Empty: there are none,
// or a kernel cannot continue one, or a row depends on one. `shardRows`: rows of a shard.
ContinuedSums continuedSums(mlir::mt::ProgramOp program, int64_t shardRows);

} // namespace mtc
