// SPDX-License-Identifier: Apache-2.0
//
// Checks before the first step that a call of cuBLASLt computes the same bits for a single shard and for all shards of
// a device. The library guarantees that an algorithm supports a batch of products, but not that it computes each as it
// does a single product. Calls of cuDNN compute one shard each and need no check.
#include "runtime/device/cuda/CudaGroup.h"
#include "runtime/device/cuda/Launches.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

std::vector<float> tryNumbers(uint64_t count, uint64_t seed) {
  std::vector<float> values(count);
  uint64_t state = seed * 6364136223846793005u + 1442695040888963407u;
  for (float &value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<int32_t>(state >> 32)) * 0x1p-31f;
  }
  return values;
}

// Checks all of the plan's launches, because a kernel's argument may be a constant in only some of them.
bool Libraries::readsConstant(const BoundStep &step, int64_t argument) const {
  for (const fb::Program *program : Each(tables_->programs()))
    for (const fb::Step *launch : Each(program->steps()))
      if (launch->kernel() == static_cast<int64_t>(kernelOf(step)))
        for (const fb::Segment *segment : Each(launch->segments()))
          if (program->buffers()->Get(segment->buffers()->Get(static_cast<uint32_t>(argument)))->space() ==
              fb::Space::Constant)
            return true;
  return false;
}

// Fills a buffer with random numbers: the host makes the first part, and the device copies it repeatedly.
static void fillWithNumbers(CudaDevices &group, int device, void *buffer, uint64_t bytes, uint64_t seed) {
  constexpr uint64_t most = 1 << 16;
  std::vector<float> values = tryNumbers(std::min(bytes / sizeof(float), most), seed);
  auto *place = static_cast<std::byte *>(buffer);
  uint64_t done = values.size() * sizeof(float);
  group.copyIn(device, place, values.data(), done);
  for (uint64_t next = 0; done < bytes; done += next) {
    next = std::min(done, bytes - done);
    group.copyIn(device, place + done, place, next);
  }
}

Status CudaGroup::checkShard(const DeviceProgram &program, int device, const BoundStep &step) {
  constexpr uint64_t maxCompared = 16 << 20;
  const fb::LibraryCall &call = *parts_.libraries->callOf(step);
  const CudaDevice &on = devices_[static_cast<size_t>(device)];
  for (int64_t argument :
       {static_cast<int64_t>(call.left()), static_cast<int64_t>(call.right()), static_cast<int64_t>(call.bias())}) {
    if (argument < 0 || parts_.libraries->readsConstant(step, argument))
      continue;
    void *const *buffer = step.segments[0].buffers + argument;
    fillWithNumbers(*this, device, *buffer, program.sizes[static_cast<size_t>(buffer - program.pointers.data())],
                    static_cast<uint64_t>(argument));
  }
  int64_t shards = parts_.libraries->shards(program), last = shards - 1;
  std::span<std::byte> place = parts_.libraries->shardResults(device, program, step, last);
  std::vector<std::byte> found[2];
  for (int alone : {0, 1}) {
    Status status = makeCurrent(device)
                        ? parts_.libraries->enqueueShards(device, *on.gpu, program, step, alone ? last : 0,
                                                          alone ? 1 : shards, on.stream)
                        : health_;
    if (!status.ok())
      return status;
    found[alone].resize(std::min(place.size(), maxCompared));
    copyOut(device, found[alone].data(), place.data(), found[alone].size());
    if (!health_.ok())
      return health_;
  }
  if (found[0] == found[1])
    return {};
  return {MT_DEVICE, on.gpu->title() + ": kernel " + parts_.libraries->kernelName(step) +
                         ": expected the same bits of cuBLASLt for a shard alone and among " + std::to_string(shards) +
                         ", found different bits; tune the plan (mtrun tune), or use --libraries off"};
}

// Overwrites operands: before the first step only constants have values.
Status CudaGroup::checkCalls(BoundProgram &program) {
  if (!parts_.libraries->checksCalls())
    return {};
  (void)static_cast<Launches &>(*program.prepared).pointedAt(program);
  std::set<int64_t> rows;
  for (size_t d = 0; d < program.devices.size(); ++d) {
    const DeviceProgram &bound = program.devices[d];
    if (!rows.insert(bound.maxRows).second || parts_.libraries->shards(bound) < 2)
      continue;
    for (const BoundStep &step : bound.steps)
      if (step.kernel && parts_.libraries->has(step) && !isConvolution(*parts_.libraries->callOf(step)))
        if (Status status = checkShard(bound, static_cast<int>(d), step); !status.ok())
          return status;
  }
  return health_;
}

} // namespace mtrun::cuda
