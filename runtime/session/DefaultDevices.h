// SPDX-License-Identifier: Apache-2.0
//
// What a plan runs on where nobody says it.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>

namespace mtrun {

// CPUs that this process may use: of its affinity, and no more than the quota of its control group.
int usableCpus();

// Threads, at most `cpus`, with which a step of the plan takes about the least time: a wait for all of them costs more
// the more there are, and a small model has little to share out between two waits.
int usefulThreads(const Plan &plan, int cpus);

// The GPUs that the plan has code for, at most one a shard; without any "cpu:1x8", a device of as many useful
// threads. The bits of CPUs do not depend on their number.
std::string defaultDevices(const Plan &plan);

} // namespace mtrun
