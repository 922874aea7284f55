// SPDX-License-Identifier: Apache-2.0
//
// A thread that runs the all-reduces between processes one after another, while other threads compute. Libraries of MPI
// move almost no bytes unless a thread calls them.
#pragma once

#include "runtime/support/status.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mtrun {

class ExchangeThread {
public:
  // Starts the thread, which calls `run` for each number that is posted. MT_NO_MEMORY.
  Status start(std::function<void(uint32_t allReduce)> run, size_t mostPosted);
  ~ExchangeThread();

  // Begins a run with no all-reduce posted. The earlier ones must have ended.
  void reset();
  // Both are called by one thread. Writes before post() are visible to the thread, and the thread's after wait().
  void post(uint32_t allReduce);
  // Waits until `count` all-reduces of the run have ended.
  void wait(size_t count);

private:
  void work();

  std::function<void(uint32_t)> run_;
  std::mutex mutex_;
  std::condition_variable posted_, ended_;
  std::vector<uint32_t> queue_; // of the run
  size_t done_ = 0;
  bool stops_ = false;
  std::thread thread_;
};

} // namespace mtrun
