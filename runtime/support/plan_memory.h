// SPDX-License-Identifier: Apache-2.0
//
// What a device needs of memory, by a plan's tables.
#ifndef MT_PLAN_MEMORY_H
#define MT_PLAN_MEMORY_H

#include "runtime/abi/plan_generated.h"
#include "runtime/support/device_memory.h"

namespace mtrun {

// Of a device with 2^`variant` shards. `devices`: of the run; 0: as many as take most. `microBatches`: of the whole
// batch, a power of two that is at most its shards; 0: as many as the plan says.
DeviceMemory deviceMemory(const mt::plan::Plan &plan, uint32_t variant, uint64_t devices = 0,
                          uint64_t microBatches = 0);

} // namespace mtrun

#endif
