// SPDX-License-Identifier: Apache-2.0
//
// The times of a plan's launches in a trace of mtrun (docs/tracing.md).
#ifndef COMPILER_INSPECT_MEASURED_H
#define COMPILER_INSPECT_MEASURED_H

#include "compiler/inspect/Layers.h"
#include "runtime/support/status.h"

#include "llvm/ADT/StringRef.h"

namespace mtc {

// Times are microseconds per step, the mean over all steps of the trace; the times within a step are also the mean over
// all threads.
struct Measured {
  uint64_t steps = 0, threads = 0; // threads: on GPUs, the compute tracks
  bool gpus = false;
  double samples = 0;                            // samples per step
  double stepUs = 0;                             // duration of a step
  double waitUs = 0, transferUs = 0, idleUs = 0; // between launches; in all-reduces; before and after all launches
  double betweenUs = 0;                          // from the end of a step to the begin of the next
  std::vector<double> us;                        // of each step of the program
  double peakFlops = 0, peakBytes = 0;           // per second, of all devices; 0: not in the trace
  uint64_t groups = 1;                           // groups of devices, each of which runs every launch
  bool hasFloor() const { return peakFlops > 0 && peakBytes > 0; }
  std::string threadsText() const; // "2 threads", "1 GPU"
  // Returns the time of the work at the peak rates, and whether the bytes determine that time.
  double floorUs(const LaunchCost &cost) const;
  bool isBoundByMemory(const LaunchCost &cost) const;
};

// MT_INVALID: the text is not a trace of this program of the plan.
mtrun::Status readTrace(const mt::plan::Plan &plan, const mt::plan::Program &program, llvm::StringRef text,
                        Measured &measured);

// Returns the cost of a launch with the samples and groups of the trace.
LaunchCost measuredCost(const mt::plan::Plan &plan, const mt::plan::Step &step, const Measured &measured);
// Returns the measured time and the floor of a layer.
double layerUs(const LayerFacts &layer, const Measured &measured);
double layerFloorUs(const mt::plan::Plan &plan, const mt::plan::Program &program, const LayerFacts &layer,
                    const Measured &measured);
// Returns one line: what bounds the step, and which layer takes the most time.
std::string verdict(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::vector<LayerFacts> &layers,
                    const Measured &measured);

} // namespace mtc

#endif
