// SPDX-License-Identifier: Apache-2.0
//
// Logits that are never stored as a whole: a loss over many classes computes them for a block of classes at a time
// (docs/ir.md, "Losses over many classes"). What stages tell each other of it.
#ifndef DIALECTS_MT_BLOCKS_H
#define DIALECTS_MT_BLOCKS_H

#include "dialects/mt/MtDialect.h"

#include <optional>

namespace mlir::mt {

// Of the same logits. With more there is less and less to gain, and each product is narrower.
constexpr int64_t mostBlocks = 16;

// Of a loss or a metric: its logits exist for `size` classes at a time. Criteria of the same logits have one `sequence`
// of turns. Also of the concatenation that their gradient is made of, and of what becomes of it.
struct LogitBlocks {
  int64_t sequence, size;
};
std::optional<LogitBlocks> blocksOf(Operation *op);
void setBlocks(Operation *op, LogitBlocks blocks);

// Of an op or a kernel that computes a block or reads one. All of one turn run before all of the next turn of the
// sequence, so that no two blocks are in memory at once.
struct Turn {
  int64_t sequence, number;
  auto operator<=>(const Turn &) const = default;
};
std::optional<Turn> turnOf(Operation *op);
void setTurn(Operation *op, std::optional<Turn> turn); // none: takes it away

// The matrix that a product reads a part of where it lies: the operand of the slice, in a kernel or before one. Null
// where the right side is no slice.
SliceOp slicedSide(MatmulOp product);

// A kernel's result that is its operand `whole` with another part from `from` on along `axis`: it lies where the
// operand did, and the kernel writes the part alone.
struct PlacedPart {
  Value part, whole;
  int64_t axis, from;
};
std::optional<PlacedPart> placedPartOf(Value result);
// `whole` with `part` from `from` on along `axis`, as placedPartOf takes it apart. Neither has a batch axis.
Value placePart(OpBuilder &builder, Location location, const PlacedPart &placed);

} // namespace mlir::mt

#endif
