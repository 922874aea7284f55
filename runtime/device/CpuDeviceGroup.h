// SPDX-License-Identifier: Apache-2.0
//
// The common part of the CPU device and the null device: memory of this process, and a thread pool that runs bound
// programs. In a session of several processes the group has one device, and exchanges partial sums with the others.
#pragma once

#include "runtime/device/Collectives.h"
#include "runtime/device/DeviceGroup.h"
#include "runtime/device/ProcessExchange.h"
#include "runtime/device/ThreadPool.h"

#include <utility>
#include <vector>

namespace mtrun {

class CpuDeviceGroup : public DeviceGroup {
public:
  ~CpuDeviceGroup() override;
  Status start(const GroupOptions &options);

  int devices() const override { return pool_.devices(); }
  int threads() const override { return pool_.threads(); }
  bool hostMemory() const override { return true; }
  bool blocks() const override { return false; }
  uint64_t availableMemory() const override;
  uint64_t preparedBytes(const Plan &plan, int64_t maxRows) const override;
  Status prepare(BoundProgram &program) override;
  Status reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) override;
  Status allocate(int device, uint64_t bytes, void **memory) override;
  void fill(int device, void *memory, uint8_t byte, uint64_t bytes) override;
  void copyIn(int device, void *to, const void *from, uint64_t bytes) override;
  void copyOut(int device, void *to, const void *from, uint64_t bytes) override;
  void begin(BoundProgram &program, std::span<const StepArguments> runs) override;
  Status watchNextRun(const BoundProgram &program, LaunchWatcher see) override;
  void parallel(int64_t tasks, const std::function<void(int64_t)> &task) override;
  uint64_t launches() const override;
  uint64_t collectiveBytes() const override;
  Activity activity() const override { return {rows_, exchange_ ? exchange_->received() : 0}; }
  void corruptPartial(int collective, int device) override;

protected:
  // Must be called by loadCode().
  void measureExchanges(const Plan &plan);

  // Scratch bytes per thread: the maximum over the kernels of the loaded code.
  uint64_t scratchBytes_ = 0;

private:
  // Counters of one worker, on a separate cache line.
  struct alignas(64) Counts {
    uint64_t launches = 0;
    uint64_t received = 0; // bytes received in the last run
  };

  // Points the device's pointers at row `row` of the caller's tensors.
  static void pointToRows(DeviceProgram &device, const StepArguments &arguments, int64_t row);
  // `tracer`: records the worker's activity; may be null.
  template <bool traced>
  void walk(BoundProgram &program, const StepArguments &arguments, const Worker &worker, Tracer *tracer);
  void walkWatched(BoundProgram &program);
  // Each thread computes its part of each launch, and waits for the other threads.
  template <bool traced>
  void walkAssigned(BoundProgram &program, const StepArguments &arguments, const Worker &worker, Track *track);
  // The threads share the work of the launches, or of micro-batches, and wait for nothing else.
  template <bool traced>
  void walkShared(BoundProgram &program, const StepArguments &arguments, const Worker &worker, Track *track);
  // Computes what a phase repeats for one micro-batch, in the arena of the worker's thread.
  void computeMicroBatch(BoundProgram &program, const BoundPhase &phase, int64_t microBatch,
                         const StepArguments &arguments, const Worker &worker, Track *track);
  bool sharesWork(const BoundProgram &program) const;
  mt_kernel_params paramsOf(const DeviceProgram &device, const Worker &worker) const;
  void launch(const BoundStep &step, mt_kernel_params &params, const Worker &worker);
  // Runs an all-reduce or a gather of devices in this process. All workers call it after their partial sums or parts
  // are complete.
  void exchange(const BoundProgram &program, const BoundStep &step, int active, const Worker &worker,
                TrackedStep tracked);
  // Likewise for an exchange between processes that may still run on return.
  void beginExchange(const OrderedStep &ordered, const BoundProgram &program, const Worker &worker,
                     TrackedStep tracked);

  ThreadPool pool_;
  LocalCollectives collectives_{pool_};
  std::vector<Counts> counts_;       // by worker
  std::vector<std::byte *> scratch_; // by worker; empty: no kernel uses scratch
  std::vector<std::pair<void *, size_t>> mappings_;
  std::unique_ptr<ProcessExchange> exchange_; // null: one process
  int64_t rows_ = 0;                          // rows computed so far
  LaunchWatcher see_;                         // of the next run of watched_; empty: none
  const BoundProgram *watched_ = nullptr;
};

} // namespace mtrun
