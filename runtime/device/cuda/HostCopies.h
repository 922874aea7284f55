// SPDX-License-Identifier: Apache-2.0
//
// Copies from host memory to pinned memory in several threads, because a single thread copies far fewer bytes per
// second than the bus to a GPU.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <pthread.h>
#include <span>
#include <vector>

namespace mtrun::cuda {

struct HostCopy {
  std::byte *to;
  const std::byte *from;
  uint64_t bytes;
};

class HostCopies {
public:
  // `threads`: number of threads including the calling thread; 0: chosen for the machine.
  explicit HostCopies(int threads = 0) : wanted_(threads) {}
  ~HostCopies();
  HostCopies(const HostCopies &) = delete;
  HostCopies &operator=(const HostCopies &) = delete;

  // Splits a copy into pieces that several threads can copy, and appends them.
  static void cut(const HostCopy &whole, std::vector<HostCopy> &pieces);
  // Makes all copies. When another copy and all copies before it are complete, calls `done` with the number of complete
  // copies, in the calling thread. `done` may return false to end the run early; run() then returns false.
  bool run(std::span<const HostCopy> copies, const std::function<bool(size_t)> &done);

private:
  void startThreads();
  void work();
  // Takes the next copy, which the caller must make. Returns false if there is none.
  bool take(size_t &index);
  void make(size_t index);

  const int wanted_;
  std::vector<pthread_t> threads_; // all threads except the calling thread
  bool started_ = false;
  std::mutex mutex_; // guards all members below
  std::condition_variable more_;
  std::span<const HostCopy> copies_;
  std::vector<bool> made_;
  // next_: the first copy that no thread has taken; inProgress_: number of taken copies that are not complete
  size_t next_ = 0, inProgress_ = 0;
  bool ends_ = false;
};

} // namespace mtrun::cuda
