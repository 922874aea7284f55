// SPDX-License-Identifier: Apache-2.0
//
// The order of a program's steps if a thread of its own runs the all-reduces and gathers between processes: launches
// that do not access the memory of an all-reduce run meanwhile, and updates of variables that need it are deferred. As
// a rule no variable is written before the last all-reduce has ended, so that after the loss of a process the variables
// of the others are of one step. The order depends only on the memory ranges that the steps access.
#pragma once

#include "runtime/device/BoundProgram.h"
#include "runtime/support/overlap.h"

#include <functional>
#include <vector>

namespace mtrun {

struct OrderedStep {
  uint32_t step;  // index into DeviceProgram::steps
  bool waits;     // a barrier of all threads comes first
  uint32_t needs; // number of all-reduces of the other thread that must have ended
  bool inPlace;   // for an all-reduce: the next step needs it, so the other thread does not run it
};

// Returns the memory that a step accesses: buffers of a launch, partial sum and result of an all-reduce, or what a
// gather completes.
using RangesOf = std::function<std::vector<Range>(const BoundStep &step)>;

struct ExchangeOrder {
  std::vector<OrderedStep> steps;
  uint32_t posted = 0; // number of all-reduces that the other thread has had after these steps
  // Steps that write variables before the last all-reduce has ended, because later steps need their results.
  std::vector<uint32_t> early;
};

// `commits`: no variable is written before the last all-reduce has ended. Otherwise each is written as soon as its
// gradient is complete, which a divided optimizer needs.
ExchangeOrder overlapExchanges(const DeviceProgram &program, const RangesOf &rangesOf, bool commits = true);

// The same for the steps of a phase, in its last micro-batch. `posted`: what the other thread has had before them.
ExchangeOrder overlapExchanges(const DeviceProgram &program, const BoundPhase &phase, const RangesOf &rangesOf,
                               bool commits, uint32_t posted);

} // namespace mtrun
