// SPDX-License-Identifier: Apache-2.0
//
// How threads wait for each other: they spin for a while and then sleep in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace mtrun {

// A number that one thread at a time changes, and others wait for.
class Signal {
public:
  // Earlier writes of the thread that set the number are visible to threads that read it.
  uint32_t now() const { return number_.load(std::memory_order_seq_cst); }
  void set(uint32_t number);
  // True if the number is another than `old` within `spins` pause instructions.
  bool spin(uint32_t old, uint32_t spins) const;
  // Sleeps until the number is another than `old`, or for `microseconds`; 0: as long as it takes.
  void sleep(uint32_t old, uint32_t microseconds = 0);

private:
  alignas(64) std::atomic<uint32_t> number_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
};

// A barrier for a fixed number of threads.
class Barrier {
public:
  // `spins`: number of pause instructions before sleeping; 0: sleep immediately.
  void reset(uint32_t threads, uint32_t spins) {
    threads_ = threads;
    spins_ = spins;
  }

  // Returns after all threads have called it. Earlier writes of each thread are visible to all threads afterwards.
  void wait() {
    if (threads_ > 1)
      waitForOthers();
  }

private:
  void waitForOthers();

  alignas(64) std::atomic<uint32_t> arrived_ = 0;
  Signal generation_;
  uint32_t threads_ = 1, spins_ = 0;
};

// Waits for so many pause instructions.
void pauseFor(uint32_t pauses);
// Returns the number of pause instructions that take about `microseconds` on this CPU, by measurement.
uint32_t pausesFor(double microseconds);

} // namespace mtrun
