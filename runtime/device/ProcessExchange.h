// SPDX-License-Identifier: Apache-2.0
//
// The all-reduces of a CPU device in a session of several processes: their order among the launches, the thread that
// runs them meanwhile, and memory for what is received.
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

class ProcessExchange {
public:
  // `even`: all processes have subtrees of one size.
  ProcessExchange(Transport &transport, ProcessGroup &group, bool even);

  // Computes the memory for the all-reduces of a plan.
  void measure(const Plan &plan);
  uint64_t stagingBytes() const { return static_cast<uint64_t>(stagingElements_) * sizeof(float); }
  void setStaging(void *memory) { staging_ = static_cast<float *>(memory); }
  bool hasStaging() const { return staging_ != nullptr; }

  // Orders the program's steps, and starts the thread if a step can run during an all-reduce.
  Status prepare(BoundProgram &program);
  // Returns the order of a prepared program; empty for a program in micro-batches, which runs in the plan's order.
  static const std::vector<OrderedStep> &order(const BoundProgram &program);

  // Begins a run of a program. One thread calls these functions during the run.
  void begin(const BoundProgram &program, int64_t samples);
  void post(uint32_t allReduce) { thread_.post(allReduce); }
  void wait(uint32_t posted) { thread_.wait(posted); }
  // Runs an all-reduce in the calling thread, after all that were posted have ended.
  void run(uint32_t allReduce);
  // Returns true if an all-reduce of this or an earlier run has failed: a step that writes variables is left out.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Ends a run: gives all processes the output rows of each. Returns the first failure of this or an earlier run. If an
  // all-reduce has failed, the variables are as before the run.
  const Status &finish(const StepArguments &arguments);

  uint64_t received() const { return communicator_.received(); }
  uint64_t receivedInRun() const { return communicator_.received() - receivedBefore_; }

private:
  Status gatherOutputs(const StepArguments &arguments);

  ProcessGroup &group_;
  bool even_;
  HostCommunicator communicator_;
  int64_t stagingElements_ = 0; // of the largest all-reduce
  float *staging_ = nullptr;
  const BoundProgram *program_ = nullptr; // of the run
  int active_ = 0;
  uint64_t receivedBefore_ = 0;
  std::vector<HostCommunicator::Message> messages_;
  Status status_; // written by the thread that runs all-reduces
  std::atomic<bool> failed_ = false;
  bool threadStarted_ = false;
  ExchangeThread thread_; // ends before the other members
};

} // namespace mtrun
