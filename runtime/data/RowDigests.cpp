// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/RowDigests.h"

#include <algorithm>

namespace mtrun {

// The most samples whose digests are kept: 64 MiB.
constexpr int64_t maxKnown = (64 << 20) / static_cast<int64_t>(sizeof(Digest));

RowDigests::RowDigests(const mtrun_dataset &data, const Binding &binding, RowRange range)
    : data_(data), binding_(binding), range_(range) {
  // Pictures may be flipped and cropped again, and a callback may return other bytes.
  bool changes = data.source || std::any_of(data.columns.begin(), data.columns.end(),
                                            [](const Column &column) { return column.made(); });
  int64_t samples = data.chosen && !data.chosen->empty()
                        ? *std::max_element(data.chosen->begin(), data.chosen->end()) + 1
                        : data.begin + data.size;
  if (changes || samples > maxKnown)
    return;
  known_.resize(static_cast<size_t>(samples));
  states_ = std::make_unique<std::atomic<uint8_t>[]>(known_.size());
}

Digest RowDigests::digestOf(const std::vector<void *> &tensors, int64_t row) const {
  Sha256 hash;
  for (size_t i = 0; i < binding_.columns.size(); ++i)
    if (int column = binding_.columns[i]; column >= 0) {
      uint64_t bytes = data_.columns[static_cast<size_t>(column)].rowBytes;
      hash.add(static_cast<const std::byte *>(tensors[i]) + static_cast<uint64_t>(row) * bytes, bytes);
    }
  return hash.finish();
}

void RowDigests::hash(const std::vector<void *> &tensors, const std::vector<int64_t> &samples, int64_t begin,
                      int64_t end, std::vector<Digest> &digests) {
  for (int64_t row = std::max(begin, range_.begin); row < std::min(end, range_.end); ++row) {
    auto at = static_cast<size_t>(row);
    if (known_.empty()) {
      digests[at] = digestOf(tensors, row);
      continue;
    }
    auto sample = static_cast<size_t>(samples[at]);
    std::atomic<uint8_t> &state = states_[sample];
    if (state.load(std::memory_order_acquire) == 2) {
      digests[at] = known_[sample];
      continue;
    }
    digests[at] = digestOf(tensors, row);
    uint8_t missing = 0;
    if (state.compare_exchange_strong(missing, 1, std::memory_order_relaxed)) {
      known_[sample] = digests[at];
      state.store(2, std::memory_order_release);
    }
  }
}

} // namespace mtrun
