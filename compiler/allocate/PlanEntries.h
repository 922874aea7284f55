// SPDX-License-Identifier: Apache-2.0
//
// A scheduled program as the list of entries (launches and all-reduces) that the plan will have.
#pragma once

#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

#include <string>
#include <vector>

namespace mtc {

// A launch of one or more segments, or an all-reduce of a bucket.
struct PlanEntry {
  std::vector<mlir::mt::KernelOp> segments;
  std::vector<mlir::shard::AllReduceOp> reduces;
  mlir::plan::Wait wait = mlir::plan::Wait::none;
  bool share = false;
  std::string key; // of the kernel
  // Entries with the same phase run concurrently on a device, and those with the same rendezvous on all devices: no
  // barrier separates them.
  int64_t phase = 0, rendezvous = 0;
};

// The entries in order of execution; elementwise launches of equal kernels in one phase are segments of one entry.
std::vector<PlanEntry> entriesOf(mlir::mt::ProgramOp program);

} // namespace mtc
