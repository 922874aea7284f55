// SPDX-License-Identifier: Apache-2.0
//
// The sizes of an attention, and which keys a query sees (MtAttention.td).
#ifndef DIALECTS_MT_ATTENTION_H
#define DIALECTS_MT_ATTENTION_H

#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>

namespace mlir::mt {

struct Attention {
  int64_t groups = 1; // the product of the axes between the batch axis and the places
  int64_t queries = 0, keys = 0, heads = 1, keyHeads = 1;
  int64_t keySize = 0, valueSize = 0; // of a head
  bool causal = false;
  int64_t window = 0; // 0: none
  float scale = 1;
  RankedTensorType mask; // null: none

  // Of an mt.attention, mt.attention_log_sums (valueSize is 0) or mt.attention_gradient.
  explicit Attention(Operation *op);

  // Keys that a query may see by its place: [first, end).
  int64_t firstKey(int64_t query) const { return window ? std::max<int64_t>(0, query - window + 1) : 0; }
  int64_t endKey(int64_t query) const {
    int64_t end = causal ? query + 1 : window ? query + window : keys;
    return std::min(end, keys);
  }
  // Their number for all queries of a head.
  int64_t pairs() const;

  // The elements of the mask from one index of its axis to the next; 0 where it is repeated.
  struct MaskSteps {
    int64_t sample, group, head, query, key;
  };
  MaskSteps maskSteps() const;
};

// Whether two of these ops read the same queries, keys (and values) in the same way: one kernel may hold both.
bool isSameAttention(Operation *a, Operation *b);

} // namespace mlir::mt

#endif
