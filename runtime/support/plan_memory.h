// SPDX-License-Identifier: Apache-2.0
//
// The memory that a device needs, from the tables of a plan.
#ifndef MT_PLAN_MEMORY_H
#define MT_PLAN_MEMORY_H

#include "runtime/abi/plan_generated.h"
#include "runtime/support/device_memory.h"

namespace mtrun {

// Returns the memory of a device with 2^`variant` shards. `devices`: the number of devices of the run; 0: the number
// that needs the most memory. `microBatches`: of the whole batch, a power of two that is at most the number of shards;
// 0: the plan's number.
DeviceMemory deviceMemory(const mt::plan::Plan &plan, uint32_t variant, uint64_t devices = 0,
                          uint64_t microBatches = 0);

} // namespace mtrun

#endif
