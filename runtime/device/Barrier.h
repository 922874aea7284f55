// SPDX-License-Identifier: Apache-2.0
//
// A barrier for a fixed number of threads that spins a while, then sleeps in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace mtrun {

class Barrier {
public:
  // `spins`: pauses before sleeping; 0 sleeps at once.
  void reset(uint32_t threads, uint32_t spins) {
    threads_.store(threads, std::memory_order_relaxed);
    spins_ = spins;
  }

  // Returns once all threads have called. What any of them wrote before is visible to all after.
  void wait() {
    if (threads_.load(std::memory_order_relaxed) > 1)
      waitForOthers();
  }

private:
  void waitForOthers();

  alignas(64) std::atomic<uint32_t> arrived_ = 0;
  alignas(64) std::atomic<uint32_t> phase_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
  std::atomic<uint32_t> threads_ = 1;
  uint32_t spins_ = 0;
};

// Pauses that last about `microseconds` on this CPU, measured.
uint32_t pausesFor(double microseconds);

} // namespace mtrun
