// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/ExchangeThread.h"

#include "runtime/device/ThreadPool.h"
#include "runtime/support/blocked_signals.h"

#include <system_error>

namespace mtrun {

Status ExchangeThread::start(std::function<void(uint32_t allReduce)> run, size_t mostPosted) {
  run_ = std::move(run);
  queue_.reserve(mostPosted);
  BlockedSignals blocked; // inherited by the new thread
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error &error) {
    return {MT_NO_MEMORY, std::string("expected a thread for all-reduces between processes: ") + error.what()};
  }
  return {};
}

ExchangeThread::~ExchangeThread() {
  if (!thread_.joinable())
    return;
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void ExchangeThread::reset() {
  std::lock_guard lock(mutex_);
  queue_.clear();
  done_ = 0;
}

void ExchangeThread::post(uint32_t allReduce) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(allReduce);
  }
  posted_.notify_one();
}

void ExchangeThread::wait(size_t count) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_ >= count; });
}

void ExchangeThread::work() {
  useDefaultFloats();
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return stops_ || done_ < queue_.size(); });
    if (stops_)
      return;
    uint32_t next = queue_[done_];
    lock.unlock();
    run_(next);
    lock.lock();
    ++done_;
    ended_.notify_one();
  }
}

} // namespace mtrun
