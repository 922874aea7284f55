// SPDX-License-Identifier: Apache-2.0
//
// Hashes the rows of batches, for receipts: SHA-256 of the bytes of a row's entries, in the order of the signature.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/support/sha256.h"

#include <atomic>
#include <memory>
#include <vector>

namespace mtrun {

// The rows [begin, end) of each batch.
struct RowRange {
  int64_t begin = 0, end = 0;
};

class RowDigests {
public:
  // `data` and `binding` must outlive the object.
  RowDigests(const mtrun_dataset &data, const Binding &binding, RowRange range);

  // Sets the digests of the rows [begin, end) that are in the range. `samples`: the index of each row's sample in the
  // columns. Any thread may call it.
  void hash(const std::vector<void *> &tensors, const std::vector<int64_t> &samples, int64_t begin, int64_t end,
            std::vector<Digest> &digests);

private:
  Digest digestOf(const std::vector<void *> &tensors, int64_t row) const;

  const mtrun_dataset &data_;
  const Binding &binding_;
  RowRange range_;
  // By sample, if samples have the same bytes in each epoch: the digest, and its state (0: missing, 1: being written,
  // 2: known). Each sample is hashed once.
  std::vector<Digest> known_;
  std::unique_ptr<std::atomic<uint8_t>[]> states_;
};

} // namespace mtrun
