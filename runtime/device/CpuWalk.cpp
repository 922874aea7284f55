// SPDX-License-Identifier: Apache-2.0
//
// How the threads of CPU devices go through a program.
#include "runtime/device/CpuDeviceGroup.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mtrun {
namespace {

struct Portion {
  int64_t begin, end;
};

// Returns the part of [0, total) for worker `index` of `workers`. No overflow: total < 2^40, workers < 2^11.
Portion portionOf(int64_t total, int index, int workers) {
  return {total * index / workers, total * (index + 1) / workers};
}

// Runs tiles [begin, end) of a launch. Tiles are numbered through all segments. `each`: the tiles of a segment, if the
// kernel is not Elementwise.
void runSegments(const BoundStep &step, mt_kernel_params &params, int64_t each, Portion tiles) {
  for (uint32_t s = 0; s < step.segmentCount && tiles.end > 0; ++s) {
    const BoundSegment &segment = step.segments[s];
    int64_t count = step.elementwise ? segment.tiles : each;
    if (tiles.begin < count) {
      params.count = segment.count;
      reinterpret_cast<mt_kernel_fn>(step.kernel)(&params, segment.buffers, std::max<int64_t>(tiles.begin, 0),
                                                  std::min(tiles.end, count));
    }
    tiles.begin -= count;
    tiles.end -= count;
  }
  params.count = 0;
}

// Runs the part of a launch of one of `threads` threads.
void runPart(const BoundStep &step, mt_kernel_params &params, int thread, int threads) {
  int64_t each = step.elementwise ? 0
                                  : (step.rowsPerTile ? (params.rows + step.rowsPerTile - 1) / step.rowsPerTile : 1) *
                                        step.innerTiles;
  Portion part = portionOf(step.elementwise ? step.elementTiles : each * step.segmentCount, thread, threads);
  if (part.begin < part.end)
    runSegments(step, params, each, part);
}

} // namespace

void CpuDeviceGroup::pointToRows(DeviceProgram &device, const StepArguments &arguments, int64_t row) {
  for (const SignaturePatch &patch : device.patches)
    // Computed as integers: for a device without rows, the first row may be past the end of the caller's memory.
    *patch.slot = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(arguments.tensors[patch.entry]) +
                                           static_cast<uint64_t>(row) * patch.rowBytes);
}

// Collectives and exchanges divide their work among the threads in other ways, between barriers.
bool CpuDeviceGroup::sharesWork(const BoundProgram &program) const {
  if (program.takes)
    return true;
  return pool_.devices() == 1 && pool_.threads() > 1 && !exchange_ && program.devices[0].phases.empty();
}

void CpuDeviceGroup::exchange(const BoundProgram &program, const BoundStep &step, int active, const Worker &worker,
                              TrackedStep tracked) {
  counts_[worker.index].received += step.gathers
                                        ? collectives_.gather(program, step.allReduce, worker, tracked)
                                        : collectives_.allReduce(program, step.allReduce, active, worker, tracked);
}

// The next step has a barrier if it needs the result. One thread at a time exchanges: libraries of MPI may refuse calls
// of several threads.
void CpuDeviceGroup::beginExchange(const OrderedStep &ordered, const BoundProgram &program, const Worker &worker,
                                   TrackedStep tracked) {
  const BoundStep &step = program.devices[0].steps[ordered.step];
  pool_.waitForAll();
  tracked.mark(SpanKind::Wait);
  if (worker.index == 0 && ordered.inPlace)
    exchange_->run(program, step);
  else if (worker.index == 0)
    exchange_->post(program, step);
  tracked.mark(SpanKind::Transfer);
}

void CpuDeviceGroup::launch(const BoundStep &step, mt_kernel_params &params, const Worker &worker) {
  counts_[worker.index].launches += worker.thread == 0;
  runPart(step, params, worker.thread, pool_.threads());
}

mt_kernel_params CpuDeviceGroup::paramsOf(const DeviceProgram &device, const Worker &worker) const {
  mt_kernel_params params = device.params; // a copy, because `count` and `scratch` differ per worker
  params.scratch = scratch_.empty() ? nullptr : scratch_[static_cast<size_t>(worker.index)];
  return params;
}

void CpuDeviceGroup::computeMicroBatch(BoundProgram &program, const BoundPhase &phase, int64_t microBatch,
                                       const StepArguments &arguments, const Worker &worker, Track *track) {
  DeviceProgram &own = worker.thread == 0 ? program.devices[0] : program.takers[static_cast<size_t>(worker.thread) - 1];
  const DeviceProgram &device = program.devices[0]; // has the rows of the step
  mt_kernel_params params = paramsOf(device, worker);
  const int64_t begin = microBatch * device.passRows, end = std::min(begin + device.passRows, params.rows);
  for (int64_t row = begin; row == begin || row < end; row += device.partRows) {
    params.first_row = device.firstRow + row;
    params.rows = std::min(device.partRows, end - row);
    params.continues = row > begin;
    pointToRows(own, arguments, params.first_row);
    for (const BoundStep &step : std::span(own.steps).subspan(phase.begin, phase.end - phase.begin)) {
      if (step.once || (step.usesRows && params.rows == 0) || (!step.kernel && row + device.partRows < end))
        continue;
      if (step.kernel) {
        ++counts_[worker.index].launches;
        runPart(step, params, 0, 1);
      } else {
        const BoundAllReduce &reduce = program.allReduces[step.allReduce];
        std::memcpy(reduce.sums[0][static_cast<size_t>(microBatch)],
                    reduce.partials[static_cast<size_t>(worker.thread)],
                    static_cast<size_t>(reduce.elements) * sizeof(float));
      }
      if (track)
        track->mark(step.kernel ? SpanKind::Kernel : SpanKind::Sum, step.index);
    }
  }
}

template <bool traced>
void CpuDeviceGroup::walkShared(BoundProgram &program, const StepArguments &arguments, const Worker &worker,
                                Track *track) {
  // A launch, an all-reduce, or one micro-batch of each thread: thread t computes micro-batch `first` + t.
  struct Item {
    const BoundStep *step;
    const BoundPhase *phase; // of the micro-batches; else null
    int64_t first;
  };
  DeviceProgram &device = program.devices[0];
  SharedWork &work = pool_.work();
  mt_kernel_params params = paramsOf(device, worker);
  const int64_t microBatches = device.phases.empty() ? 1 : device.microBatches(params.rows);
  Item items[SharedWork::maxLaunches];
  uint32_t group = pool_.firstGroup(), count = 0, done = 0;
  auto takeFrom = [&](int owner) {
    for (uint32_t number; (number = work.take(group, owner, count)) < count; ++done) {
      const Item &item = items[number];
      if (!item.phase) {
        if (item.step->kernel)
          runPart(*item.step, params, owner, pool_.threads());
        else
          collectives_.addTaken(program, item.step->allReduce, microBatches, owner);
        if constexpr (traced)
          track->mark(item.step->kernel ? SpanKind::Kernel : SpanKind::Sum, item.step->index);
      } else if (item.first + owner < microBatches) {
        computeMicroBatch(program, *item.phase, item.first + owner, arguments, worker, track);
      }
    }
  };
  // Completes the group, with others' work where they are late. False: the run has ended.
  auto finish = [&] {
    const uint32_t index = items[count - 1].step->index;
    work.finish(group, count, std::exchange(done, 0));
    if (!pool_.goHome(worker))
      return false;
    if (!pool_.expectGroup(group)) {
      for (int i = 1; i < pool_.threads(); ++i)
        takeFrom((worker.thread + i) % pool_.threads());
      work.finish(group, count, std::exchange(done, 0));
    }
    bool open = pool_.waitForGroup(worker, group);
    if constexpr (traced)
      if (open)
        track->mark(SpanKind::Wait, index);
    ++group;
    count = 0;
    return open;
  };
  // False: the run has ended.
  auto add = [&](const Item &item, bool waits) {
    if (count > 0 && (waits || count == SharedWork::maxLaunches) && !finish())
      return false;
    items[count++] = item;
    takeFrom(worker.thread);
    return true;
  };
  auto addStep = [&](const BoundStep &step) {
    if (step.usesRows && params.rows == 0)
      return true;
    counts_[worker.index].launches += step.kernel && worker.thread == 0;
    return add({&step, nullptr, 0}, step.waits || !step.kernel);
  };
  if (device.phases.empty())
    for (const BoundStep &step : device.steps)
      if (step.kernel && !addStep(step)) // a single device has the sums already
        return;
  for (const BoundPhase &phase : device.phases) {
    const BoundStep *steps = device.steps.data();
    for (int64_t first = 0; phase.repeats && first < microBatches; first += pool_.threads())
      if (!add({&steps[phase.begin], &phase, first}, first == 0))
        return;
    bool waits = phase.repeats;
    for (uint32_t i = phase.begin; i < phase.end; ++i)
      if ((steps[i].once || !steps[i].kernel) && !steps[i].gathers) {
        if (std::exchange(waits, false) && count > 0 && !finish())
          return;
        if (!addStep(steps[i]))
          return;
      }
  }
  if (count > 0)
    finish();
}

template <bool traced>
void CpuDeviceGroup::walk(BoundProgram &program, const StepArguments &arguments, const Worker &worker, Tracer *tracer) {
  counts_[worker.index].received = 0;
  Track *track = traced ? &tracer->track(static_cast<size_t>(worker.index)) : nullptr;
  if constexpr (traced)
    track->begin();
  if (sharesWork(program)) {
    walkShared<traced>(program, arguments, worker, track);
    return;
  }
  walkAssigned<traced>(program, arguments, worker, track);
  pool_.waitForAll();
}

template <bool traced>
void CpuDeviceGroup::walkAssigned(BoundProgram &program, const StepArguments &arguments, const Worker &worker,
                                  Track *track) {
  DeviceProgram &device = program.devices[worker.device];
  mt_kernel_params params = paramsOf(device, worker);
  int active = program.activeDevices(arguments.n);
  auto wait = [&](const BoundStep &before) {
    pool_.waitForDevice(worker.device);
    if constexpr (traced)
      track->mark(SpanKind::Wait, before.index);
  };
  auto run = [&](const BoundStep &step) {
    if (!step.kernel) {
      exchange(program, step, active, worker, {track, step.index});
    } else if (step.writes && exchange_ && exchange_->failed()) {
      // the variables stay as they were before this run
    } else if (!step.usesRows || params.rows > 0) {
      launch(step, params, worker);
      if constexpr (traced)
        track->mark(SpanKind::Kernel, step.index);
    }
  };
  // `last`: the number of the last micro-batch of a phase; -1: there are no micro-batches.
  auto runOverlapped = [&](const ExchangeOrder &order, int64_t last) {
    for (const OrderedStep &ordered : order.steps) {
      const BoundStep &step = device.steps[ordered.step];
      if (ordered.needs > 0 && worker.index == 0)
        exchange_->wait(ordered.needs);
      if (ordered.waits)
        wait(step);
      if (step.kernel) {
        run(step);
        continue;
      }
      if (last >= 0 && !step.gathers)
        collectives_.addMicroBatch(program, step.allReduce, last, true, worker, {track, step.index});
      beginExchange(ordered, program, worker, {track, step.index});
    }
  };
  if (device.phases.empty() && exchange_) {
    runOverlapped(ProcessExchange::orders(program)[0], -1);
    return;
  }
  if (device.phases.empty()) {
    for (const BoundStep &step : device.steps) {
      if (step.waits)
        wait(step);
      run(step);
    }
    return;
  }

  const int64_t rows = params.rows, microBatches = device.microBatches(rows);
  for (size_t number = 0; number < device.phases.size(); ++number) {
    const BoundPhase &phase = device.phases[number];
    std::span steps(device.steps.data() + phase.begin, device.steps.data() + phase.end);
    for (int64_t i = 0, turns = phase.repeats ? microBatches : 1; i < turns; ++i) {
      params.first_row = device.firstRow + i * device.passRows;
      params.rows = std::min(device.passRows, rows - i * device.passRows);
      if (i > 0 || phase.begin > 0) {
        wait(steps.front());
        if (worker.thread == 0)
          pointToRows(device, arguments, params.first_row);
        wait(steps.front());
      }
      if (exchange_ && i + 1 == turns) {
        const ExchangeOrder &order = ProcessExchange::orders(program)[number];
        runOverlapped(order, i);
        if (worker.index == 0)
          exchange_->wait(order.posted);
        continue;
      }
      for (const BoundStep &step : steps) {
        if (step.waits)
          wait(step);
        if (step.once && i + 1 < turns)
          continue;
        if (!step.kernel && !step.gathers)
          collectives_.addMicroBatch(program, step.allReduce, i, i + 1 == turns, worker, {track, step.index});
        if (step.kernel || (i + 1 == turns && program.sessionDevices() > 1))
          run(step);
      }
    }
  }
}

template void CpuDeviceGroup::walk<false>(BoundProgram &, const StepArguments &, const Worker &, Tracer *);
template void CpuDeviceGroup::walk<true>(BoundProgram &, const StepArguments &, const Worker &, Tracer *);

} // namespace mtrun
