// SPDX-License-Identifier: Apache-2.0
//
// The memory that a device needs. The compiler's summary line and its limits (--device-memory, --max-batch), `mtc
// inspect` and the runtime's check before allocation all use this computation (docs/memory.md).
#ifndef MT_DEVICE_MEMORY_H
#define MT_DEVICE_MEMORY_H

#include <cstdint>
#include <vector>

namespace mtrun {

inline constexpr int64_t bufferAlignment = 64; // bytes; all offsets and sizes of a plan's buffers are multiples of it

inline int64_t alignBuffer(int64_t bytes) { return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment; }

// Memory sizes in a program's tables, in bytes.
struct ProgramMemory {
  uint64_t shared = 0;            // size of the shared block
  std::vector<uint64_t> arenas;   // size of the arena by variant: for 1, 2, 4 ... all shards
  std::vector<uint64_t> partials; // size of the partial sums of each all-reduce

  uint64_t shards() const { return uint64_t{1} << (arenas.size() - 1); } // of the plan
};

struct DeviceMemory {
  uint64_t variables = 0;
  uint64_t constants = 0; // a GPU's copy; CPU devices read the constants in the plan
  uint64_t shared = 0;    // the largest shared block of all programs, without results if the session has one device
  uint64_t arena = 0;     // the largest arena
  uint64_t staging = 0;   // partial sums of other devices, while this device adds its part of them
  uint64_t sums = 0;      // sums of micro-batches, outside the shared block
  uint64_t scratch = 0;   // per thread of a CPU device

  // Adds a program; programs run one after another in the same memory. `variant`: the device has 2^variant shards.
  // `devices`: the number of devices of the run; 0: the number that needs the most memory. `microBatches`: of the whole
  // batch, a power of two that is at most the number of shards.
  void addProgram(const ProgramMemory &program, uint32_t variant, uint64_t devices, uint64_t microBatches);
  // The sum does not overflow for a verified plan: at most six blocks of at most 2^46 bytes, sums of at most 2^58
  // bytes, and 2^10 threads of at most 2^30 bytes each.
  uint64_t bytes(uint64_t threads = 1) const {
    return variables + constants + shared + arena + staging + sums + threads * scratch;
  }
};

// The parts of an all-reduce begin at multiples of this many floats: one cache line.
inline constexpr uint64_t partAlignment = 16;

// Returns the begin of chunk `index` if `chunks` devices share `elements` floats; the end for index `chunks`.
int64_t chunkBegin(int64_t elements, int index, int chunks);

// Returns the bytes by which the shared block of a device that has all shards is shorter: its result of an all-reduce
// lies where the partial sum is. The data after the result keeps its alignment.
constexpr uint64_t bytesOfLoneResult(uint64_t partialBytes) { return partialBytes / 256 * 256; }

// Returns the floats of staging memory of one of `devices` devices for an all-reduce of `elements`; 0 for a single
// device.
uint64_t stagingElements(uint64_t elements, uint64_t devices);

// Returns the bytes of partial sums over 1, 2, 4 ... micro-batches, for an all-reduce and a power of two of
// micro-batches per device. The last sum is stored in the result.
uint64_t microBatchSums(uint64_t partialBytes, uint64_t microBatches);

} // namespace mtrun

#endif
