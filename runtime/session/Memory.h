// SPDX-License-Identifier: Apache-2.0
//
// Computes the memory of each device of a session from the plan alone, and allocates it.
#pragma once

#include "runtime/device/DeviceGroup.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtrun {

// The addresses of a session's memory: one element per device of this process.
struct MemoryMap {
  std::vector<std::byte *> variables;
  std::vector<VariablePlaces> places; // of the variables
  std::vector<std::byte *> shared;
  std::vector<std::byte *> arenas;
  std::vector<const std::byte *> constants;
  std::vector<float *> staging;
  std::vector<std::byte *> sums;   // sums of micro-batches
  std::vector<std::byte *> takers; // arenas of the threads 1, 2 ... that take micro-batches
};

// The shards of each of the session's devices, and the tree in which their partial sums are added.
struct DeviceLayout {
  int first = 0; // the first device of this process
  std::vector<int> shards;
  int passShards = 0;        // the maximum number of shards that a device computes at once
  std::vector<int> variants; // log2 of the number of shards that each device computes at once
  // The threads of the device that take whole micro-batches, each in an arena of its own, and how many rows of it they
  // compute at once where a program has parts. 0: all threads of a device compute each micro-batch together.
  int takers = 0;
  int64_t partRows = 0;
  ReduceTree tree;
  OptimizerParts optimizer; // without parts: each device has whole variables

  bool inMicroBatches() const { return passShards < *std::max_element(shards.begin(), shards.end()); }
  // Returns true for a single device without micro-batches: its partial sum is the result.
  bool alone() const { return shards.size() == 1 && !inMicroBatches(); }
};

// The bytes of the partial sums of all micro-batches, of one shard each, of the program with the most.
uint64_t sumsOfTakers(const mt::plan::Plan &plan);

struct Memory {
  MemoryMap map;
  uint64_t sharedBytes = 0;         // size of a shared block
  std::vector<uint64_t> arenaBytes; // by device: the largest arena of its programs
  std::vector<uint64_t> sumsBytes;  // by device: sums of micro-batches, outside the shared block
  int takers = 0;                   // as of the layout
  uint64_t peakBytes = 0;           // sum over all devices
  std::vector<std::byte> mirror;    // copy of the first device's variables, if the host cannot read them

  // Computes all sizes. Returns the number of bytes that each device needs.
  std::vector<uint64_t> measure(const Plan &plan, const DeviceGroup &group, const DeviceLayout &layout);
  // Allocates and zeroes everything that measure() computed, and copies the plan's constants to devices that cannot
  // read host memory.
  Status allocate(const Plan &plan, DeviceGroup &group);

private:
  uint64_t stagingBytes = 0; // per device
};

} // namespace mtrun
