// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/BatchStream.h"
#include "runtime/data/Order.h"
#include "runtime/support/blocked_signals.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace mtrun {

// The queue has slots for a batch in use, a ready batch and a batch being filled. Small batches get more slots: devices
// that spin keep the CPUs busy, so a sleeping thread may wake up some milliseconds later, after several steps.
constexpr uint64_t minSlots = 3, maxSlots = 16, queueBytes = 4 << 20;

static uint64_t alignUp(uint64_t bytes) { return (bytes + 63) & ~uint64_t(63); }

// Returns the number of batches in a pass over the data.
static int64_t passSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options) {
  return options.dropRemainder ? data.size / batch : (data.size - 1) / batch + 1;
}

int64_t epochSteps(const mtrun_dataset &data, int64_t batch, const StreamOptions &options) {
  if (options.stepsPerEpoch || data.size < 0)
    return options.stepsPerEpoch;
  return passSteps(data, batch, options);
}

BatchStream::BatchStream(const mtrun_dataset &data, const Binding &binding, const StreamOptions &options)
    : data_(data), binding_(binding), options_(options), finite_(!options.allowNan && !data.allowNan),
      order_(options.shuffle ? data.size : 0, options.window),
      nextOrder_(options.shuffle ? data.size : 0, options.window) {
  bool known = data.size >= 0;
  for (size_t c = 0; c < data.columns.size(); ++c)
    if (std::find(binding_.columns.begin(), binding_.columns.end(), static_cast<int>(c)) != binding_.columns.end())
      sampleBytes_ += static_cast<int64_t>(data.columns[c].field.stride);
  passSteps_ = known ? passSteps(data, options.batch, options) : 0;
  steps_ = epochSteps(data, options.batch, options);
  if (options.shuffle && options.augment && data.groupByLength && data.plan->program("train_step"))
    groups_ = std::make_unique<LengthGroups>(data, options.batch);
  if (options.hashed.begin < options.hashed.end)
    digests_ = std::make_unique<RowDigests>(data, binding_, options.hashed);
  index_ = options.epoch * steps_ + options.position;
  allocate(static_cast<uint64_t>(known ? std::min(options.batch, data.size) : options.batch));

  // Decoding a picture is slow and takes about the same time for each, so several threads share the work. Copying a
  // batch from memory is faster than waking a second thread.
  bool onDemand = std::any_of(binding_.columns.begin(), binding_.columns.end(),
                              [&](int column) { return column >= 0 && data.columns[size_t(column)].made(); });
  int threads = options.readers ? options.readers : onDemand || data.source ? data.readers : 1;
  partRows_ = onDemand ? 1 : data.source ? (options.batch + threads - 1) / threads : options.batch;
  start(known ? threads : 1);
}

// Allocates `rows` samples per slot for each column that the program uses.
void BatchStream::allocate(uint64_t rows) {
  uint64_t slotBytes = 0;
  auto stagedBytes = [&](const Column &column) {
    return data_.source && !column.plain() ? alignUp(rows * column.field.stride) : 0;
  };
  for (int c : binding_.columns)
    if (c >= 0)
      slotBytes += alignUp(rows * data_.columns[size_t(c)].rowBytes) + stagedBytes(data_.columns[size_t(c)]);
  // A caller that holds `held` batches takes up to half as many new batches at once: the queue gets slots for both.
  auto held = static_cast<uint64_t>(options_.held), more = held > 1 ? held - 1 + held / 2 - 1 : 0;
  slots_ = std::vector<Slot>(more + std::clamp(queueBytes / std::max<uint64_t>(slotBytes, 1), minSlots, maxSlots));
  storage_ = std::make_unique<std::byte[]>(slotBytes * slots_.size() + 64);
  auto *place = reinterpret_cast<std::byte *>(alignUp(reinterpret_cast<uintptr_t>(storage_.get())));
  for (Slot &slot : slots_) {
    slot.samples.resize(rows);
    slot.batch.damaged.resize(data_.keepDamaged ? rows : 0);
    slot.batch.digests.resize(digests_ ? rows : 0);
    slot.staged.resize(data_.columns.size());
    for (int c : binding_.columns) {
      slot.batch.tensors.push_back(c >= 0 ? place : nullptr);
      if (c < 0)
        continue;
      const Column &column = data_.columns[size_t(c)];
      place += alignUp(rows * column.rowBytes);
      if (uint64_t bytes = stagedBytes(column)) {
        slot.staged[size_t(c)] = place;
        place += bytes;
      }
    }
  }
}

void BatchStream::start(int threads) {
  BlockedSignals blocked;
  try {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this] { produce(); });
  } catch (...) {
    stop();
    throw;
  }
}

void BatchStream::stop() {
  stop_.store(true, std::memory_order_relaxed);
  released_.fetch_add(slots_.size(), std::memory_order_release); // wakes threads that wait for a free slot
  released_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

BatchStream::~BatchStream() { stop(); }

const Batch &BatchStream::next() {
  bool ready = this->ready();
  auto held = static_cast<uint64_t>(options_.held);
  if (taken_ >= held)
    released_.store(taken_ - held + 1, std::memory_order_release);
  // Waking a thread is expensive and an awake thread fills many slots, so threads are woken only if no batch is ready
  // or half of the slots are free.
  if (taken_ > wokenAt_ && (!ready || taken_ - wokenAt_ >= slots_.size() / 2)) {
    wokenAt_ = taken_;
    released_.notify_all();
  }
  if (!ready) {
    auto start = std::chrono::steady_clock::now();
    for (uint64_t there; (there = produced_.load(std::memory_order_acquire)) <= taken_;)
      produced_.wait(there, std::memory_order_acquire);
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return slots_[taken_++ % slots_.size()].batch;
}

void BatchStream::produce() {
  if (data_.size < 0)
    return produceInOrder();
  for (Part part; claim(part); finish(part))
    fill(part);
}

bool BatchStream::claim(Part &part) {
  std::unique_lock lock(mutex_);
  while (!stop_.load(std::memory_order_relaxed)) {
    Slot *slot = opened_ > 0 ? &slots_[(opened_ - 1) % slots_.size()] : nullptr;
    if (slot && slot->claimed < slot->end) {
      part = {slot, slot->claimed, std::min(slot->claimed + partRows_, slot->end)};
      slot->claimed = part.end;
      return true;
    }
    if (index_ / steps_ >= options_.epochs)
      return false;
    uint64_t released = released_.load(std::memory_order_acquire);
    if (static_cast<int64_t>(opened_ - released) < static_cast<int64_t>(slots_.size())) { // negative after stop()
      open(slots_[opened_++ % slots_.size()]);
      publish(); // a short batch may have no rows of this process
      continue;
    }
    lock.unlock();
    released_.wait(released, std::memory_order_acquire);
    lock.lock();
  }
  return false;
}

// Begins the next batch in a free slot. A part of the next pass's order is drawn with each batch, so that no batch
// waits for it.
void BatchStream::open(Slot &slot) {
  int64_t pass = index_ / passSteps_, first = index_ % passSteps_ * options_.batch;
  ++index_;
  slot.pass = pass;
  slot.batch.rows = std::min(options_.batch, data_.size - first);
  slot.batch.last = index_ % steps_ == 0;
  slot.batch.status = Status();
  std::fill(slot.batch.damaged.begin(), slot.batch.damaged.end(), 0);
  slot.batch.begin = 0;
  slot.batch.end = slot.batch.rows;
  if (!data_.source) // a callback decides what it gives
    takeOwnRows(slot);
  slot.begin = slot.batch.begin;
  slot.end = slot.batch.end;
  slot.claimed = slot.begin;
  slot.filled = 0;
  slot.failed = -1;
  // Converts an index in the dataset to an index in its columns.
  auto place = [&](auto &&indexOf) {
    for (int64_t row = 0; row < slot.batch.rows; ++row)
      slot.samples[size_t(row)] = data_.sample(indexOf(row));
  };
  if (!options_.shuffle)
    return place([&](int64_t row) { return first + row; });
  if (order_.epoch() != pass) {
    if (nextOrder_.epoch() != pass)
      nextOrder_.begin(options_.seed, pass);
    std::swap(order_, nextOrder_);
    nextOrder_.begin(options_.seed, pass + 1);
    if (groups_)
      groups_->group(options_.seed, pass, order_.order());
  }
  const std::vector<int64_t> &order = groups_ ? groups_->order() : order_.order();
  place([&](int64_t row) { return order[static_cast<size_t>(first + row)]; });
  nextOrder_.advance(options_.batch);
}

void *BatchStream::target(const Slot &slot, size_t entry, int64_t row) const {
  const Column &column = data_.columns[size_t(binding_.columns[entry])];
  return static_cast<std::byte *>(slot.batch.tensors[entry]) + static_cast<uint64_t>(row) * column.rowBytes;
}

void BatchStream::fill(const Part &part) {
  Slot &slot = *part.slot;
  Draw draw = {options_.augment, options_.seed, slot.pass, &read_};
  const int64_t *samples = slot.samples.data() + part.begin;
  Status status;
  if (data_.source)
    status = fillFromSource(part);
  for (size_t i = 0; i < binding_.columns.size() && status.ok(); ++i) {
    if (binding_.columns[i] < 0)
      continue;
    const Column &column = data_.columns[static_cast<size_t>(binding_.columns[i])];
    if (column.made()) { // a part has one row
      status = column.make(*samples, draw, target(slot, i, part.begin));
      if (!status.ok() && data_.keepDamaged && status.code() != MT_NO_MEMORY) {
        memset(target(slot, i, part.begin), 0, column.rowBytes);
        slot.batch.damaged[size_t(part.begin)] = 1;
        status = Status();
      }
    } else if (!data_.source) {
      column.gather(samples, part.end - part.begin, target(slot, i, part.begin));
      read_.bytes += (part.end - part.begin) * static_cast<int64_t>(column.field.stride);
      for (int64_t row = part.begin; row < part.end && finite_ && column.mayBeNan() && status.ok(); ++row)
        status = column.checkFinite(target(slot, i, row), slot.samples[size_t(row)]);
    }
  }
  if (status.ok() && digests_)
    digests_->hash(slot.batch.tensors, slot.samples, part.begin, part.end, slot.batch.digests);
  if (status.ok())
    return;
  std::lock_guard lock(mutex_);
  if (slot.failed < 0 || part.begin < slot.failed) {
    slot.failed = part.begin;
    slot.batch.status = std::move(status);
  }
}

void BatchStream::finish(const Part &part) {
  std::lock_guard lock(mutex_);
  part.slot->filled += part.end - part.begin;
  publish();
}

void BatchStream::publish() {
  uint64_t before = produced_.load(std::memory_order_relaxed), ready = before;
  auto slot = [&] { return &slots_[ready % slots_.size()]; };
  while (ready < opened_ && slot()->filled == slot()->end - slot()->begin)
    ++ready;
  if (ready == before)
    return;
  produced_.store(ready, std::memory_order_release);
  produced_.notify_one();
}

} // namespace mtrun
