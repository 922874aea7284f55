// SPDX-License-Identifier: Apache-2.0
//
// Converts the indices and offsets of a plan's program to pointers, for every device of a group.
#pragma once

#include "runtime/session/Memory.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// A program that is ready to run, and the data that the session reads after each run.
struct Executable {
  const mt::plan::Program *program = nullptr;
  BoundProgram bound;
  // The number of sums of each metric. bound.readBacks has, metric by metric, the sums and then the weight; the last
  // element is the learning rate if the program computes it.
  std::vector<size_t> metricSums;
  std::vector<const void *> tensors; // arguments of the steps of a launch, in signature order
  std::vector<StepArguments> runs;   // the steps of a launch

  const float *metricValue(size_t metric) const { return static_cast<const float *>(bound.readBacks[2 * metric].host); }
  float metricWeight(size_t metric) const { return *static_cast<const float *>(bound.readBacks[2 * metric + 1].host); }
  bool computesRate() const { return bound.readBacks.size() > 2 * metricSums.size(); }
  float learningRate() const { return *static_cast<const float *>(bound.readBacks.back().host); }
};

// `layout` must outlive the result. MT_INVALID: the program cannot run in micro-batches.
Status bindProgram(const Plan &plan, const mt::plan::Program &program, const DeviceGroup &group,
                   const DeviceLayout &layout, const MemoryMap &memory, Executable &result);

} // namespace mtrun
