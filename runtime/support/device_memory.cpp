// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/plan_memory.h"

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

DeviceMemory deviceMemory(const mt::plan::Plan &plan, uint32_t variant, uint64_t devices, uint64_t microBatches) {
  uint64_t shards = uint64_t{1} << variant;
  uint64_t pass = std::min<uint64_t>(shards, plan.shards() / (microBatches ? microBatches : plan.micro_batches()));
  DeviceMemory memory;
  memory.variables = plan.variables_bytes();
  if (plan.constants() >= 0)
    memory.constants = plan.sections()->Get(static_cast<uint32_t>(plan.constants()))->size();
  if (!plan.programs()) // a plan may hold none
    return memory;
  for (const mt::plan::Program *program : *plan.programs()) {
    uint64_t partialBytes = 0, sums = 0, shared = program->shared_bytes();
    bool alone = pass == plan.shards();
    if (program->steps())
      for (const mt::plan::Step *step : *program->steps())
        if (step->kernel() < 0) {
          partialBytes = std::max(partialBytes, step->partial_bytes());
          sums += microBatchSums(step->partial_bytes(), shards / pass);
          shared -= alone ? bytesOfLoneResult(step->partial_bytes()) : 0; // results are inside, and do not overlap
        }
    uint64_t staging = partialBytes == 0 ? 0
                       : devices == 0 ? maxStagingBytes(partialBytes, plan.shards(), variant)
                                      : stagingElements(partialBytes / sizeof(float), devices) * sizeof(float);
    const auto *arena = program->variants()->Get(static_cast<uint32_t>(std::countr_zero(pass)));
    memory.addProgram(shared, arena->arena_bytes(), staging, sums);
  }
  if (plan.kernels())
    for (const mt::plan::Kernel *kernel : *plan.kernels())
      memory.scratch = std::max(memory.scratch, kernel->scratch_bytes());
  return memory;
}

} // namespace mtrun
