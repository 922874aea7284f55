// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/BatchStream.h"
#include "runtime/data/Order.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <numeric>
#include <pthread.h>

namespace mtrun {

static uint64_t alignUp(uint64_t bytes) { return (bytes + 63) & ~uint64_t(63); }

// Batches of a pass over the data.
static int64_t passSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options) {
  return options.dropRemainder ? data.size / batch : (data.size - 1) / batch + 1;
}

int64_t epochSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options) {
  return options.stepsPerEpoch ? options.stepsPerEpoch : passSteps(data, batch, options);
}

BatchStream::BatchStream(const mtrun_dataset &data, const Binding &binding, const StreamOptions &options)
    : data_(data), binding_(binding), options_(options) {
  passSteps_ = passSteps(data, options.batch, options);
  steps_ = epochSteps(data, options.batch, options);
  order_.resize(static_cast<size_t>(data.size));
  std::iota(order_.begin(), order_.end(), int64_t(0));

  uint64_t rows = static_cast<uint64_t>(std::min(options.batch, data.size)), slotBytes = 0;
  for (int column : binding_.columns)
    if (column >= 0)
      slotBytes += alignUp(rows * data.columns[column].rowBytes);
  storage_ = std::make_unique<std::byte[]>(slotBytes * kSlots + 64);
  auto *place = reinterpret_cast<std::byte *>(alignUp(reinterpret_cast<uintptr_t>(storage_.get())));
  for (Batch &slot : slots_)
    for (int column : binding_.columns) {
      slot.tensors.push_back(column >= 0 ? place : nullptr);
      if (column >= 0)
        place += alignUp(rows * data.columns[column].rowBytes);
    }

  // The caller's signals are for the caller's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { produce(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BatchStream::~BatchStream() {
  stop_.store(true, std::memory_order_relaxed);
  released_.fetch_add(kSlots, std::memory_order_release); // wakes a producer that waits for a free slot
  released_.notify_one();
  thread_.join();
}

const Batch &BatchStream::next() {
  if (taken_ > 0) {
    released_.store(taken_, std::memory_order_release);
    released_.notify_one();
  }
  if (produced_.load(std::memory_order_acquire) <= taken_) {
    auto start = std::chrono::steady_clock::now();
    for (uint64_t ready; (ready = produced_.load(std::memory_order_acquire)) <= taken_;)
      produced_.wait(ready, std::memory_order_acquire);
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return slots_[taken_++ % kSlots];
}

void BatchStream::order(int64_t pass) {
  if (options_.shuffle && options_.window)
    windowOrder(options_.seed, pass, data_.size, options_.window, order_.data());
  else if (options_.shuffle)
    epochOrder(options_.seed, pass, data_.size, order_.data());
}

void BatchStream::produce() {
  uint64_t produced = 0;
  int64_t ordered = -1; // the pass that order_ is of
  for (int64_t index = options_.first; index / steps_ < options_.epochs; ++index) {
    int64_t pass = index / passSteps_;
    if (pass != ordered)
      order(ordered = pass);
    for (uint64_t released; produced - (released = released_.load(std::memory_order_acquire)) == kSlots;)
      released_.wait(released, std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed))
      return;
    fill(slots_[produced % kSlots], index % passSteps_);
    produced_.store(++produced, std::memory_order_release);
    produced_.notify_one();
  }
}

void BatchStream::fill(Batch &batch, int64_t step) {
  int64_t first = step * options_.batch;
  batch.rows = std::min(options_.batch, data_.size - first);
  for (size_t i = 0; i < binding_.columns.size(); ++i)
    if (binding_.columns[i] >= 0)
      data_.columns[binding_.columns[i]].gather(data_.begin, order_.data() + first, batch.rows, batch.tensors[i]);
}

} // namespace mtrun
