// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/BatchStream.h"
#include "runtime/data/Order.h"

#include <algorithm>
#include <csignal>
#include <numeric>
#include <pthread.h>

namespace mtrun {

static uint64_t alignUp(uint64_t bytes) { return (bytes + 63) & ~uint64_t(63); }

BatchStream::BatchStream(const mtrun_dataset &data, const Binding &binding, const StreamOptions &options)
    : data_(data), binding_(binding), options_(options) {
  steps_ = options.dropRemainder ? data.size / options.batch : (data.size - 1) / options.batch + 1;
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
  for (uint64_t ready; (ready = produced_.load(std::memory_order_acquire)) <= taken_;)
    produced_.wait(ready, std::memory_order_acquire);
  return slots_[taken_++ % kSlots];
}

void BatchStream::produce() {
  uint64_t produced = 0;
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    if (options_.shuffle)
      epochOrder(options_.seed, epoch, data_.size, order_.data());
    for (int64_t step = 0; step < steps_; ++step) {
      for (uint64_t released; produced - (released = released_.load(std::memory_order_acquire)) == kSlots;)
        released_.wait(released, std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed))
        return;
      fill(slots_[produced % kSlots], step);
      produced_.store(++produced, std::memory_order_release);
      produced_.notify_one();
    }
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
