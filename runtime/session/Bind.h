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
  std::vector<bool> areDoubles;      // of each of bound.readBacks: whether its numbers are F64, and not F32
  std::vector<const void *> tensors; // arguments of the steps of a launch, in signature order
  std::vector<StepArguments> runs;   // the steps of a launch

  // The sum of this index of a metric.
  double metricValue(size_t metric, size_t index) const { return number(2 * metric, index); }
  double metricWeight(size_t metric) const { return number(2 * metric + 1, 0); }
  bool computesRate() const { return bound.readBacks.size() > 2 * metricSums.size(); }
  double learningRate() const { return number(bound.readBacks.size() - 1, 0); }

private:
  double number(size_t readBack, size_t index) const {
    const void *host = bound.readBacks[readBack].host;
    if (areDoubles[readBack])
      return static_cast<const double *>(host)[index];
    return static_cast<double>(static_cast<const float *>(host)[index]);
  }
};

// `layout` must outlive the result. MT_INVALID: the program cannot run in micro-batches.
Status bindProgram(const Plan &plan, const mt::plan::Program &program, const DeviceGroup &group,
                   const DeviceLayout &layout, const MemoryMap &memory, Executable &result);

} // namespace mtrun
