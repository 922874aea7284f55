// SPDX-License-Identifier: Apache-2.0
//
// Devices on GPUs of this machine, one or more a GPU, in one process. Each has one block of memory, taken when the
// session asks for it, and three streams; a program is one CUDA graph over all devices (Capture.h). docs/gpu-code.md.
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
  int maxInFlight() const override { return static_cast<int>(inFlightLaunches_.size()); }
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
  // ShardCheck.cpp
  Status checkCalls(BoundProgram &program);
  Status checkShard(const DeviceProgram &program, int device, const BoundStep &step);
  // A launch that began.
  struct Launch {
    BoundProgram *program = nullptr;
    int set = 0, runs = 0, finished = 0;
    Event done = nullptr;
    bool over = false; // the host has waited for it
  };
  bool wait(Launch &launch);
  // Runs the traced launch that begins, to its end.
  bool runTraced(BoundProgram &program, Launch &launch, const StepArguments &run);
  // Runs of a program that a launch may hold, and sets of slots for them.
  int runsOf(bool hasMetrics) const { return hasMetrics ? options_.stepsPerLaunch : 1; }
  static int setsOf(bool hasTensors) { return hasTensors ? 2 : 1; }
  uint64_t placesOf(const mt::plan::Program &program) const;
  void measureDriver(const Plan &plan);

  GroupParts parts_;
  GroupOptions options_;
  int sessionDevices_ = 1; // those of other processes too
  const char *target_ = "";
  std::string precision_;    // of the plan
  uint64_t stackBytes_ = 0;  // of a thread, of the kernel that has the most
  uint64_t driverBytes_ = 0; // that the driver takes of a device beside its block
  std::array<Launch, 2> inFlightLaunches_;
  int oldest_ = 0, flying_ = 0;        // of inFlightLaunches_
  const BoundProgram *last_ = nullptr; // that had the scratch memory
  uint64_t freeBefore_ = 0;            // on all GPUs, before any memory was taken
  uint64_t launches_ = 0, collectiveBytes_ = 0;
};

} // namespace mtrun::cuda
