// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Barrier.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
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

void futexWait(std::atomic<uint32_t> &word, uint32_t expected, const timespec *timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace

void Signal::set(uint32_t number) {
  // Sequential consistency with sleepers_: either a thread that is about to sleep sees the new number, or it is
  // counted here and woken.
  number_.store(number, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0)
    futexWakeAll(number_);
}

bool Signal::spin(uint32_t old, uint32_t spins) const {
  for (uint32_t i = 0; i < spins; ++i) {
    if (number_.load(std::memory_order_acquire) != old)
      return true;
    pause();
  }
  return number_.load(std::memory_order_acquire) != old;
}

void Signal::sleep(uint32_t old, uint32_t microseconds) {
  timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(microseconds) * 1000};
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (number_.load(std::memory_order_seq_cst) == old) {
    futexWait(number_, old, microseconds ? &timeout : nullptr);
    if (microseconds)
      break;
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Barrier::waitForOthers() {
  uint32_t generation = generation_.now();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.set(generation + 1);
  } else if (!generation_.spin(generation, spins_)) {
    generation_.sleep(generation);
  }
}

void pauseFor(uint32_t pauses) {
  for (uint32_t i = 0; i < pauses; ++i)
    pause();
}

uint32_t pausesFor(double microseconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int pauses = 200;
  double shortest = 1e9; // the minimum, because a preemption only lengthens a round
  for (int round = 0; round < 5; ++round) {
    auto begin = Clock::now();
    pauseFor(pauses);
    shortest = std::min(shortest, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return static_cast<uint32_t>(microseconds * pauses / std::max(shortest, 0.1));
}

} // namespace mtrun
