// SPDX-License-Identifier: Apache-2.0
//
// Devices on GPUs of this machine, one or more per GPU, in one process. Each device has one block of memory, allocated
// for the session, and several streams. A program is one CUDA graph over all devices (Capture.h). docs/gpu-code.md.
#pragma once

#include "runtime/device/cuda/GroupParts.h"

#include <array>

namespace mtrun::cuda {

class CudaGroup : public CudaDevices {
public:
  explicit CudaGroup(const Driver &driver);
  ~CudaGroup() override;
  Status start(const GroupOptions &options);

  const char *kind() const override { return "cuda"; }
  int threads() const override { return 1; }
  bool hostMemory() const override { return false; }
  bool blocks() const override { return true; }
  Status loadCode(const Plan &plan, const char *target) override;
  const char *target() const override { return target_; }
  uint64_t preparedBytes(const Plan &plan, int64_t maxRows) const override;
  Status reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) override;
  Status prepare(BoundProgram &program) override;
  Status prepareTrace(BoundProgram &program) override;
  Rates rates() const override;
  uint64_t takenMemory() const override;
  int maxInFlight() const override { return static_cast<int>(launchSlots_.size()); }
  int runsPerLaunch(const BoundProgram &program) const override;
  void begin(BoundProgram &program, std::span<const StepArguments> runs) override;
  void finish() override;
  uint64_t launches() const override { return launches_; }
  uint64_t collectiveBytes() const override { return collectiveBytes_; }
  Status tune(BoundProgram &program, const std::string &path, int repeats,
              const std::function<void(const std::string &)> &line) override;
  std::string tuning() const override { return parts_.libraries->tuning(); }
  std::string conditions() const override;
  void corruptPartial(int collective, int device) override;
  void drain() override;

private:
  Status loadTarget(const Plan &plan, const char *forced);
  // Defined in ShardCheck.cpp.
  Status checkCalls(BoundProgram &program);
  Status checkShard(const DeviceProgram &program, int device, const BoundStep &step);
  // A launch in flight.
  struct Launch {
    BoundProgram *program = nullptr;
    int set = 0, runs = 0, finished = 0;
    Event done = nullptr;
    bool over = false; // the host has waited for it
  };
  bool wait(Launch &launch);
  // Runs the traced launch to its end.
  bool runTraced(BoundProgram &program, Launch &launch, const StepArguments &run);
  // The maximum number of runs per launch of a program, and the number of sets of slots for them.
  int runsOf(bool hasMetrics) const { return hasMetrics ? options_.stepsPerLaunch : 1; }
  static int setsOf(bool hasTensors) { return hasTensors ? 2 : 1; }
  uint64_t placesOf(const mt::plan::Program &program) const;
  void measureDriver(const Plan &plan);

  GroupParts parts_;
  GroupOptions options_;
  int sessionDevices_ = 1; // including devices of other processes
  const char *target_ = "";
  std::string precision_;    // the plan's precision
  uint64_t stackBytes_ = 0;  // stack per thread: the maximum over all kernels
  uint64_t driverBytes_ = 0; // memory per device that the driver allocates outside the device's block
  std::array<Launch, 2> launchSlots_;
  int oldest_ = 0, launchesInFlight_ = 0; // oldest_: index of the oldest launch in launchSlots_
  const BoundProgram *last_ = nullptr;    // the program that used the scratch memory last
  uint64_t freeBefore_ = 0;               // on all GPUs, before memory was allocated
  uint64_t launches_ = 0, collectiveBytes_ = 0;
};

} // namespace mtrun::cuda
