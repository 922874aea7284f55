// SPDX-License-Identifier: Apache-2.0
//
// Records the activity of a group's threads: the total time of every step of the program, and single spans of chosen
// runs. Memory is allocated in advance; recording takes no locks, and each thread writes its own track.
#pragma once

#include "runtime/support/status.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mtrun {

// In the order of mtrun_span_kind.
enum class SpanKind : uint8_t { Kernel, Wait, Transfer, Sum };
inline constexpr size_t spanKinds = 4;

// Returns the nanoseconds of the steady clock.
inline int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Span {
  int64_t begin, end;
  uint32_t run;  // index into Tracer::runs
  uint32_t step; // index of the program's step
  SpanKind kind;
};

// A run whose spans are recorded.
struct RecordedRun {
  int64_t number; // number of the run, from 1
  int64_t samples;
  int64_t begin, end;
};

// The record of one thread. Spans are contiguous: mark() assigns the time since the last mark to a step and a kind.
class alignas(64) Track {
public:
  void begin(int64_t now) { first_ = last_ = now; }
  void begin() { begin(nanoseconds()); }
  void mark(SpanKind kind, uint32_t step) { mark(kind, step, nanoseconds()); }
  void mark(SpanKind kind, uint32_t step, int64_t now) {
    sums_[step * spanKinds + static_cast<size_t>(kind)] += now - last_;
    if (keep_ && used_ < room_)
      spans_[used_++] = {last_, now, run_, step, kind};
    last_ = now;
  }

  std::span<const Span> spans() const { return {spans_.get(), used_}; }
  // Returns the nanoseconds that `step` spent on `kind` in all recorded runs.
  int64_t sum(uint32_t step, SpanKind kind) const { return sums_[step * spanKinds + static_cast<size_t>(kind)]; }

private:
  friend class Tracer;
  int64_t first_ = 0, last_ = 0; // times of the current run
  std::unique_ptr<int64_t[]> sums_;
  std::unique_ptr<Span[]> spans_;
  size_t room_ = 0, used_ = 0;
  uint32_t run_ = 0;
  bool keep_ = false;
};

// A step on a thread's track. A null track records nothing.
struct TrackedStep {
  Track *track;
  uint32_t step;
  void mark(SpanKind kind) const {
    if (track)
      track->mark(kind, step);
  }
};

struct TracerOptions {
  int64_t first = 0, last = 0; // runs (from 1) whose spans are recorded; 0, 0: none
  bool sums = false;           // sum times over all runs; otherwise over the runs first .. last
  // Peak rates of the devices in FLOPs and bytes per second, for readers of the trace; 0: unknown.
  double peakFlops = 0, peakBytes = 0;
};

class Tracer {
public:
  // Makes a tracer for a program of `steps` steps on `workers` threads. Each thread marks at most `marks` spans per
  // run. MT_INVALID: the spans need more than a gigabyte.
  static Status make(const TracerOptions &options, size_t workers, size_t steps, size_t marks,
                     std::unique_ptr<Tracer> &tracer);

  // Must be called before and after a run, by the calling thread of the run. False: this run is not recorded.
  bool beginRun(int64_t samples);
  // `atLeast`: time of the last mark, for devices with separate clocks.
  void endRun(int64_t atLeast = 0);
  bool recordsNext() const { return options_.sums || keeps(seen_ + 1); }
  // Returns the current time, at least the begin of the current run.
  int64_t now() const { return std::max(nanoseconds(), current_.begin); }

  Track &track(size_t worker) { return tracks_[worker]; }
  std::span<const Track> tracks() const { return tracks_; }
  std::span<const RecordedRun> runs() const { return {runs_.data(), kept_}; }

  const TracerOptions &options() const { return options_; }
  size_t steps() const { return steps_; } // number of steps, as passed to make()
  // Only the first of each `tracks` tracks counts for idle time.
  void setTracksPerThread(size_t tracks) { tracksPerThread_ = tracks; }
  int64_t seen() const { return seen_; }               // number of runs so far, recorded or not
  int64_t recorded() const { return recorded_; }       // number of recorded runs
  int64_t samples() const { return samples_; }         // samples of the recorded runs
  int64_t runTime() const { return runTime_; }         // nanoseconds of the recorded runs
  int64_t betweenTime() const { return betweenTime_; } // nanoseconds between consecutive recorded runs
  // Returns the nanoseconds that all threads together slept or waited for other threads at the end of a run.
  int64_t idleTime() const { return idleTime_; }

private:
  explicit Tracer(const TracerOptions &options) : options_(options) {}
  bool keeps(int64_t run) const { return options_.first && run >= options_.first && run <= options_.last; }

  TracerOptions options_;
  size_t steps_ = 0, tracksPerThread_ = 1;
  std::vector<Track> tracks_;
  std::vector<RecordedRun> runs_;
  size_t kept_ = 0;
  RecordedRun current_ = {};
  bool keep_ = false;
  int64_t seen_ = 0, recorded_ = 0, samples_ = 0, runTime_ = 0, betweenTime_ = 0, idleTime_ = 0, lastEnd_ = 0;
};

} // namespace mtrun
