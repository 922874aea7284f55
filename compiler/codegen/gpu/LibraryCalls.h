// SPDX-License-Identifier: Apache-2.0
//
// Kernels that a library can compute too (docs/libraries.md).
#ifndef COMPILER_CODEGEN_GPU_LIBRARYCALLS_H
#define COMPILER_CODEGEN_GPU_LIBRARYCALLS_H

#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/plan_generated.h"

namespace mtc {

// Bytes of a device's memory that the calls of a plan may use, at most: an eighth of the largest arena of a device with
// one shard, so that devices of any number of shards have it, and never less than these. Where the memory of a
// device is limited, these.
constexpr uint64_t minCallWorkspace = 32 << 20;
uint64_t callWorkspaceBytes(const ::mt::plan::PlanT &plan, bool limited);

// The call that computes what a plan.kernel does, null if there is none: its body is one contraction of arguments and
// at most a bias and a ReLU.
std::unique_ptr<::mt::plan::LibraryCallT> libraryCallOf(mlir::plan::KernelOp op);

} // namespace mtc

#endif
