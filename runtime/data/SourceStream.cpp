// SPDX-License-Identifier: Apache-2.0
//
// Batches from the caller's callback: any samples if their number is known, else the next samples in order.
#include "runtime/data/BatchStream.h"

#include <algorithm>

namespace mtrun {

// Requests samples from the callback for the rows from `begin`. Samples that need no conversion are written to the
// batch directly.
Status BatchStream::ask(Slot &slot, int64_t begin, mtrun_request request, int64_t &rows, bool &ownOnly) {
  static thread_local std::vector<void *> fields;
  fields.assign(data_.columns.size(), nullptr);
  for (size_t i = 0; i < binding_.columns.size(); ++i)
    if (int c = binding_.columns[i]; c >= 0) {
      const Column &column = data_.columns[size_t(c)];
      fields[size_t(c)] = column.plain() ? target(slot, i, begin)
                                         : slot.staged[size_t(c)] + static_cast<uint64_t>(begin) * column.field.stride;
    }
  request.pass = options_.augment ? request.pass : 0;
  request.fields = fields.data();
  int64_t own = std::clamp<int64_t>(options_.firstRow - begin, 0, request.rows);
  int64_t end = options_.needed > begin + request.rows - options_.firstRow
                    ? request.rows
                    : std::clamp<int64_t>(options_.firstRow + options_.needed - begin, own, request.rows);
  request.own_first = own;
  request.own_rows = end - own;
  Status status = data_.source->read(request, rows);
  ownOnly = request.own_only != 0;
  if (!status.ok() || !ownOnly) {
    read_.bytes += status.ok() ? rows * sampleBytes_ : 0;
    return status;
  }
  own = std::min(own, rows);
  end = std::min(end, rows);
  read_.bytes += (end - own) * sampleBytes_;
  return status;
}

// Converts samples for the rows from `begin`. `first`: the number of the first sample, if samples come in order; -1:
// the slot has the number of each sample.
Status BatchStream::convert(const Slot &slot, int64_t begin, int64_t rows, int64_t first) const {
  for (size_t i = 0; i < binding_.columns.size(); ++i) {
    int c = binding_.columns[i];
    if (c < 0)
      continue;
    const Column &column = data_.columns[size_t(c)];
    bool whole = column.limited(), finite = finite_ && column.mayBeNan();
    for (int64_t row = begin; row < begin + rows && (whole || finite || !column.plain()); ++row) {
      int64_t sample = first < 0 ? slot.samples[size_t(row)] : first + row - begin;
      void *out = target(slot, i, row);
      const auto *from = column.plain() ? static_cast<const uint8_t *>(out)
                                        : reinterpret_cast<const uint8_t *>(slot.staged[size_t(c)]) +
                                              static_cast<uint64_t>(row) * column.field.stride;
      if (whole)
        if (Status s = column.checkIntegers(from, sample); !s.ok())
          return s;
      if (!column.plain())
        column.convert(from, out);
      if (finite)
        if (Status s = column.checkFinite(out, sample); !s.ok())
          return s;
    }
  }
  return {};
}

Status BatchStream::fillFromSource(const Part &part) {
  Slot &slot = *part.slot;
  int64_t rows = part.end - part.begin;
  mtrun_request request = {};
  request.pass = slot.pass;
  request.samples = slot.samples.data() + part.begin;
  request.rows = rows;
  bool ownOnly = false;
  if (Status s = ask(slot, part.begin, request, rows, ownOnly); !s.ok())
    return s;
  if (!ownOnly)
    return convert(slot, part.begin, rows, -1);
  int64_t begin, end;
  {
    std::lock_guard lock(mutex_);
    takeOwnRows(slot);
    begin = std::clamp(slot.batch.begin, part.begin, part.end);
    end = std::clamp(slot.batch.end, begin, part.end);
  }
  return convert(slot, begin, end - begin, -1);
}

// Leaves the rows of other processes out of a batch.
void BatchStream::takeOwnRows(Slot &slot) const {
  slot.batch.begin = std::min(options_.firstRow, slot.batch.rows);
  slot.batch.end =
      options_.needed > slot.batch.rows - slot.batch.begin ? slot.batch.rows : slot.batch.begin + options_.needed;
}

namespace {

// The position of a callback of unknown length.
struct Place {
  int64_t pass = 0, first = 0; // first: number of the next sample
  int64_t epoch = 0, steps = 0;
};

} // namespace

// Runs in a single thread, in order. Only the request for the next batch shows whether a batch was the last of its
// pass, so each batch is delivered after that request.
void BatchStream::produceInOrder() {
  Place place;
  uint64_t delivered = 0; // batches
  Slot *held = nullptr;
  bool passes = options_.stepsPerEpoch == 0; // an epoch is a pass
  auto give = [&](Slot &slot, bool last) {
    slot.batch.last = last;
    place.epoch += last;
    place.steps = last ? 0 : place.steps + 1;
    produced_.store(++delivered, std::memory_order_release);
    produced_.notify_one();
    held = nullptr;
  };
  // A resumed run requests its completed steps again and drops them.
  int64_t dropped = options_.epoch * options_.stepsPerEpoch + options_.position;
  place.pass = passes ? options_.epoch : 0;
  place.epoch = options_.epoch;
  place.steps = options_.position;

  while (place.epoch < options_.epochs && !stop_.load(std::memory_order_relaxed)) {
    // The slot after the held one.
    uint64_t index = delivered + (held != nullptr), released = released_.load(std::memory_order_acquire);
    if (static_cast<int64_t>(index - released) >= static_cast<int64_t>(slots_.size())) {
      released_.wait(released, std::memory_order_acquire);
      continue;
    }
    Slot &slot = slots_[index % slots_.size()];
    mtrun_request request = {};
    request.pass = place.pass;
    request.first = place.first;
    request.rows = options_.batch;
    int64_t rows = 0;
    bool ownOnly = false;
    Status status = ask(slot, 0, request, rows, ownOnly);
    slot.batch.rows = slot.batch.end = rows;
    slot.batch.begin = 0;
    if (ownOnly)
      takeOwnRows(slot);
    if (status.ok() && slot.batch.end > slot.batch.begin && dropped == 0)
      status = convert(slot, slot.batch.begin, slot.batch.end - slot.batch.begin, place.first + slot.batch.begin);
    bool ends = rows < options_.batch, used = rows > 0 && !(ends && options_.dropRemainder);
    if (status.ok() && ends && place.first == 0 && !used)
      status = {MT_INVALID, "the source: expected " + std::to_string(options_.dropRemainder ? options_.batch : 1) +
                                " samples or more in pass " + std::to_string(place.pass) + ", found " +
                                std::to_string(rows)};
    slot.batch.rows = used ? rows : 0;
    slot.batch.status = std::move(status);
    place.first = ends ? 0 : place.first + rows;
    place.pass += ends;
    if (!slot.batch.status.ok()) {
      if (held)
        give(*held, false);
      return give(slot, false);
    }
    if (dropped > 0) {
      dropped -= used;
      if (!passes || !ends)
        continue;
      slot.batch.rows = 0; // the epoch has no samples left
      if (dropped > 0)
        slot.batch.status = {MT_INVALID, "the source: expected the " + std::to_string(options_.position) +
                                             " steps of pass " + std::to_string(place.pass - 1) +
                                             " that the run has completed, found " +
                                             std::to_string(options_.position - dropped)};
      give(slot, true);
      if (dropped > 0)
        return;
      continue;
    }
    if (!passes) {
      if (used)
        give(slot, place.steps + 1 == options_.stepsPerEpoch);
      continue;
    }
    if (held)
      give(*held, ends && !used);
    else if (ends && !used) // a resumed epoch has no samples left
      give(slot, true);
    if (used && ends)
      give(slot, true);
    else if (used)
      held = &slot;
  }
}

} // namespace mtrun
