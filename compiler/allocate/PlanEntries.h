// SPDX-License-Identifier: Apache-2.0
//
// A scheduled program as the list of entries (launches and all-reduces) of the plan.
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
  bool share = false, isTail = false;
  bool mayHaveMore = true; // no tail reads what the segment writes, so there may be other segments
  std::string key;         // key of the kernel
  std::string tails;       // keys of the tails, which are the next entries
  // No barrier separates entries of the same phase on a device, or entries of the same rendezvous on all devices: they
  // run concurrently. A tail has the phase of its head.
  int64_t phase = 0, rendezvous = 0;
};

// The entries in order of execution. Elementwise launches of equal kernels in one phase are segments of one entry. With
// `all`, so are launches of all kinds; but products only if they are of 16 bits, because a library computes one at a
// time. A tail is the only segment of its entry, and so is a kernel whose tail reads what it writes.
std::vector<PlanEntry> entriesOf(mlir::mt::ProgramOp program, bool all);

} // namespace mtc
