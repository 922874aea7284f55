// SPDX-License-Identifier: Apache-2.0
//
// Checks whether the memory of a device suffices, and reports the largest tensors if it does not.
#pragma once

#include "compiler/allocate/BufferAssignment.h"
#include "runtime/support/device_memory.h"

namespace mtc {

// Memory of a program on one device, for each variant (1, 2, 4 ... R shards).
struct MemoryUse {
  std::string program;
  std::vector<int64_t> bytes; // arena and shared block
  // at the peak: bytes and name, by decreasing bytes
  std::vector<std::vector<std::pair<int64_t, std::string>>> largest;
};

MemoryUse memoryUse(llvm::StringRef program, const BufferAssignment &assignment, int64_t shardRows);

// Sets `min_devices` of the module's `mt.compilation` to the smallest number of devices whose memory of `limit` bytes
// suffices. If the number is larger than 1, emits a warning that names the largest tensors. Fails if R devices do not
// suffice.
llvm::LogicalResult checkBudget(mlir::ModuleOp module, llvm::ArrayRef<MemoryUse> uses,
                                llvm::ArrayRef<mtrun::DeviceMemory> needs, int64_t limit);

} // namespace mtc
