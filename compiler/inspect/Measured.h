// SPDX-License-Identifier: Apache-2.0
//
// What a trace of mtrun (docs/tracing.md) says of a plan's launches.
#ifndef COMPILER_INSPECT_MEASURED_H
#define COMPILER_INSPECT_MEASURED_H

#include "compiler/inspect/Layers.h"
#include "runtime/support/status.h"

#include "llvm/ADT/StringRef.h"

namespace mtc {

// Times are microseconds of a step, the mean of all steps of the trace; those inside a step also of all threads.
struct Measured {
  uint64_t steps = 0, threads = 0; // of GPUs a track each that computes
  bool gpus = false;
  double samples = 0;                            // of a step
  double stepUs = 0;                             // how long it is
  double waitUs = 0, transferUs = 0, idleUs = 0; // between launches; of all-reduces; before and after all launches
  double betweenUs = 0;                          // from step to step
  std::vector<double> us;                        // of each launch of the program
  double peakFlops = 0, peakBytes = 0;           // a second, of all devices; 0: the trace does not say
  uint64_t groups = 1;                           // of devices, each of which runs every launch
  bool hasFloor() const { return peakFlops > 0 && peakBytes > 0; }
  std::string threadsText() const; // "2 threads", "1 GPU"
  // What the work takes at the peak, and whether that is the time of its bytes.
  double floorUs(const LaunchCost &cost) const;
  bool isBoundByMemory(const LaunchCost &cost) const;
};

// MT_INVALID: the text is no trace of this program of the plan.
mtrun::Status readTrace(const mt::plan::Plan &plan, const mt::plan::Program &program, llvm::StringRef text,
                        Measured &measured);

// The cost of a launch as it was measured.
LaunchCost measuredCost(const mt::plan::Plan &plan, const mt::plan::Step &step, const Measured &measured);
// A layer's time and floor.
double layerUs(const LayerFacts &layer, const Measured &measured);
double layerFloorUs(const mt::plan::Plan &plan, const mt::plan::Program &program, const LayerFacts &layer,
                    const Measured &measured);
// One line: what binds the step, and which layer takes most of it.
std::string verdict(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::vector<LayerFacts> &layers,
                    const Measured &measured);

} // namespace mtc

#endif
