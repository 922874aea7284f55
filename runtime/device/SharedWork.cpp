// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/SharedWork.h"

namespace mtrun {

void SharedWork::reset(int threads) {
  threads_ = static_cast<uint32_t>(threads);
  owners_ = std::make_unique<Owner[]>(threads_);
  completed_.set(1); // all parts of group 0 are taken
}

void SharedWork::finish(uint32_t group, uint32_t launches, uint32_t parts) {
  if (parts == 0 || done_.fetch_add(parts, std::memory_order_acq_rel) + parts != threads_ * launches)
    return;
  done_.store(0, std::memory_order_relaxed);
  completed_.set(group + 1);
}

} // namespace mtrun
