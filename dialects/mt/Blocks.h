// SPDX-License-Identifier: Apache-2.0
//
// Attributes by which passes communicate about logits that are never stored whole: a loss over many classes computes
// them for one block of classes at a time (docs/ir.md, "Losses over many classes").
#ifndef DIALECTS_MT_BLOCKS_H
#define DIALECTS_MT_BLOCKS_H

#include "dialects/mt/MtDialect.h"

#include <optional>

namespace mlir::mt {

// Largest number of blocks of the same logits. More blocks save little memory and make each product smaller.
constexpr int64_t mostBlocks = 16;

// Blocks of the logits that a loss or a metric reads: the logits exist for `size` classes at a time. All criteria of
// the same logits have the same `sequence` of turns. The concatenation that forms the gradient of the logits has this
// attribute too, and so have the ops that `mt-block-logits` makes of it.
struct LogitBlocks {
  int64_t sequence, size;
};
std::optional<LogitBlocks> blocksOf(Operation *op);
void setBlocks(Operation *op, LogitBlocks blocks);

// Turn of an op or a kernel that computes or reads a block. All ops of a turn run before all ops of the next turn of
// the sequence, so that only one block is in memory at a time.
struct Turn {
  int64_t sequence, number;
  auto operator<=>(const Turn &) const = default;
};
std::optional<Turn> turnOf(Operation *op);
void setTurn(Operation *op, std::optional<Turn> turn); // nullopt: removes the turn

// The slice of a matrix that the product's right side is, which the kernel reads in place; the slice may be inside the
// kernel or before it. Null if the right side is not a slice.
SliceOp slicedSide(MatmulOp product);

// A result of a kernel that is its operand `whole` with `part` written over it from index `from` on along `axis`. The
// result is in the operand's buffer, and the kernel writes only the part.
struct PlacedPart {
  Value part, whole;
  int64_t axis, from;
};
std::optional<PlacedPart> placedPartOf(Value result);
// Builds `whole` with `part` written over it, in the form that placedPartOf recognizes. Neither value has a batch axis.
Value placePart(OpBuilder &builder, Location location, const PlacedPart &placed);

} // namespace mlir::mt

#endif
