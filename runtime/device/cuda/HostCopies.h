// SPDX-License-Identifier: Apache-2.0
//
// Copies from memory of the host into its pinned memory, by several threads: one thread alone moves far fewer bytes a
// second than the bus to a GPU does.
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
  // `threads`, the calling one among them; 0: as many as suit the machine.
  explicit HostCopies(int threads = 0) : wanted_(threads) {}
  ~HostCopies();
  HostCopies(const HostCopies &) = delete;
  HostCopies &operator=(const HostCopies &) = delete;

  // Appends copies that together are this one, each small enough that several threads share out a large one.
  static void cut(const HostCopy &whole, std::vector<HostCopy> &pieces);
  // Makes all copies. Whenever more are done, with all before them, `done` is told how many, on the calling thread; it
  // may return false to end the run early. Returns the same.
  bool run(std::span<const HostCopy> copies, const std::function<bool(size_t)> &done);

private:
  void startThreads();
  void work();
  // The next copy, which is then the caller's to make; false: there is none.
  bool take(size_t &index);
  void make(size_t index);

  const int wanted_;
  std::vector<pthread_t> threads_; // beside the calling one
  bool started_ = false;
  std::mutex mutex_; // of all that follows
  std::condition_variable more_;
  std::span<const HostCopy> copies_;
  std::vector<bool> made_;
  size_t next_ = 0, inHand_ = 0; // the first that nobody has taken; that are taken, and not made
  bool ends_ = false;
};

} // namespace mtrun::cuda
