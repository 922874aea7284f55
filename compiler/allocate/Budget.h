// SPDX-License-Identifier: Apache-2.0
//
// Does a device's memory suffice, and if not, what is to blame?
#pragma once

#include "compiler/allocate/BufferAssignment.h"
#include "runtime/support/device_memory.h"

namespace mtc {

// What a program needs on one device, for each variant (1, 2, 4 ... R shards).
struct MemoryUse {
  std::string program;
  std::vector<int64_t> bytes;                                        // arena and shared block
  std::vector<std::vector<std::pair<int64_t, std::string>>> largest; // at the peak: bytes and name, the largest first
};

MemoryUse memoryUse(llvm::StringRef program, const BufferAssignment &assignment, int64_t shardRows);

// Sets `mt.min_devices` on the module to the smallest number of devices that fits in `limit` bytes a device. More than
// one: a warning with the largest tensors. An error where even R devices do not fit.
llvm::LogicalResult checkBudget(mlir::ModuleOp module, llvm::ArrayRef<MemoryUse> uses,
                                llvm::ArrayRef<mtrun::DeviceMemory> needs, int64_t limit);

} // namespace mtc
