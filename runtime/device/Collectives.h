// SPDX-License-Identifier: Apache-2.0
//
// All-reduces: adds the partial sums of devices in tree order.
#pragma once

#include "runtime/device/BoundProgram.h"
#include "runtime/device/ThreadPool.h"
#include "runtime/support/device_memory.h"

namespace mtrun {

// Returns the sums of the devices' tree, the upper part of the reduction tree over the shards. Device d has `shards[d]`
// consecutive shards, a power of two. Entry m of the result is for m devices with valid rows.
std::vector<std::vector<TreeSum>> treeSums(const std::vector<int> &shards);

// Adds two vectors in host memory by the plan's kernel: tiles [tileBegin, tileEnd) of `elements` floats. `out` may be
// `a`.
void addPartials(const ReduceTree &tree, const float *a, const float *b, float *out, int64_t elements,
                 int64_t tileBegin, int64_t tileEnd);

// All-reduces of devices in one process by copies between devices. Each device owns a chunk: it copies the other
// devices' partial sums of the chunk, adds them, and then copies the other chunks of the result.
class LocalCollectives {
public:
  explicit LocalCollectives(ThreadPool &pool) : pool_(pool) {}

  // All workers call it after their partial sums are complete. Returns the bytes that this worker copied. On return the
  // result is complete (of a scattered all-reduce, the part that this device needs), and the partial sums may be
  // overwritten. Waits, transfers and sums are recorded on the worker's track.
  uint64_t allReduce(const BoundProgram &program, uint32_t allReduce, int active, const Worker &worker,
                     TrackedStep tracked);

  // All workers call it after the launch that writes the parts. On return all devices have all parts. Returns the bytes
  // that this worker copied.
  uint64_t gather(const BoundProgram &program, uint32_t gather, const Worker &worker, TrackedStep tracked);

  // All workers of a device call it after each of the device's micro-batches, when the partial sum is in the arena.
  // Adds it along the reduction tree. After the `last` micro-batch the device's sum is in place: in the result if there
  // is one device, else in the partial sum of allReduce().
  void addMicroBatch(const BoundProgram &program, uint32_t allReduce, int64_t microBatch, bool last,
                     const Worker &worker, TrackedStep tracked);

  // Adds the sums of the first `microBatches` micro-batches, which threads took, to the result, along the reduction
  // tree: the elements of `thread` of the device's threads.
  void addTaken(const BoundProgram &program, uint32_t allReduce, int64_t microBatches, int thread) const;

  // For tests: flips one bit in each chunk of `device`'s partial sum of all-reduce `collective` as other devices copy
  // it. -1: none.
  void corruptPartial(int collective, int device) {
    corruptCollective_ = collective;
    corruptDevice_ = device;
  }

private:
  ThreadPool &pool_;
  int corruptCollective_ = -1;
  int corruptDevice_ = -1;
};

} // namespace mtrun
