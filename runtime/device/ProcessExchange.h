// SPDX-License-Identifier: Apache-2.0
//
// The all-reduces and gathers of a CPU device in a session of several processes: their order among the launches, the
// thread that runs them meanwhile, and memory for received data.
#pragma once

#include "runtime/device/ExchangeOrder.h"
#include "runtime/device/ExchangeThread.h"
#include "runtime/device/HostCommunicator.h"
#include "runtime/device/ProcessGroup.h"
#include "runtime/plan/Plan.h"

#include <atomic>
#include <memory>
#include <vector>

namespace mtrun {

// Returns a watch that ends a wait when the group loses a process.
HostCommunicator::Watch watchOf(ProcessGroup &group);

class ProcessExchange {
public:
  // `scatters`: the processes divide the optimizer.
  ProcessExchange(Transport &transport, ProcessGroup &group, const ExchangePlaces &places, bool scatters = false);

  // Computes the memory for the all-reduces of a plan.
  void measure(const Plan &plan);
  uint64_t stagingBytes() const { return static_cast<uint64_t>(stagingElements_) * sizeof(float); }
  void setStaging(void *memory) { staging_ = static_cast<float *>(memory); }
  bool hasStaging() const { return staging_ != nullptr; }

  // Orders the program's steps, and starts the thread if a step can run during an all-reduce.
  Status prepare(BoundProgram &program);
  // Returns the orders of a prepared program: one, or that of the last micro-batch of each phase. At the end of a phase
  // wait() for what was posted up to there.
  static const std::vector<ExchangeOrder> &orders(const BoundProgram &program);

  // Begins a run of a program. One thread calls these functions during the run.
  void begin(const BoundProgram &program, int64_t samples);
  void post(const BoundProgram &program, const BoundStep &step) { thread_.post(numberOf(program, step)); }
  void wait(uint32_t posted) { thread_.wait(posted); }
  // Runs an all-reduce or a gather in the calling thread, after all that were posted have ended.
  void run(const BoundProgram &program, const BoundStep &step) { run(numberOf(program, step)); }
  // Returns true if an all-reduce of this or an earlier run has failed: a step that writes variables is left out.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Ends a run: gives all processes the output rows of each. Returns the first failure of this or an earlier run. If an
  // all-reduce has failed, the variables are as before the run.
  const Status &finish(const StepArguments &arguments);

  uint64_t received() const { return communicator_.received(); }
  uint64_t receivedInRun() const { return communicator_.received() - receivedBefore_; }

private:
  // Gathers have the numbers after the all-reduces.
  static uint32_t numberOf(const BoundProgram &program, const BoundStep &step) {
    return step.allReduce + (step.gathers ? static_cast<uint32_t>(program.allReduces.size()) : 0);
  }
  void run(uint32_t number);
  Status reduce(const BoundAllReduce &reduce);
  // Exchanges the parts of memory that processes have. `parts`: the first element of each process's part.
  void addParts(std::byte *memory, uint64_t elementBytes, const Parts &parts);
  Status gatherOutputs(const StepArguments &arguments);

  ProcessGroup &group_;
  ExchangePlaces places_;
  bool scatters_;
  HostCommunicator communicator_;
  int64_t stagingElements_ = 0; // of the largest all-reduce
  float *staging_ = nullptr;
  const BoundProgram *program_ = nullptr; // of the run
  int active_ = 0;
  uint64_t receivedBefore_ = 0;
  std::vector<HostCommunicator::Message> messages_; // of the next exchange
  Status status_;                                   // written by the thread that runs all-reduces
  std::atomic<bool> failed_ = false;
  bool threadStarted_ = false;
  ExchangeThread thread_; // ends before the other members
};

} // namespace mtrun
