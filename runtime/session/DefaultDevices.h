// SPDX-License-Identifier: Apache-2.0
//
// The devices and micro-batches that a session uses if the user names none.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>

namespace mtrun {

// Returns the number of CPUs in the affinity mask of the process. usableCpus() also applies the quota of its control
// group.
int allowedCpus();
int usableCpus();

// Returns the number of threads, at most `cpus`, that runs a step of the plan in about the minimum time. More threads
// make each barrier slower, and a small model has little work between two barriers.
int usefulThreads(const Plan &plan, int cpus);

// How a device divides a batch without an option that says it.
struct BatchDivision {
  bool takes = false;   // each thread takes micro-batches of one shard
  int64_t partRows = 0; // rows of a shard that it computes at once in programs with parts
};

// Returns how a device with `threads` threads divides a batch so that the values of a step stay in the caches. The
// parts need no more memory than the whole batch, and give the same bits. By default the batch stays whole.
BatchDivision usefulDivision(const Plan &plan, int threads);

// Returns the GPUs that the plan has code for, at most one per shard. Without GPUs it returns one CPU device, such as
// "cpu:1x8", with usefulThreads(). The bits of a result on CPUs do not depend on the number of threads.
std::string defaultDevices(const Plan &plan);

} // namespace mtrun
