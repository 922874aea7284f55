// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Barrier.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mtrun {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace

void Barrier::waitForOthers() {
  uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_.load(std::memory_order_relaxed)) {
    arrived_.store(0, std::memory_order_relaxed);
    // Sequential consistency with sleepers_: either a thread that is about to sleep sees the new generation, or it is
    // counted here and woken.
    generation_.store(generation + 1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      futexWakeAll(generation_);
    return;
  }
  for (uint32_t i = 0; i < spins_; ++i) {
    if (generation_.load(std::memory_order_acquire) != generation)
      return;
    pause();
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (generation_.load(std::memory_order_seq_cst) == generation)
    futexWait(generation_, generation);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

uint32_t pausesFor(double microseconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int pauses = 200;
  double shortest = 1e9; // the minimum, because a preemption only lengthens a round
  for (int round = 0; round < 5; ++round) {
    auto begin = Clock::now();
    for (int i = 0; i < pauses; ++i)
      pause();
    shortest = std::min(shortest, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return static_cast<uint32_t>(microseconds * pauses / std::max(shortest, 0.1));
}

} // namespace mtrun
