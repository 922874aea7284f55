// SPDX-License-Identifier: Apache-2.0
//
// Sizes of an attention, and the keys that each query attends to (MtAttention.td).
#ifndef DIALECTS_MT_ATTENTION_H
#define DIALECTS_MT_ATTENTION_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>

namespace mlir::mt {

class AttentionOp;

struct Attention {
  int64_t groups = 1; // product of the axes between the batch axis and the positions
  int64_t queries = 0, keys = 0, heads = 1, keyHeads = 1;
  int64_t keySize = 0, valueSize = 0; // channels of a head
  bool causal = false;
  int64_t window = 0;    // 0: no window
  double scale = 1;      // of f32 the number of that type
  RankedTensorType mask; // null: no mask

  // `op` is an mt.attention, an mt.attention_gradient or an mt.attention_log_sums, for which valueSize is 0.
  explicit Attention(Operation *op);

  // Range [first, end) of the keys that `causal` and `window` do not hide from a query.
  int64_t firstKey(int64_t query) const { return window ? std::max<int64_t>(0, query - window + 1) : 0; }
  int64_t endKey(int64_t query) const {
    int64_t end = causal ? query + 1 : window ? query + window : keys;
    return std::min(end, keys);
  }
  // Number of pairs of a query and a key in these ranges, for one head.
  int64_t pairs() const;

  // Strides of the mask in elements along each axis; 0 along an axis that is repeated.
  struct MaskSteps {
    int64_t sample, group, head, query, key;
  };
  MaskSteps maskSteps() const;
};

// Whether both ops read the same queries, keys (and values) with the same attributes, so that one kernel may hold both.
bool isSameAttention(Operation *a, Operation *b);

// Builds the products and the softmax that compute the result of `op`. They store the scores.
Value decomposeAttention(OpBuilder &builder, AttentionOp op);

} // namespace mlir::mt

#endif
