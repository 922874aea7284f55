// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a group do while a program runs, by the clock: sums for every step of the program, and single
// spans of chosen runs. All memory is allocated before; recording takes no locks, and each thread writes its own track.
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

// Nanoseconds of the steady clock.
inline int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Span {
  int64_t begin, end;
  uint32_t run;  // index into Tracer::runs
  uint32_t step; // of the program
  SpanKind kind;
};

// A run whose spans are kept.
struct RecordedRun {
  int64_t number; // from 1
  int64_t samples;
  int64_t begin, end;
};

// One thread's record. Marks follow one another without gaps: a mark says what the time since the last one was spent
// on.
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
  // Nanoseconds of all recorded runs that `step` took as `kind`.
  int64_t sum(uint32_t step, SpanKind kind) const { return sums_[step * spanKinds + static_cast<size_t>(kind)]; }

private:
  friend class Tracer;
  int64_t first_ = 0, last_ = 0; // of the run
  std::unique_ptr<int64_t[]> sums_;
  std::unique_ptr<Span[]> spans_;
  size_t room_ = 0, used_ = 0;
  uint32_t run_ = 0;
  bool keep_ = false;
};

// A step on a thread's track; no track: nothing is traced.
struct TrackedStep {
  Track *track;
  uint32_t step;
  void mark(SpanKind kind) const {
    if (track)
      track->mark(kind, step);
  }
};

struct TracerOptions {
  int64_t first = 0, last = 0; // runs, from 1, whose spans are kept; 0, 0: none
  bool sums = false;           // of all runs; else of the runs first .. last
  // FLOPs and bytes a second that the devices can do at most, for whoever reads the record; 0: not known.
  double peakFlops = 0, peakBytes = 0;
};

class Tracer {
public:
  // For a program of `steps` steps on `workers` threads, each of which marks at most `marks` spans a run. MT_INVALID:
  // spans take more than a gigabyte.
  static Status make(const TracerOptions &options, size_t workers, size_t steps, size_t marks,
                     std::unique_ptr<Tracer> &tracer);

  // Before and after a run, on the thread that asks for it. False: this run is not recorded.
  bool beginRun(int64_t samples);
  // `atLeast`: when the last mark was, of devices with clocks of their own.
  void endRun(int64_t atLeast = 0);
  bool recordsNext() const { return options_.sums || keeps(seen_ + 1); }
  // Not before the run under way.
  int64_t now() const { return std::max(nanoseconds(), current_.begin); }

  Track &track(size_t worker) { return tracks_[worker]; }
  std::span<const Track> tracks() const { return tracks_; }
  std::span<const RecordedRun> runs() const { return {runs_.data(), kept_}; }

  const TracerOptions &options() const { return options_; }
  size_t steps() const { return steps_; }              // of the program, as make() was told
  void setBeside(size_t tracks) { beside_ = tracks; }  // of so many tracks the first one counts as idle
  int64_t seen() const { return seen_; }               // runs so far, recorded or not
  int64_t recorded() const { return recorded_; }       // runs
  int64_t samples() const { return samples_; }         // of the recorded runs
  int64_t runTime() const { return runTime_; }         // nanoseconds of the recorded runs
  int64_t betweenTime() const { return betweenTime_; } // between recorded runs that follow each other
  // Nanoseconds that threads were asleep or at the end of a run, waiting for the others: all threads together.
  int64_t idleTime() const { return idleTime_; }

private:
  explicit Tracer(const TracerOptions &options) : options_(options) {}
  bool keeps(int64_t run) const { return options_.first && run >= options_.first && run <= options_.last; }

  TracerOptions options_;
  size_t steps_ = 0, beside_ = 1;
  std::vector<Track> tracks_;
  std::vector<RecordedRun> runs_;
  size_t kept_ = 0;
  RecordedRun current_ = {};
  bool keep_ = false;
  int64_t seen_ = 0, recorded_ = 0, samples_ = 0, runTime_ = 0, betweenTime_ = 0, idleTime_ = 0, lastEnd_ = 0;
};

} // namespace mtrun
