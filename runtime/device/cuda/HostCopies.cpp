// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/HostCopies.h"

#include "runtime/support/blocked_signals.h"

#include <algorithm>
#include <cstring>
#include <sched.h>

namespace mtrun::cuda {

namespace {

// sharedBytes: minimum bytes for more than one thread, because waking a thread takes some microseconds; minPiece and
// maxPiece: bytes of a piece.
constexpr uint64_t sharedBytes = 512 << 10, minPiece = 128 << 10, maxPiece = 1 << 20;
// A few threads reach the memory's bandwidth, and half of the CPUs are left for preparing the next batch.
constexpr int maxThreads = 8;

int allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

} // namespace

HostCopies::~HostCopies() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_all();
  for (pthread_t thread : threads_)
    pthread_join(thread, nullptr);
}

void HostCopies::cut(const HostCopy &whole, std::vector<HostCopy> &pieces) {
  uint64_t size = std::clamp(whole.bytes / 64, minPiece, maxPiece);
  for (uint64_t at = 0; at < whole.bytes; at += size)
    pieces.push_back({whole.to + at, whole.from + at, std::min(size, whole.bytes - at)});
}

// If fewer threads can be started, the calling thread copies the rest.
void HostCopies::startThreads() {
  started_ = true;
  BlockedSignals blocked; // inherited by the new threads
  constexpr size_t stackBytes = 256 << 10;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes))
    return;
  auto run = [](void *copies) -> void * {
    static_cast<HostCopies *>(copies)->work();
    return nullptr;
  };
  pthread_t thread;
  if (!pthread_attr_setstacksize(&attributes, stackBytes))
    for (int i = 1, end = wanted_ ? wanted_ : std::min(maxThreads, allowedCpus() / 2); i < end; ++i)
      if (!pthread_create(&thread, &attributes, run, this))
        threads_.push_back(thread);
  pthread_attr_destroy(&attributes);
}

void HostCopies::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [&] { return ends_ || next_ < copies_.size(); });
      if (ends_)
        return;
    }
    for (size_t index = 0; take(index);)
      make(index);
  }
}

bool HostCopies::take(size_t &index) {
  std::lock_guard lock(mutex_);
  if (next_ >= copies_.size())
    return false;
  index = next_++;
  ++inProgress_;
  return true;
}

void HostCopies::make(size_t index) {
  const HostCopy &copy = copies_[index]; // copies_ does not change while a copy is in progress
  std::memcpy(copy.to, copy.from, copy.bytes);
  std::lock_guard lock(mutex_);
  made_[index] = true;
  --inProgress_;
}

bool HostCopies::run(std::span<const HostCopy> copies, const std::function<bool(size_t)> &done) {
  uint64_t bytes = 0;
  for (const HostCopy &copy : copies)
    bytes += copy.bytes;
  bool shared = bytes >= sharedBytes;
  if (shared && !started_)
    startThreads();
  {
    std::lock_guard lock(mutex_);
    copies_ = copies;
    made_.assign(copies.size(), false);
    next_ = 0;
  }
  if (shared && !threads_.empty())
    more_.notify_all();
  size_t reported = 0, complete = 0;
  bool good = true;
  while (good && reported < copies.size()) {
    size_t index = 0;
    if (take(index))
      make(index);
    else
      sched_yield(); // the other threads are finishing their last copies
    {
      std::lock_guard lock(mutex_);
      while (complete < copies.size() && made_[complete])
        ++complete;
    }
    if (complete > reported)
      good = done(reported = complete);
  }
  for (bool busy = true; busy;) {
    std::lock_guard lock(mutex_);
    next_ = copies_.size();
    busy = inProgress_ > 0;
    if (!busy)
      copies_ = {};
  }
  return good;
}

} // namespace mtrun::cuda
