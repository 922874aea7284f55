// SPDX-License-Identifier: Apache-2.0
//
// A session's memory: how much each device needs, known from the plan alone, and where it lies.
#pragma once

#include "runtime/device/DeviceGroup.h"

#include <algorithm>
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
  std::vector<std::byte *> sums; // of micro-batches
};

// Which shards each of the session's devices hosts, and how their partial sums are added.
struct DeviceLayout {
  int first = 0; // device of this process
  std::vector<int> shards;
  int passShards = 0;        // that a device computes at once, at most
  std::vector<int> variants; // log2 of those that each device computes at once
  ReduceTree tree;

  bool inMicroBatches() const { return passShards < *std::max_element(shards.begin(), shards.end()); }
  // A lone device's partial sum is the result.
  bool alone() const { return shards.size() == 1 && !inMicroBatches(); }
};

struct Memory {
  MemoryMap map;
  uint64_t sharedBytes = 0;         // of one shared block
  std::vector<uint64_t> arenaBytes; // of a device: the largest of the programs' arenas
  std::vector<uint64_t> sumsBytes;  // of a device: sums of micro-batches, beside the shared block
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
