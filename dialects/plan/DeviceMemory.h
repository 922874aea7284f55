// SPDX-License-Identifier: Apache-2.0
//
// What a device needs of memory, by the IR of a plan; runtime/support/plan_memory.h says it by a plan's tables.
#ifndef DIALECTS_PLAN_DEVICEMEMORY_H
#define DIALECTS_PLAN_DEVICEMEMORY_H

#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/support/device_memory.h"

#include <vector>

namespace mlir::plan {

// Bytes of a value: per row of a split one, else in all.
int64_t bytesOfType(Type type);

// Of a module of programs, for each variant (1, 2, 4 ... R shards). `scratch`: of a CPU's thread. `microBatches`: of
// the whole batch.
std::vector<mtrun::DeviceMemory> deviceMemory(ModuleOp module, int64_t scratch, int64_t microBatches);

} // namespace mlir::plan

#endif
