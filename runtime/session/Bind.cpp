// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Bind.h"

#include "runtime/plan/Check.h"
#include "runtime/session/Metric.h"
#include "runtime/support/device_memory.h"
#include "runtime/support/phases.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

// Binds one program for one device. The plan has been verified, so all indices and offsets are valid.
class Binder {
public:
  Binder(const Plan &plan, const fb::Program &program, const DeviceGroup &group, const DeviceLayout &layout,
         const MemoryMap &memory, int device, int taker = 0)
      : plan_(plan), program_(program), group_(group), layout_(layout), memory_(memory), device_(device),
        number_(layout.first + device), alone_(layout.alone()),
        arena_(taker ? memory.takers[static_cast<size_t>(taker) - 1] : memory.arenas[static_cast<size_t>(device)]) {
    for (uint32_t p = 0; p < layout.optimizer.programs.size(); ++p)
      if (plan.tables().programs()->Get(p) == &program)
        divided_ = &layout.optimizer.programs[p];
  }

  Status bind(DeviceProgram &result) {
    int64_t shardRows = static_cast<int64_t>(plan_.shardRows());
    for (int d = 0; d < number_; ++d)
      result.firstRow += layout_.shards[d] * shardRows;
    result.maxRows = layout_.shards[number_] * shardRows;
    result.passRows = std::min(result.maxRows, layout_.passShards * shardRows);
    result.partRows = program_.parts() && layout_.takers > 0 ? layout_.partRows : result.passRows;
    std::vector<Phase> phases;
    if (layout_.inMicroBatches()) {
      auto variant = static_cast<uint32_t>(layout_.variants[number_]);
      if (Status status = phasesOf(plan_.tables(), program_, variant, phases); !status.ok())
        return status;
    } else {
      phases.push_back(wholeProgram());
    }
    reserve(result, phases);
    for (const Phase &phase : phases) {
      auto begin = static_cast<uint32_t>(result.steps.size());
      bindSteps(result, phase);
      if (layout_.inMicroBatches() && !phase.steps.empty())
        result.phases.push_back({begin, static_cast<uint32_t>(result.steps.size()), phase.repeats});
    }
    return {};
  }

  std::byte *partial(const fb::Step &step) const {
    return arena_ + step.partial_offset()->Get(static_cast<uint32_t>(layout_.variants[number_]));
  }

  // Returns the addresses of an all-reduce's sums of micro-batches, as BoundAllReduce has them. `end`: offset of the
  // free part of the device's memory for sums; advanced by the call.
  std::vector<float *> sums(const fb::Step &step, uint64_t &end) const {
    std::vector<float *> result;
    auto passes = static_cast<uint64_t>(layout_.shards[number_]) >> layout_.variants[number_];
    if (passes == 1)
      return result;
    if (layout_.takers > 0) {
      for (uint64_t microBatch = 0; microBatch < passes; ++microBatch) {
        result.push_back(reinterpret_cast<float *>(memory_.sums[device_] + end));
        end += static_cast<uint64_t>(alignBuffer(static_cast<int64_t>(step.partial_bytes())));
      }
      return result;
    }
    auto levels = static_cast<uint64_t>(std::countr_zero(passes)) - 1;
    uint64_t bytes = microBatchSums(step.partial_bytes(), passes);
    for (uint64_t level = 0; level < levels; ++level)
      result.push_back(reinterpret_cast<float *>(memory_.sums[device_] + end + level * (bytes / levels)));
    end += bytes;
    result.push_back(reinterpret_cast<float *>(memory_.shared[device_] + step.result_offset()));
    return result;
  }

  // The program's divided optimizer, or null.
  const DividedProgram *divided() const { return divided_; }
  // The memory of each gather that bind() has added, in their order.
  std::vector<BoundGather> &gathers() { return gathers_; }

  // Returns null for the caller's tensors, whose addresses are set in each step.
  void *pointer(const fb::Buffer &buffer) const {
    switch (buffer.space()) {
    case fb::Space::Arena:
      return arena_ + buffer.offset()->Get(static_cast<uint32_t>(layout_.variants[number_]));
    case fb::Space::Shared:
      return sharedPointer(buffer);
    case fb::Space::Variable:
      return memory_.variables[device_] + memory_.places[device_].offsets[buffer.index()];
    case fb::Space::Constant:
      return const_cast<std::byte *>(memory_.constants[device_]) + buffer.offset()->Get(0);
    case fb::Space::Signature:
      return nullptr;
    }
    return nullptr;
  }

private:
  // Returns one phase with all steps in order, for a device that computes all its rows at once.
  Phase wholeProgram() const {
    Phase phase;
    bool afterAllReduce = false;
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const fb::Step &step = *program_.steps()->Get(i);
      bool launch = step.kernel() >= 0;
      if (launch || !alone_)
        phase.steps.push_back({i, false, launch && (afterAllReduce || step.wait() != fb::Wait::None)});
      afterAllReduce = !launch;
    }
    return phase;
  }

  // Reserves all vectors before they are filled, because the bound steps keep pointers into them.
  void reserve(DeviceProgram &result, const std::vector<Phase> &phases) const {
    size_t steps = 0, segments = 0, pointers = 0;
    for (const Phase &phase : phases)
      for (const PhaseStep &step : phase.steps) {
        const auto *list = program_.steps()->Get(step.step)->segments();
        steps += divided_ && divided_->launches.contains(step.step) ? 2 : 1;
        segments += count(list);
        for (uint32_t s = 0; s < count(list); ++s)
          pointers += count(list->Get(s)->buffers());
      }
    result.steps.reserve(steps);
    result.segments.reserve(segments);
    result.pointers.reserve(pointers);
    result.sizes.reserve(pointers);
    result.written.reserve(pointers);
  }

  // Returns the address of a shared buffer. With a single device the partial sum is the result, and the shared block
  // has no memory for results.
  void *sharedPointer(const fb::Buffer &buffer) const {
    uint64_t offset = buffer.offset()->Get(0), results = 0;
    if (alone_)
      for (uint32_t i = 0; i < count(program_.steps()); ++i) {
        const fb::Step &step = *program_.steps()->Get(i);
        if (step.kernel() >= 0 || offset < step.result_offset())
          continue;
        if (offset - step.result_offset() < step.partial_bytes())
          return partial(step) + (offset - step.result_offset());
        results += bytesOfLoneResult(step.partial_bytes());
      }
    return memory_.shared[device_] + (offset - results);
  }

  // Sets the grid of a launch. Returns the elements per tile of an elementwise kernel.
  uint64_t setGrid(const fb::Kernel &kernel, BoundStep &bound) const {
    auto set = [&](const auto &grid) {
      bound.rowsPerTile = static_cast<int64_t>(grid.rows_per_tile());
      bound.innerTiles = static_cast<int64_t>(grid.inner_tiles());
      return grid.elements_per_tile();
    };
    if (!group_.blocks())
      return set(kernel);
    bound.threads = kernel.gpu()->threads(); // verified to exist if the plan has code for GPUs
    bound.hasPartials = kernel.gpu()->partial_bytes() > 0;
    return set(*kernel.gpu());
  }

  // Adds the steps of a phase, and the gathers as late as possible: a gather waits for the all-reduces before it.
  void bindSteps(DeviceProgram &result, const Phase &phase) {
    std::vector<uint32_t> due; // divided launches whose results are not gathered yet
    auto gather = [&](uint32_t before) {
      for (size_t i = 0; i < due.size();) {
        if (divided_->launches.at(due[i]).gatherBefore > before) {
          ++i;
          continue;
        }
        bindGather(result, due[i]);
        due.erase(due.begin() + static_cast<std::ptrdiff_t>(i));
      }
    };
    for (const PhaseStep &step : phase.steps) {
      gather(step.step);
      bindStep(result, step);
      if (divided_ && divided_->launches.contains(step.step))
        due.push_back(step.step);
    }
    gather(count(program_.steps()));
  }

  // Adds a step that gathers what a divided launch has written, other than the optimizer's variables.
  void bindGather(DeviceProgram &result, uint32_t of) {
    const fb::Step &step = *program_.steps()->Get(of);
    const fb::Kernel &kernel = *plan_.tables().kernels()->Get(static_cast<uint32_t>(step.kernel()));
    const DividedLaunch &divided = divided_->launches.at(of);
    BoundGather gather;
    for (uint32_t s = 0; s < count(step.segments()); ++s)
      for (uint32_t b = 0; b < count(step.segments()->Get(s)->buffers()); ++b) {
        const fb::Buffer &buffer = *program_.buffers()->Get(step.segments()->Get(s)->buffers()->Get(b));
        const fb::KernelArgument &argument = *kernel.arguments()->Get(b);
        bool isWhole = buffer.space() != fb::Space::Variable || !layout_.optimizer.divides(buffer.index());
        if (!divided.segments[s].empty() && argument.written() && argument.element_bytes() > 0 && isWhole)
          gather.push_back(
              {{static_cast<std::byte *>(pointer(buffer))}, argument.element_bytes(), divided.segments[s]});
      }
    if (gather.empty())
      return;
    BoundStep bound = {};
    bound.gathers = bound.once = true;
    bound.allReduce = static_cast<uint32_t>(gathers_.size());
    bound.index = of;
    result.steps.push_back(bound);
    gathers_.push_back(std::move(gather));
  }

  void bindStep(DeviceProgram &result, const PhaseStep &step) const {
    const fb::Step &of = *program_.steps()->Get(step.step);
    BoundStep bound = {};
    if (of.kernel() >= 0)
      bound = bindLaunch(result, step.step);
    else
      bound.allReduce = static_cast<uint32_t>(of.collective()); // verified: all-reduces are numbered in order
    bound.index = step.step;
    bound.isTail = group_.blocks() && of.tail();
    bound.waits = step.waits && !bound.isTail;
    bound.once = step.once;
    result.steps.push_back(bound);
  }

  // Returns the part of a segment that this device computes; empty if it computes the whole segment.
  const Parts &partsOf(uint32_t step, uint32_t segment) const {
    static const Parts whole;
    auto launch = divided_ ? divided_->launches.find(step) : decltype(divided_->launches.end())();
    return divided_ && launch != divided_->launches.end() ? launch->second.segments[segment] : whole;
  }

  BoundStep bindLaunch(DeviceProgram &result, uint32_t index) const {
    const fb::Step &step = *program_.steps()->Get(index);
    const fb::Kernel &kernel = *plan_.tables().kernels()->Get(static_cast<uint32_t>(step.kernel()));
    BoundStep bound = {};
    bound.kernel = group_.kernel(static_cast<uint32_t>(step.kernel()));
    bound.elementwise = kernel.kind() == fb::KernelKind::Elementwise;
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
      const Parts &parts = partsOf(index, s);
      int64_t first = parts.empty() ? 0 : parts[static_cast<size_t>(number_)];
      target.count =
          parts.empty() ? static_cast<int64_t>(segment.count()) : parts[static_cast<size_t>(number_) + 1] - first;
      if (bound.elementwise) {
        target.tiles = (target.count + static_cast<int64_t>(perTile) - 1) / static_cast<int64_t>(perTile);
        bound.elementTiles += target.tiles;
      }
      for (uint32_t b = 0; b < target.bufferCount; ++b) {
        const fb::Buffer &buffer = *program_.buffers()->Get(segment.buffers()->Get(b));
        const fb::KernelArgument &argument = *kernel.arguments()->Get(b);
        bindPointer(result, buffer);
        if (uint64_t bytes = argument.element_bytes(); !parts.empty() && bytes > 0) {
          if (buffer.space() != fb::Space::Variable || !layout_.optimizer.divides(buffer.index()))
            result.pointers.back() = static_cast<std::byte *>(result.pointers.back()) + bytes * first;
          result.sizes.back() = bytes * static_cast<uint64_t>(target.count);
        }
        result.written.push_back(buffer.space() == fb::Space::Variable && argument.written());
        bound.writes = bound.writes || result.written.back();
      }
      result.segments.push_back(target);
    }
    return bound;
  }

  void bindPointer(DeviceProgram &result, const fb::Buffer &buffer) const {
    result.pointers.push_back(pointer(buffer));
    result.sizes.push_back(buffer.fixed_bytes() + buffer.row_bytes() * static_cast<uint64_t>(result.passRows));
    if (buffer.space() == fb::Space::Signature)
      result.patches.push_back({&result.pointers.back(), buffer.index(), buffer.row_bytes()});
  }

  const Plan &plan_;
  const fb::Program &program_;
  const DeviceGroup &group_;
  const DeviceLayout &layout_;
  const MemoryMap &memory_;
  int device_; // index in this process
  int number_; // index in the session
  bool alone_;
  std::byte *arena_;
  const DividedProgram *divided_ = nullptr;
  std::vector<BoundGather> gathers_;
};

} // namespace

Status bindProgram(const Plan &plan, const fb::Program &program, const DeviceGroup &group, const DeviceLayout &layout,
                   const MemoryMap &memory, Executable &result) {
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
    result.bound.devices.emplace_back();
    if (Status status = binders.back().bind(result.bound.devices.back()); !status.ok())
      return status;
  }
  result.bound.takes = layout.takers > 0;
  for (int taker = 1; taker < layout.takers; ++taker) {
    binders.emplace_back(plan, program, group, layout, memory, 0, taker);
    result.bound.takers.emplace_back();
    if (Status status = binders.back().bind(result.bound.takers.back()); !status.ok())
      return status;
  }
  result.bound.gathers = binders[0].gathers();
  for (size_t d = 1; d < result.bound.devices.size(); ++d)
    for (size_t g = 0; g < result.bound.gathers.size(); ++g)
      for (size_t i = 0; i < result.bound.gathers[g].size(); ++i)
        result.bound.gathers[g][i].memory.push_back(binders[d].gathers()[g][i].memory[0]);
  std::vector<uint64_t> sumsEnd(static_cast<size_t>(group.devices()));
  for (uint32_t i = 0; i < count(program.steps()); ++i) {
    const fb::Step &step = *program.steps()->Get(i);
    if (step.kernel() >= 0)
      continue;
    BoundAllReduce reduce;
    reduce.elements = static_cast<int64_t>(step.partial_bytes() / sizeof(float));
    for (const Binder &binder : binders)
      reduce.partials.push_back(reinterpret_cast<float *>(binder.partial(step)));
    for (int d = 0; d < group.devices(); ++d) {
      std::byte *result = layout.alone() ? binders[d].partial(step) : memory.shared[d] + step.result_offset();
      reduce.results.push_back(reinterpret_cast<float *>(result));
      reduce.sums.push_back(binders[d].sums(step, sumsEnd[d]));
    }
    if (const DividedProgram *divided = binders[0].divided(); divided && divided->scattered.contains(i)) {
      reduce.scattered = true;
      reduce.whole = divided->scattered.at(i);
    }
    result.bound.allReduces.push_back(std::move(reduce));
  }
  auto readBack = [&](uint32_t buffer, uint64_t numbers) {
    const fb::Buffer &from = *program.buffers()->Get(buffer);
    void *place = binders[0].pointer(from);
    bool isDouble = from.dtype() == fb::DType::F64;
    result.areDoubles.push_back(isDouble);
    result.bound.readBacks.push_back({place, numbers * (isDouble ? sizeof(double) : sizeof(float)), place});
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
  return {};
}

} // namespace mtrun
