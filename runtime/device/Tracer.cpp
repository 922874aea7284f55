// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Tracer.h"

#include <string>

namespace mtrun {

constexpr uint64_t maxSpanBytes = uint64_t{1} << 30;

Status Tracer::make(const TracerOptions &options, size_t workers, size_t steps, size_t marks,
                    std::unique_ptr<Tracer> &tracer) {
  if (options.first < 0 || options.last < options.first || (options.first == 0) != (options.last == 0))
    return {MT_INVALID, "expected steps first to last of 1 or more to trace, or 0 and 0 for none, found " +
                            std::to_string(options.first) + " to " + std::to_string(options.last)};
  uint64_t runs = options.first ? static_cast<uint64_t>(options.last - options.first) + 1 : 0;
  // no overflow: at most 2^20 workers and 2^25 marks
  uint64_t each = workers * marks * sizeof(Span) + sizeof(RecordedRun);
  if (runs > maxSpanBytes / each)
    return {MT_INVALID, "expected a trace of at most " + std::to_string(maxSpanBytes / each) +
                            " steps, which take a gigabyte, found " + std::to_string(runs)};
  tracer.reset(new Tracer(options));
  tracer->steps_ = steps;
  tracer->runs_.resize(runs);
  tracer->tracks_ = std::vector<Track>(workers);
  for (Track &track : tracer->tracks_) {
    track.sums_ = std::make_unique<int64_t[]>(steps * spanKinds);
    track.room_ = runs * marks;
    track.spans_ = std::make_unique<Span[]>(track.room_); // zeroed, so that the pages exist before recording
  }
  return {};
}

bool Tracer::beginRun(int64_t samples) {
  ++seen_;
  keep_ = keeps(seen_);
  if (!keep_ && !options_.sums)
    return false;
  for (Track &track : tracks_) {
    track.keep_ = keep_;
    track.run_ = static_cast<uint32_t>(kept_);
  }
  current_ = {seen_, samples, std::max(nanoseconds(), lastEnd_), 0};
  for (Track &track : tracks_)
    track.begin(current_.begin); // a thread that is late may have no part of the run
  if (recorded_)
    betweenTime_ += current_.begin - lastEnd_;
  return true;
}

void Tracer::endRun(int64_t atLeast) {
  current_.end = lastEnd_ = std::max(nanoseconds(), atLeast);
  for (size_t t = 0; t < tracks_.size(); t += tracksPerThread_)
    idleTime_ += tracks_[t].first_ - current_.begin + (current_.end - tracks_[t].last_);
  runTime_ += current_.end - current_.begin;
  samples_ += current_.samples;
  ++recorded_;
  if (keep_)
    runs_[kept_++] = current_;
}

} // namespace mtrun
