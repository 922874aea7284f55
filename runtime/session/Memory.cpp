// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Memory.h"

#include "runtime/plan/Check.h"
#include "runtime/support/plan_memory.h"

#include <algorithm>
#include <bit>

namespace mtrun {

uint64_t sumsOfTakers(const mt::plan::Plan &plan) {
  uint64_t most = 0;
  for (const mt::plan::Program *program : Each(plan.programs())) {
    uint64_t bytes = 0;
    for (const mt::plan::Step *step : Each(program->steps()))
      bytes += step->kernel() < 0 ? static_cast<uint64_t>(alignBuffer(static_cast<int64_t>(step->partial_bytes()))) : 0;
    most = std::max(most, bytes * plan.shards());
  }
  return most;
}

std::vector<uint64_t> Memory::measure(const Plan &plan, const DeviceGroup &group, const DeviceLayout &layout) {
  uint64_t devices = layout.shards.size();
  std::vector<uint64_t> needed;
  for (int d = layout.first; d < layout.first + group.devices(); ++d) {
    auto shards = static_cast<uint64_t>(layout.shards[static_cast<size_t>(d)]);
    auto variant = static_cast<uint32_t>(std::countr_zero(shards));
    DeviceMemory memory =
        deviceMemory(plan.tables(), variant, devices, plan.shards() / static_cast<uint64_t>(layout.passShards));
    map.places.push_back(placeVariables(plan.tables(), layout.optimizer, d));
    memory.variables = map.places.back().bytes;
    if (group.hostMemory() && devices > static_cast<uint64_t>(group.devices()))
      memory.staging = 0; // preparedBytes() has what is received from other processes
    takers = layout.takers;
    if (takers > 0)
      memory.sums = sumsOfTakers(plan.tables());
    sharedBytes = memory.shared;
    stagingBytes = memory.staging;
    arenaBytes.push_back(memory.arena);
    sumsBytes.push_back(memory.sums);
    memory.scratch = 0; // the device group allocates the scratch of all threads
    if (group.hostMemory())
      memory.constants = 0; // the plan's own constants are used
    auto maxRows = static_cast<int64_t>(shards * plan.shardRows());
    needed.push_back(memory.bytes() + static_cast<uint64_t>(std::max(takers - 1, 0)) * memory.arena +
                     group.preparedBytes(plan, maxRows));
    if (!group.hostMemory()) // GPU drivers allocate multiples of 256 bytes
      needed.back() = (needed.back() + 255) / 256 * 256;
    peakBytes += needed.back();
  }
  return needed;
}

Status Memory::allocate(const Plan &plan, DeviceGroup &group) {
  uint64_t constants = plan.constants().size();
  size_t devices = arenaBytes.size();
  for (auto *list : {&map.variables, &map.shared, &map.arenas})
    list->resize(devices);
  map.staging.resize(devices);
  map.constants.resize(devices, reinterpret_cast<const std::byte *>(plan.constants().data()));
  for (size_t device = 0; device < devices; ++device) {
    int d = static_cast<int>(device);
    Status status;
    auto take = [&](uint64_t bytes) {
      void *block = nullptr;
      if (status.ok())
        status = group.allocate(d, bytes, &block);
      return static_cast<std::byte *>(block);
    };
    map.variables[device] = take(map.places[device].bytes);
    map.shared[device] = take(sharedBytes);
    map.arenas[device] = take(arenaBytes[device]);
    map.staging[device] = reinterpret_cast<float *>(take(stagingBytes));
    map.sums.push_back(sumsBytes[device] ? take(sumsBytes[device]) : nullptr);
    for (int taker = 1; taker < takers; ++taker)
      map.takers.push_back(take(arenaBytes[device]));
    std::byte *copy = group.hostMemory() ? nullptr : take(constants);
    if (!status.ok())
      return status;
    group.fill(d, map.variables[device], 0, map.places[device].bytes);
    group.fill(d, map.shared[device], 0, sharedBytes);
    group.fill(d, map.arenas[device], 0, arenaBytes[device]);
    for (std::byte *arena : map.takers)
      group.fill(d, arena, 0, arenaBytes[device]);
    if (sumsBytes[device])
      group.fill(d, map.sums[device], 0, sumsBytes[device]);
    if (group.hostMemory())
      continue;
    map.constants[device] = copy;
    group.copyIn(d, copy, plan.constants().data(), constants);
  }
  if (!group.hostMemory())
    mirror.resize(map.places[0].bytes);
  return group.health();
}

} // namespace mtrun
