// SPDX-License-Identifier: Apache-2.0
//
// The launches that the threads of a device share. Launches up to the next wait form a group. Each thread has a part of
// each launch, and when its own parts are done it takes what other threads have not begun. A group is complete when
// any threads have done its work. No thread waits for one that does nothing because another process has its CPU.
#pragma once

#include "runtime/device/Barrier.h"

#include <memory>

namespace mtrun {

class SharedWork {
public:
  static constexpr uint32_t maxLaunches = 32; // in a group

  void reset(int threads);

  // The group that is not complete yet. Groups are counted without end, modulo 2^32.
  uint32_t group() const { return completed_.now(); }
  const Signal &completed() const { return completed_; }
  Signal &completed() { return completed_; }

  // Takes the owner's part of the next of the launches [0, launches) of the group: returns the launch, or `launches` if
  // all its parts are taken.
  uint32_t take(uint32_t group, int owner, uint32_t launches) {
    std::atomic<uint64_t> &taken = owners_[static_cast<size_t>(owner)].taken;
    uint64_t old = taken.load(std::memory_order_relaxed);
    for (;;) {
      int32_t ahead = static_cast<int32_t>(static_cast<uint32_t>(old >> 32) - group);
      uint32_t next = ahead < 0 ? 0 : static_cast<uint32_t>(old);
      if (ahead > 0 || next >= launches) // a group that was begun later: this one is complete
        return launches;
      // No order is needed: the operands were visible when the group before was complete.
      if (taken.compare_exchange_weak(old, uint64_t{group} << 32 | (next + 1), std::memory_order_relaxed))
        return next;
    }
  }

  // Counts parts of a group of `launches` launches that the calling thread has computed. The last one completes the
  // group.
  void finish(uint32_t group, uint32_t launches, uint32_t parts);

private:
  struct alignas(64) Owner {
    std::atomic<uint64_t> taken = 0; // the last group of which a part was taken, times 2^32; parts taken
  };
  std::unique_ptr<Owner[]> owners_;
  uint32_t threads_ = 1;
  alignas(64) std::atomic<uint32_t> done_ = 0; // parts of the group
  Signal completed_;
};

} // namespace mtrun
