// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/device_memory.h"

#include <algorithm>
#include <bit>

namespace mtrun {

int64_t chunkBegin(int64_t elements, int index, int chunks) {
  constexpr auto line = static_cast<int64_t>(partAlignment);
  return index == chunks ? elements : elements * index / chunks / line * line;
}

uint64_t stagingElements(uint64_t elements, uint64_t devices) {
  return devices == 1 ? 0 : (elements / devices / partAlignment + 2) * partAlignment * devices;
}

// Returns the maximum of stagingElements() in bytes over all numbers of devices whose largest subtree has 2^`variant`
// shards.
static uint64_t maxStagingBytes(uint64_t partialBytes, uint64_t shards, uint32_t variant) {
  uint64_t fewest = std::max<uint64_t>(shards >> variant, 1), most = 0;
  for (uint64_t devices = fewest; devices < 2 * fewest && devices <= shards; ++devices)
    most = std::max(most, stagingElements(partialBytes / sizeof(float), devices) * sizeof(float));
  return most;
}

uint64_t microBatchSums(uint64_t partialBytes, uint64_t microBatches) {
  uint64_t levels = microBatches < 4 ? 0 : static_cast<uint64_t>(std::countr_zero(microBatches)) - 1;
  return levels * ((partialBytes / sizeof(float) + partAlignment - 1) / partAlignment * partAlignment * sizeof(float));
}

void DeviceMemory::addProgram(const ProgramMemory &program, uint32_t variant, uint64_t devices, uint64_t microBatches) {
  uint64_t shards = uint64_t{1} << variant, atOnce = std::min(shards, program.shards() / microBatches);
  bool alone = atOnce == program.shards();
  uint64_t sharedBytes = program.shared, largest = 0, sumsBytes = 0;
  for (uint64_t partial : program.partials) {
    largest = std::max(largest, partial);
    sumsBytes += microBatchSums(partial, shards / atOnce);
    sharedBytes -= alone ? bytesOfLoneResult(partial) : 0; // the results lie inside the shared block and do not overlap
  }
  shared = std::max(shared, sharedBytes);
  arena = std::max(arena, program.arenas[static_cast<size_t>(std::countr_zero(atOnce))]);
  sums = std::max(sums, sumsBytes);
  if (largest > 0)
    staging = std::max(staging, devices == 0 ? maxStagingBytes(largest, program.shards(), variant)
                                             : stagingElements(largest / sizeof(float), devices) * sizeof(float));
}

} // namespace mtrun
