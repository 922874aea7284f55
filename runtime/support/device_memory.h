// SPDX-License-Identifier: Apache-2.0
//
// What a device needs of memory. mtc's line, its limit (--device-memory, --max-batch) and `mtc inspect`, and what the
// runtime checks before it takes any, count by this alone (docs/memory.md).
#ifndef MT_DEVICE_MEMORY_H
#define MT_DEVICE_MEMORY_H

#include <cstdint>
#include <vector>

namespace mtrun {

inline constexpr int64_t bufferAlignment = 64; // bytes, of every offset and size of a plan's buffers

inline int64_t alignBuffer(int64_t bytes) { return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment; }

// What a program of a plan says of memory, in bytes.
struct ProgramMemory {
  uint64_t shared = 0;            // of the shared block
  std::vector<uint64_t> arenas;   // by variant: 1, 2, 4 ... all shards
  std::vector<uint64_t> partials; // partial sums of each all-reduce

  uint64_t shards() const { return uint64_t{1} << (arenas.size() - 1); } // of the plan
};

struct DeviceMemory {
  uint64_t variables = 0;
  uint64_t constants = 0; // a GPU's copy; CPU devices read the plan's own, which the host holds once
  uint64_t shared = 0;    // the largest shared block of all programs, without results where the device is alone
  uint64_t arena = 0;     // the largest arena
  uint64_t staging = 0;   // other devices' partial sums, while this one adds its part of them
  uint64_t sums = 0;      // of micro-batches, beside the shared block
  uint64_t scratch = 0;   // of each thread of a CPU device

  // Programs take turns in a device's memory. The device has 2^`variant` shards; `devices`: of the run, 0: as many as
  // take most; `microBatches`: of the whole batch, a power of two that is at most its shards.
  void addProgram(const ProgramMemory &program, uint32_t variant, uint64_t devices, uint64_t microBatches);
  // None wraps in a verified plan: at most six blocks of at most 2^46 bytes, sums of at most 2^58, 2^10 threads of at
  // most 2^30.
  uint64_t bytes(uint64_t threads = 1) const {
    return variables + constants + shared + arena + staging + sums + threads * scratch;
  }
};

// Parts of an all-reduce begin at multiples of so many floats: cache lines.
inline constexpr uint64_t partAlignment = 16;

// A device that has all shards at once keeps the result of an all-reduce where its partial sum is: how much shorter its
// shared block is. What lies behind the result stays as aligned as it is.
constexpr uint64_t bytesOfLoneResult(uint64_t partialBytes) { return partialBytes / 256 * 256; }

// Floats of staging of one of `devices`, for an all-reduce of `elements`: as many for each of them. None of a lone one.
uint64_t stagingElements(uint64_t elements, uint64_t devices);

// Bytes of an all-reduce's sums over 1, 2, 4 ... of a device's micro-batches, a power of two. The result has room for
// the last of them.
uint64_t microBatchSums(uint64_t partialBytes, uint64_t microBatches);

} // namespace mtrun

#endif
