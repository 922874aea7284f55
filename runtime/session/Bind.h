// SPDX-License-Identifier: Apache-2.0
//
// From a plan's tables to pointers: a program resolved for every device of a group.
#pragma once

#include "runtime/session/Memory.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// A program that is ready to run, and what the session reads after it.
struct Executable {
  const mt::plan::Program *program = nullptr;
  BoundProgram bound;
  // How many numbers a metric has: bound.readBacks are its value(s), then its weight, metric after metric; last, if the
  // program computes it, the learning rate.
  std::vector<size_t> metricSums;
  std::vector<const void *> tensors; // room for the pointers of a launch's steps, each in signature order
  std::vector<StepArguments> runs;   // room for a launch's steps

  const float *metricValue(size_t metric) const { return static_cast<const float *>(bound.readBacks[2 * metric].host); }
  float metricWeight(size_t metric) const { return *static_cast<const float *>(bound.readBacks[2 * metric + 1].host); }
  bool computesRate() const { return bound.readBacks.size() > 2 * metricSums.size(); }
  float learningRate() const { return *static_cast<const float *>(bound.readBacks.back().host); }
};

// `layout` must outlive the result. MT_INVALID: the program cannot run in micro-batches.
Status bindProgram(const Plan &plan, const mt::plan::Program &program, const DeviceGroup &group,
                   const DeviceLayout &layout, const MemoryMap &memory, Executable &result);

} // namespace mtrun
