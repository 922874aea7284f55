// SPDX-License-Identifier: Apache-2.0
//
// A barrier for a fixed number of threads that spins for a while and then sleeps in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace mtrun {

class Barrier {
public:
  // `spins`: number of pause instructions before sleeping; 0: sleep immediately.
  void reset(uint32_t threads, uint32_t spins) {
    threads_.store(threads, std::memory_order_relaxed);
    spins_ = spins;
  }

  // Returns after all threads have called it. Earlier writes of each thread are visible to all threads afterwards.
  void wait() {
    if (threads_.load(std::memory_order_relaxed) > 1)
      waitForOthers();
  }

private:
  void waitForOthers();

  alignas(64) std::atomic<uint32_t> arrived_ = 0;
  alignas(64) std::atomic<uint32_t> generation_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
  std::atomic<uint32_t> threads_ = 1;
  uint32_t spins_ = 0;
};

// Returns the number of pause instructions that take about `microseconds` on this CPU, by measurement.
uint32_t pausesFor(double microseconds);

} // namespace mtrun
