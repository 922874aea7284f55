// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/device_memory.h"

#include <algorithm>
#include <bit>

namespace mtrun {

void DeviceMemory::addProgram(uint64_t sharedBytes, uint64_t arenaBytes, uint64_t stagingBytes, uint64_t sumsBytes) {
  shared = std::max(shared, sharedBytes);
  arena = std::max(arena, arenaBytes);
  staging = std::max(staging, stagingBytes);
  sums = std::max(sums, sumsBytes);
}

uint64_t stagingElements(uint64_t elements, uint64_t devices) {
  return devices == 1 ? 0 : (elements / devices / partAlignment + 2) * partAlignment * devices;
}

uint64_t maxStagingBytes(uint64_t partialBytes, uint64_t shards, uint32_t variant) {
  uint64_t fewest = std::max<uint64_t>(shards >> variant, 1), most = 0;
  for (uint64_t devices = fewest; devices < 2 * fewest && devices <= shards; ++devices)
    most = std::max(most, stagingElements(partialBytes / sizeof(float), devices) * sizeof(float));
  return most;
}

uint64_t microBatchSums(uint64_t partialBytes, uint64_t microBatches) {
  uint64_t levels = microBatches < 4 ? 0 : static_cast<uint64_t>(std::countr_zero(microBatches)) - 1;
  return levels * ((partialBytes / sizeof(float) + partAlignment - 1) / partAlignment * partAlignment * sizeof(float));
}

} // namespace mtrun
