// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Stamps.h"

#include <algorithm>
#include <cmath>

namespace mtrun::cuda {

Stamps::~Stamps() {
  for (size_t d = 0; d < sides_.size(); ++d) {
    (void)group_.makeCurrent(static_cast<int>(d));
    for (Event event : sides_[d].events)
      (void)group_.driver().eventDestroy(event);
  }
}

Status Stamps::make(size_t operations) {
  sides_.resize(static_cast<size_t>(group_.devices()));
  for (size_t d = 0; d < sides_.size(); ++d) {
    if (!group_.makeCurrent(static_cast<int>(d)))
      return group_.health();
    sides_[d].stamps.reserve(operations);
    for (size_t i = 0; i < 2 * operations + 2; ++i) {
      Event event = nullptr;
      if (Result result = group_.driver().eventCreate(&event, 0); result != success)
        return failure(group_.driver(), result,
                       group_.device(static_cast<int>(d)).gpu->title() + ": cannot make an event");
      sides_[d].events.push_back(event);
    }
  }
  return {};
}

Result Stamps::record(int device, size_t event, Stream stream, bool inGraph) {
  Side &side = sides_[static_cast<size_t>(device)];
  return group_.driver().eventRecordWithFlags(side.events[event], stream, inGraph ? eventRecordExternal : 0);
}

Result Stamps::before(int device, bool onCommunication, bool isCopy) {
  Side &side = sides_[static_cast<size_t>(device)];
  SpanKind kind = isCopy ? SpanKind::Transfer : allReduce_ ? SpanKind::Sum : SpanKind::Kernel;
  side.stamps.push_back({onCommunication, kind, step_, 2 + 2 * side.stamps.size()});
  const CudaDevice &on = group_.device(device);
  return record(device, side.stamps.back().events, onCommunication ? on.links : on.stream, true);
}

Result Stamps::after(int device) {
  const Stamp &stamp = sides_[static_cast<size_t>(device)].stamps.back();
  const CudaDevice &on = group_.device(device);
  return record(device, stamp.events + 1, stamp.onCommunication ? on.links : on.stream, true);
}

Result Stamps::beforeInputs(int device, int64_t now) {
  sides_[static_cast<size_t>(device)].origin = now;
  return record(device, 0, group_.device(device).inputs, false);
}

Result Stamps::afterInputs(int device) { return record(device, 1, group_.device(device).inputs, false); }

Result Stamps::timeOf(const Side &side, size_t event, int64_t &time) const {
  float milliseconds = 0;
  Result result = group_.driver().eventElapsedTime(&milliseconds, side.events[0], side.events[event]);
  time = side.origin + std::llround(static_cast<double>(milliseconds) * 1e6);
  return result;
}

Result Stamps::take(Tracer &tracer, int64_t &end) {
  for (size_t d = 0; d < sides_.size(); ++d) {
    const Side &side = sides_[d];
    size_t tracks = tracer.tracks().size() / sides_.size();
    for (size_t t = 0; t < tracks; ++t) {
      Track &track = tracer.track(d * tracks + t);
      int64_t last = side.origin;
      track.begin(last);
      auto add = [&](SpanKind kind, uint32_t step, size_t events) {
        int64_t from = 0, to = 0;
        Result result = timeOf(side, events, from);
        if (result == success)
          result = timeOf(side, events + 1, to);
        from = std::max(from, last);
        to = std::max(to, from);
        if (from > last)
          track.mark(SpanKind::Wait, step, from);
        track.mark(kind, step, to);
        last = to;
        return result;
      };
      if (t == 0)
        if (Result result = add(SpanKind::Transfer, copies_, 0); result != success)
          return result;
      for (const Stamp &stamp : side.stamps)
        if (stamp.onCommunication == (t == 1) || tracks == 1)
          if (Result result = add(stamp.kind, stamp.step, stamp.events); result != success)
            return result;
      end = std::max(end, last);
    }
  }
  return success;
}

} // namespace mtrun::cuda
