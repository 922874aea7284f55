// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Bind.h"

#include "runtime/plan/Check.h"
#include "runtime/session/Metric.h"

#include <algorithm>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

// Binds one program for one device. The plan is verified: indices and offsets are good.
class Binder {
public:
  Binder(const Plan &plan, const fb::Program &program, const DeviceGroup &group, const DeviceLayout &layout,
         const MemoryMap &memory, int device)
      : plan_(plan), program_(program), group_(group), layout_(layout), memory_(memory), device_(device),
        number_(layout.first + device), alone_(layout.shards.size() == 1) {}

  DeviceProgram bind() {
    DeviceProgram result;
    int64_t shardRows = static_cast<int64_t>(plan_.shardRows());
    for (int d = 0; d < number_; ++d)
      result.firstRow += layout_.shards[d] * shardRows;
    result.maxRows = layout_.shards[number_] * shardRows;
    reserve(result);
    bool afterAllReduce = false;
    uint32_t allReduces = 0;
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const fb::Step &step = *program_.steps()->Get(i);
      if (step.kernel() >= 0) {
        result.steps.push_back(bindLaunch(result, step, afterAllReduce));
        result.steps.back().index = i;
      } else if (!alone_) {
        BoundStep bound = {};
        bound.allReduce = allReduces;
        bound.index = i;
        result.steps.push_back(bound);
      }
      allReduces += step.kernel() < 0;
      afterAllReduce = step.kernel() < 0;
    }
    return result;
  }

  std::byte *partial(const fb::Step &step) const {
    return memory_.arenas[device_] + step.partial_offset()->Get(static_cast<uint32_t>(layout_.variants[number_]));
  }

  // Null for the caller's tensors, which are patched in at each step.
  void *pointer(const fb::Buffer &buffer) const {
    switch (buffer.space()) {
    case fb::Space::Arena:
      return memory_.arenas[device_] + buffer.offset()->Get(static_cast<uint32_t>(layout_.variants[number_]));
    case fb::Space::Shared:
      return sharedPointer(buffer);
    case fb::Space::Variable:
      return memory_.variables[device_] + plan_.tables().variables()->Get(buffer.index())->offset();
    case fb::Space::Constant:
      return const_cast<std::byte *>(memory_.constants[device_]) + buffer.offset()->Get(0);
    case fb::Space::Signature:
      return nullptr;
    }
    return nullptr;
  }

private:
  // Pointers into these vectors are taken while they fill, so they must not move.
  void reserve(DeviceProgram &result) const {
    size_t segments = 0, pointers = 0;
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const auto *list = program_.steps()->Get(i)->segments();
      segments += count(list);
      for (uint32_t s = 0; s < count(list); ++s)
        pointers += count(list->Get(s)->buffers());
    }
    result.steps.reserve(count(program_.steps()));
    result.segments.reserve(segments);
    result.pointers.reserve(pointers);
    result.sizes.reserve(pointers);
  }

  // A lone device's partial sum is the result.
  void *sharedPointer(const fb::Buffer &buffer) const {
    uint64_t offset = buffer.offset()->Get(0);
    if (alone_)
      for (uint32_t i = 0; i < count(program_.steps()); ++i) {
        const fb::Step &step = *program_.steps()->Get(i);
        if (step.kernel() < 0 && offset >= step.result_offset() && offset - step.result_offset() < step.partial_bytes())
          return partial(step) + (offset - step.result_offset());
      }
    return memory_.shared[device_] + offset;
  }

  // Returns the elements of an Elementwise kernel's tile.
  uint64_t setGrid(const fb::Kernel &kernel, BoundStep &bound) const {
    auto set = [&](const auto &grid) {
      bound.rowsPerTile = static_cast<int64_t>(grid.rows_per_tile());
      bound.innerTiles = static_cast<int64_t>(grid.inner_tiles());
      return grid.elements_per_tile();
    };
    if (!group_.blocks())
      return set(kernel);
    bound.threads = kernel.gpu()->threads(); // verified to be there where the plan has code for GPUs
    return set(*kernel.gpu());
  }

  BoundStep bindLaunch(DeviceProgram &result, const fb::Step &step, bool afterAllReduce) const {
    const fb::Kernel &kernel = *plan_.tables().kernels()->Get(static_cast<uint32_t>(step.kernel()));
    BoundStep bound = {};
    bound.kernel = group_.kernel(static_cast<uint32_t>(step.kernel()));
    bound.map = kernel.kind() == fb::KernelKind::Elementwise;
    bound.waits = afterAllReduce || step.wait() != fb::Wait::None;
    bound.usesRows = kernel.uses_rows();
    bound.isUpdate = step.share();
    uint64_t perTile = setGrid(kernel, bound);
    bound.segments = result.segments.data() + result.segments.size();
    bound.segmentCount = count(step.segments());
    for (uint32_t s = 0; s < bound.segmentCount; ++s) {
      const fb::Segment &segment = *step.segments()->Get(s);
      BoundSegment target = {};
      target.buffers = result.pointers.data() + result.pointers.size();
      target.bufferCount = count(segment.buffers());
      target.count = static_cast<int64_t>(segment.count());
      if (bound.map) {
        target.tiles = (target.count + static_cast<int64_t>(perTile) - 1) / static_cast<int64_t>(perTile);
        bound.mapTiles += target.tiles;
      }
      for (uint32_t b = 0; b < target.bufferCount; ++b)
        bindPointer(result, *program_.buffers()->Get(segment.buffers()->Get(b)));
      result.segments.push_back(target);
    }
    return bound;
  }

  void bindPointer(DeviceProgram &result, const fb::Buffer &buffer) const {
    result.pointers.push_back(pointer(buffer));
    result.sizes.push_back(buffer.fixed_bytes() + buffer.row_bytes() * static_cast<uint64_t>(result.maxRows));
    if (buffer.space() == fb::Space::Signature)
      result.patches.push_back({&result.pointers.back(), buffer.index(), buffer.row_bytes()});
  }

  const Plan &plan_;
  const fb::Program &program_;
  const DeviceGroup &group_;
  const DeviceLayout &layout_;
  const MemoryMap &memory_;
  int device_; // of this process
  int number_; // of the session
  bool alone_;
};

} // namespace

Executable bindProgram(const Plan &plan, const fb::Program &program, const DeviceGroup &group,
                       const DeviceLayout &layout, const MemoryMap &memory) {
  Executable result;
  result.program = &program;
  result.bound.tree = &layout.tree;
  result.bound.staging = memory.staging;
  result.bound.firstDevice = layout.first;
  int64_t firstRow = 0;
  for (int shards : layout.shards) {
    if (layout.shards.size() != static_cast<size_t>(group.devices()))
      result.bound.firstRows.push_back(firstRow);
    firstRow += shards * static_cast<int64_t>(plan.shardRows());
  }
  std::vector<Binder> binders;
  for (int d = 0; d < group.devices(); ++d) {
    binders.emplace_back(plan, program, group, layout, memory, d);
    result.bound.devices.push_back(binders.back().bind());
  }
  for (uint32_t i = 0; i < count(program.steps()); ++i) {
    const fb::Step &step = *program.steps()->Get(i);
    if (step.kernel() >= 0)
      continue;
    BoundAllReduce reduce;
    reduce.elements = static_cast<int64_t>(step.partial_bytes() / sizeof(float));
    for (int d = 0; d < group.devices(); ++d) {
      reduce.partials.push_back(reinterpret_cast<float *>(binders[d].partial(step)));
      reduce.results.push_back(reinterpret_cast<float *>(memory.shared[d] + step.result_offset()));
    }
    result.bound.allReduces.push_back(std::move(reduce));
  }
  auto readBack = [&](uint32_t buffer, uint64_t numbers) {
    void *place = binders[0].pointer(*program.buffers()->Get(buffer));
    result.bound.readBacks.push_back({place, numbers * sizeof(float), place});
  };
  for (uint32_t i = 0; i < count(program.metrics()); ++i) {
    const fb::Metric &metric = *program.metrics()->Get(i);
    result.metricSums.push_back(sumsOf(metric));
    readBack(metric.value(), sumsOf(metric));
    readBack(metric.weight(), 1);
  }
  if (program.learning_rate() >= 0)
    readBack(static_cast<uint32_t>(program.learning_rate()), 1);
  for (uint32_t i = 0; i < count(program.signature()); ++i)
    result.bound.signature.push_back(
        {program.signature()->Get(i)->row_bytes(), program.signature()->Get(i)->role() == fb::Role::Output});
  return result;
}

} // namespace mtrun
