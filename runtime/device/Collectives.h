// SPDX-License-Identifier: Apache-2.0
//
// Adding the partial sums of devices in tree order.
#pragma once

#include "runtime/device/BoundProgram.h"
#include "runtime/device/ThreadPool.h"

namespace mtrun {

// The tree over devices, cut from the reduction tree over the shards: device d hosts `shards[d]` shards, a power of two
// each, in order. Entry m of the result is for m devices with valid rows.
std::vector<std::vector<TreeSum>> treeSums(const std::vector<int> &shards);

// Where chunk `index` of `elements` floats begins that `chunks` devices own; chunk `chunks` begins at the end.
int64_t chunkBegin(int64_t elements, int index, int chunks);

// Devices of one process that exchange partial sums by copies alone, as devices apart would: each owns a chunk,
// receives its peers' partial sums of it, adds, then receives the other chunks of the result.
class LocalCollectives {
public:
  explicit LocalCollectives(ThreadPool &pool) : pool_(pool) {}

  // Called by all workers, after their partial sums are complete. Returns the bytes that this worker received. The
  // result is complete and the partial sums are free on return. Waits, transfers and sums go to the worker's track.
  uint64_t allReduce(const BoundProgram &program, uint32_t allReduce, int active, const Worker &worker,
                     TrackedStep tracked);

  // Called by all workers of a device after each of its micro-batches, `last` of them or not, when their partial sum is
  // in the arena. Adds them along the reduction tree. After the last, what the device adds up to is in its place: of a
  // lone device the result, else the partial sum of allReduce().
  void addMicroBatch(const BoundProgram &program, uint32_t allReduce, int64_t microBatch, bool last,
                     const Worker &worker, TrackedStep tracked);

  // Peers of `device` receive its partial sums of all-reduce `collective` with one bit flipped in each chunk. -1: none.
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
