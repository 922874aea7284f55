// SPDX-License-Identifier: Apache-2.0
//
// Memory that a device needs, computed from a plan's IR. runtime/support/plan_memory.h computes it from a plan file.
#ifndef DIALECTS_PLAN_DEVICEMEMORY_H
#define DIALECTS_PLAN_DEVICEMEMORY_H

#include "dialects/plan/PlanDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/support/device_memory.h"

#include <vector>

namespace mlir::plan {

// Bytes of one row if the type is split, else of the whole value.
int64_t bytesOfType(Type type);

// Memory for each variant (1, 2, 4 ... R shards on a device). `scratch`: bytes of scratch memory of one CPU thread.
// `microBatches`: number of micro-batches of a batch.
std::vector<mtrun::DeviceMemory> deviceMemory(ModuleOp module, int64_t scratch, int64_t microBatches);

} // namespace mlir::plan

#endif
