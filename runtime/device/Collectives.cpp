// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Collectives.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mtrun {
namespace {

// Appends the sums of the subtree that starts at shard `first`; returns the subtree's leftmost device.
int appendSums(const std::vector<int> &shards, const std::vector<int> &firstShard, int active, int first, int size,
               std::vector<TreeSum> &sums) {
  auto at = std::lower_bound(firstShard.begin(), firstShard.end(), first);
  int device = static_cast<int>(at - firstShard.begin());
  if (shards[device] == size)
    return device;
  appendSums(shards, firstShard, active, first, size / 2, sums);
  auto right = std::lower_bound(firstShard.begin(), firstShard.end(), first + size / 2) - firstShard.begin();
  if (right < active) {
    appendSums(shards, firstShard, active, first + size / 2, size / 2, sums);
    sums.push_back({device, static_cast<int>(right)});
  }
  return device;
}

} // namespace

void addPartials(const ReduceTree &tree, const float *a, const float *b, float *out, int64_t elements,
                 int64_t tileBegin, int64_t tileEnd) {
  mt_kernel_params params = {};
  params.count = elements;
  void *buffers[] = {const_cast<float *>(a), const_cast<float *>(b), out};
  reinterpret_cast<mt_kernel_fn>(tree.sum)(&params, buffers, tileBegin, tileEnd);
}

std::vector<std::vector<TreeSum>> treeSums(const std::vector<int> &shards) {
  std::vector<int> firstShard;
  int allShards = 0;
  for (int count : shards) {
    firstShard.push_back(allShards);
    allShards += count;
  }
  std::vector<std::vector<TreeSum>> result(shards.size() + 1);
  for (size_t active = 2; active <= shards.size(); ++active)
    appendSums(shards, firstShard, static_cast<int>(active), 0, allShards, result[active]);
  return result;
}

uint64_t LocalCollectives::allReduce(const BoundProgram &program, uint32_t index, int active, const Worker &worker,
                                     TrackedStep tracked) {
  const ReduceTree &tree = *program.tree;
  const BoundAllReduce &reduce = program.allReduces[index];
  int devices = pool_.devices();
  uint64_t received = 0;
  pool_.waitForAll(); // wait until all partial sums are complete
  tracked.mark(SpanKind::Wait);

  // The part of the device's chunk that belongs to this worker.
  int64_t chunk = chunkBegin(reduce.elements, worker.device, devices);
  int64_t chunkSize = chunkBegin(reduce.elements, worker.device + 1, devices) - chunk;
  int64_t first = chunkBegin(chunkSize, worker.thread, pool_.threads());
  int64_t size = chunkBegin(chunkSize, worker.thread + 1, pool_.threads()) - first;
  if (size > 0) {
    size_t bytes = static_cast<size_t>(size) * sizeof(float);
    auto staged = stagingElements(static_cast<uint64_t>(reduce.elements), static_cast<uint64_t>(devices));
    int64_t stride = static_cast<int64_t>(staged) / devices;
    auto node = [&](int device) {
      return device == worker.device ? reduce.partials[device] + chunk + first
                                     : program.staging[worker.device] + stride * device + first;
    };
    for (int peer = 0; peer < active; ++peer) {
      if (peer == worker.device)
        continue;
      std::memcpy(node(peer), reduce.partials[peer] + chunk + first, bytes);
      received += bytes;
      if (static_cast<int>(index) == corruptCollective_ && peer == corruptDevice_ &&
          worker.thread == pool_.threads() - 1)
        // flip the highest bit of the exponent, which rounding cannot hide
        reinterpret_cast<unsigned char *>(node(peer))[3] ^= 0x40;
    }
    tracked.mark(SpanKind::Transfer);
    float *result = reduce.results[worker.device] + chunk + first;
    const std::vector<TreeSum> &sums = tree.sums[active];
    int64_t tiles = (size + tree.elementsPerTile - 1) / tree.elementsPerTile;
    for (const TreeSum &sum : sums)
      addPartials(tree, node(sum.left), node(sum.right), &sum == &sums.back() ? result : node(sum.left), size, 0,
                  tiles);
    if (sums.empty())
      std::memcpy(result, node(0), bytes);
    tracked.mark(SpanKind::Sum);
  }
  pool_.waitForAll(); // wait until every chunk of the result is complete on its owner
  tracked.mark(SpanKind::Wait);

  for (int peer = 0; peer < devices; ++peer) {
    if (peer == worker.device)
      continue;
    int64_t begin = chunkBegin(reduce.elements, peer, devices), end = chunkBegin(reduce.elements, peer + 1, devices);
    auto copy = [&](ElementRange needed) {
      int64_t first = std::max(begin, needed.begin), length = std::min(end, needed.end) - first;
      if (length <= 0)
        return;
      int64_t part = first + chunkBegin(length, worker.thread, pool_.threads());
      int64_t partEnd = first + chunkBegin(length, worker.thread + 1, pool_.threads());
      size_t bytes = static_cast<size_t>(partEnd - part) * sizeof(float);
      std::memcpy(reduce.results[worker.device] + part, reduce.results[peer] + part, bytes);
      received += bytes;
    };
    if (reduce.scattered)
      std::ranges::for_each(reduce.whole, copy);
    else
      copy({begin, end});
  }
  tracked.mark(SpanKind::Transfer);
  pool_.waitForAll(); // wait until other devices have read the partial sums and the results
  tracked.mark(SpanKind::Wait);
  return received;
}

uint64_t LocalCollectives::gather(const BoundProgram &program, uint32_t index, const Worker &worker,
                                  TrackedStep tracked) {
  uint64_t received = 0;
  pool_.waitForAll(); // wait until all parts are complete
  tracked.mark(SpanKind::Wait);
  for (const BoundPart &part : program.gathers[index])
    for (int peer = 0; peer < pool_.devices(); ++peer) {
      if (peer == worker.device)
        continue;
      int64_t begin = part.parts[static_cast<size_t>(peer)], length = part.parts[static_cast<size_t>(peer) + 1] - begin;
      int64_t first = begin + chunkBegin(length, worker.thread, pool_.threads());
      int64_t last = begin + chunkBegin(length, worker.thread + 1, pool_.threads());
      auto at = static_cast<uint64_t>(first) * part.elementBytes;
      auto bytes = static_cast<uint64_t>(last - first) * part.elementBytes;
      if (bytes > 0)
        std::memcpy(part.memory[static_cast<size_t>(worker.device)] + at, part.memory[static_cast<size_t>(peer)] + at,
                    bytes);
      received += bytes;
    }
  tracked.mark(SpanKind::Transfer);
  pool_.waitForAll(); // wait until other devices have read this device's part
  tracked.mark(SpanKind::Wait);
  return received;
}

// The sums form a binary counter: micro-batch b completes one subtree for each trailing 1 bit of b. If the last
// micro-batch comes early, the missing right children are empty, and their parents equal the left children.
void LocalCollectives::addMicroBatch(const BoundProgram &program, uint32_t index, int64_t microBatch, bool last,
                                     const Worker &worker, TrackedStep tracked) {
  pool_.waitForDevice(worker.device); // wait until the partial sum is complete
  tracked.mark(SpanKind::Wait);
  const BoundAllReduce &reduce = program.allReduces[index];
  auto device = static_cast<size_t>(worker.device);
  const std::vector<float *> &sums = reduce.sums[device];
  auto bits = static_cast<uint64_t>(microBatch);
  int64_t first = chunkBegin(reduce.elements, worker.thread, pool_.threads());
  int64_t size = chunkBegin(reduce.elements, worker.thread + 1, pool_.threads()) - first;
  int64_t tiles = (size + program.tree->elementsPerTile - 1) / program.tree->elementsPerTile;
  float *partial = reduce.partials[device] + first, *sum = partial;
  float *goal = !last                           ? sums[static_cast<size_t>(std::countr_one(bits))] + first
                : program.sessionDevices() == 1 ? reduce.results[device] + first
                                                : partial;
  for (size_t level = 0; size > 0 && (last ? bits : bits & 1); ++level, bits >>= 1) {
    if (!(bits & 1))
      continue;
    bool isLast = last ? bits == 1 : !(bits & 2);
    float *out = isLast ? goal : partial;
    addPartials(*program.tree, sums[level] + first, sum, out, size, 0, tiles);
    sum = out;
  }
  if (sum != goal && size > 0)
    std::memcpy(goal, sum, static_cast<size_t>(size) * sizeof(float));
  tracked.mark(SpanKind::Sum);
}

void LocalCollectives::addTaken(const BoundProgram &program, uint32_t index, int64_t microBatches, int thread) const {
  const BoundAllReduce &reduce = program.allReduces[index];
  int64_t first = chunkBegin(reduce.elements, thread, pool_.threads());
  int64_t size = chunkBegin(reduce.elements, thread + 1, pool_.threads()) - first;
  if (size == 0)
    return;
  int64_t tiles = (size + program.tree->elementsPerTile - 1) / program.tree->elementsPerTile;
  float *result = reduce.results[0] + first;
  auto sum = [&](int64_t microBatch) { return reduce.sums[0][static_cast<size_t>(microBatch)] + first; };
  for (int64_t distance = 1; distance < microBatches; distance *= 2)
    for (int64_t left = 0; left + distance < microBatches; left += 2 * distance)
      addPartials(*program.tree, sum(left), sum(left + distance), 2 * distance < microBatches ? sum(left) : result,
                  size, 0, tiles);
  if (microBatches == 1)
    std::memcpy(result, sum(0), static_cast<size_t>(size) * sizeof(float));
}

} // namespace mtrun
