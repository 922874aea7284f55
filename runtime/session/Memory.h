// SPDX-License-Identifier: Apache-2.0
//
// A session's memory: how much each device needs, known from the plan alone, and where it lies.
#pragma once

#include "runtime/device/DeviceGroup.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// Where a session's memory lies, an entry a device of this process.
struct MemoryMap {
  std::vector<std::byte *> variables;
  std::vector<std::byte *> shared;
  std::vector<std::byte *> arenas;
  std::vector<const std::byte *> constants;
  std::vector<float *> staging;
};

// Which shards each of the session's devices hosts, and how their partial sums are added.
struct DeviceLayout {
  int first = 0; // device of this process
  std::vector<int> shards;
  std::vector<int> variants; // log2 of shards
  ReduceTree tree;
};

struct Memory {
  MemoryMap map;
  uint64_t sharedBytes = 0;         // of one shared block
  std::vector<uint64_t> arenaBytes; // of a device: the largest of the programs' arenas
  uint64_t peakBytes = 0;           // of all devices together
  std::vector<std::byte> mirror;    // of the first device's variables, where the host cannot read them

  // Sizes everything; the bytes that each device will hold.
  std::vector<uint64_t> measure(const Plan &plan, const DeviceGroup &group, const DeviceLayout &layout);
  // After measure: takes it all, zeroed, and copies the plan's constants to devices that cannot read the host's.
  Status allocate(const Plan &plan, DeviceGroup &group);

private:
  uint64_t stagingBytes = 0; // of a device
};

} // namespace mtrun
