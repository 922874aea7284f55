// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/CpuDeviceGroup.h"
#include "runtime/device/AvailableMemory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>
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

// Points the device's pointers at row `row` of the caller's tensors.
void pointToRows(DeviceProgram &device, const StepArguments &arguments, int64_t row) {
  for (const SignaturePatch &patch : device.patches)
    // Computed as integers: for a device without rows, the first row may be past the end of the caller's memory.
    *patch.slot = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(arguments.tensors[patch.entry]) +
                                           static_cast<uint64_t>(row) * patch.rowBytes);
}

} // namespace

CpuDeviceGroup::~CpuDeviceGroup() {
  for (auto [memory, bytes] : mappings_)
    munmap(memory, bytes);
}

Status CpuDeviceGroup::start(const GroupOptions &options) {
  counts_.resize(static_cast<size_t>(options.devices) * static_cast<size_t>(options.threads));
  if (options.transport)
    exchange_ = std::make_unique<ProcessExchange>(*options.transport, *options.processGroup, options.places,
                                                  options.dividesOptimizer);
  return pool_.start(options.devices, options.threads, options.pin, options.spin, options.log);
}

uint64_t CpuDeviceGroup::availableMemory() const { return mtrun::availableMemory(); }

static std::string gibibytes(uint64_t bytes) {
  char text[40];
  snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

Status CpuDeviceGroup::reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) {
  // The sum does not overflow: at most 2^10 devices with blocks of at most 2^46 bytes.
  uint64_t needed = std::accumulate(bytes.begin(), bytes.end(), hostBytes);
  if (uint64_t available = availableMemory(); needed > available)
    return {MT_NO_MEMORY, "expected " + gibibytes(needed) + " of memory, found " + gibibytes(available) +
                              " available; compile the model with a smaller batch: mtc compile MODEL --batch B"};
  return {};
}

Status CpuDeviceGroup::allocate(int device, uint64_t bytes, void **memory) {
  // Large pages: kernels read large arrays sequentially, and each small page costs a page-table walk.
  constexpr size_t page = size_t{1} << 21;
  bool large = bytes >= page;
  size_t size = large ? bytes + page : std::max<size_t>(bytes, 64);
  void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return {MT_NO_MEMORY, "expected " + std::to_string(bytes) + " bytes for device " + std::to_string(device) +
                              ", found less memory"};
  mappings_.emplace_back(mapping, size);
  *memory = mapping;
  if (large) {
    *memory = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(mapping) + page - 1) / page * page);
    madvise(*memory, bytes / page * page, MADV_HUGEPAGE); // failure is harmless: the pages stay small
  }
  return {};
}

void CpuDeviceGroup::measureExchanges(const Plan &plan) {
  if (exchange_)
    exchange_->measure(plan);
}

uint64_t CpuDeviceGroup::preparedBytes(const Plan &plan, int64_t maxRows) const {
  return static_cast<uint64_t>(pool_.threads()) * scratchBytes_ + (exchange_ ? exchange_->stagingBytes() : 0);
}

// All programs share the memory. Each thread writes its own scratch memory first, so that the pages are near it.
Status CpuDeviceGroup::prepare(BoundProgram &program) {
  if (exchange_ && !exchange_->hasStaging()) {
    void *memory = nullptr;
    if (Status status = allocate(0, exchange_->stagingBytes(), &memory); !status.ok())
      return status;
    exchange_->setStaging(memory);
  }
  if (exchange_)
    if (Status status = exchange_->prepare(program); !status.ok())
      return status;
  if (scratchBytes_ == 0 || !scratch_.empty())
    return {};
  uint64_t bytes = static_cast<uint64_t>(pool_.threads()) * scratchBytes_;
  for (int device = 0; device < pool_.devices(); ++device) {
    void *memory = nullptr;
    if (Status status = allocate(device, bytes, &memory); !status.ok())
      return status;
    fill(device, memory, 0, bytes);
    for (int thread = 0; thread < pool_.threads(); ++thread)
      scratch_.push_back(static_cast<std::byte *>(memory) + static_cast<uint64_t>(thread) * scratchBytes_);
  }
  return {};
}

// Collectives and exchanges divide their work among the threads in other ways, between barriers.
bool CpuDeviceGroup::sharesWork(const BoundProgram &program) const {
  return pool_.devices() == 1 && pool_.threads() > 1 && !exchange_ && program.devices[0].phases.empty();
}

void CpuDeviceGroup::fill(int device, void *memory, uint8_t byte, uint64_t bytes) {
  struct Fill {
    ThreadPool &pool;
    int device, threads;
    char *memory;
    uint8_t byte;
    int64_t bytes;
  } fill{pool_, device, pool_.threads(), static_cast<char *>(memory), byte, static_cast<int64_t>(bytes)};
  pool_.run(
      [](void *context, const Worker &worker) {
        auto &fill = *static_cast<Fill *>(context);
        if (worker.device == fill.device) {
          Portion portion = portionOf(fill.bytes, worker.thread, fill.threads);
          std::memset(fill.memory + portion.begin, fill.byte, static_cast<size_t>(portion.end - portion.begin));
        }
        fill.pool.waitForAll();
      },
      &fill);
}

void CpuDeviceGroup::copyIn(int device, void *to, const void *from, uint64_t bytes) { std::memcpy(to, from, bytes); }

void CpuDeviceGroup::copyOut(int device, void *to, const void *from, uint64_t bytes) { std::memcpy(to, from, bytes); }

Status CpuDeviceGroup::watchNextRun(const BoundProgram &program, LaunchWatcher see) {
  if (exchange_ || pool_.devices() > 1 || !program.devices[0].phases.empty())
    return {MT_INVALID, "expected CPUs of one process that share variables, without micro-batches, to see launches, "
                        "found others"};
  see_ = std::move(see);
  watched_ = &program;
  return {};
}

// Each launch is a job of the pool.
void CpuDeviceGroup::walkWatched(BoundProgram &program) {
  DeviceProgram &device = program.devices[0];
  struct Job {
    CpuDeviceGroup *group;
    const BoundStep *step;
    const DeviceProgram *device;
  } job{this, nullptr, &device};
  for (const BoundStep &step : device.steps) {
    if (!step.kernel || (step.usesRows && device.params.rows == 0)) // a single device has the sums already
      continue;
    job.step = &step;
    pool_.run(
        [](void *context, const Worker &worker) {
          auto &job = *static_cast<Job *>(context);
          mt_kernel_params params = job.group->paramsOf(*job.device, worker);
          job.group->launch(*job.step, params, worker);
          job.group->pool_.waitForAll();
        },
        &job);
    see_(step, device.params);
  }
  see_ = nullptr;
}

void CpuDeviceGroup::parallel(int64_t tasks, const std::function<void(int64_t)> &task) {
  struct Shared {
    int64_t tasks;
    const std::function<void(int64_t)> &task;
    std::atomic<int64_t> next{0};
  } shared{tasks, task};
  pool_.run(
      [](void *context, const Worker &) {
        auto &shared = *static_cast<Shared *>(context);
        for (int64_t i; (i = shared.next.fetch_add(1, std::memory_order_relaxed)) < shared.tasks;)
          shared.task(i);
      },
      &shared);
}

void CpuDeviceGroup::begin(BoundProgram &program, std::span<const StepArguments> runs) {
  const StepArguments &arguments = runs[0];
  if (!health_.ok())
    return;
  if (exchange_)
    exchange_->begin(program, arguments.n);
  for (DeviceProgram &device : program.devices) {
    device.params.rows = std::clamp<int64_t>(arguments.n - device.firstRow, 0, device.maxRows);
    device.params.first_row = device.firstRow;
    device.params.global_rows = arguments.n;
    device.params.count = 0;
    device.params.seed = arguments.seed;
    pointToRows(device, arguments, device.firstRow);
    rows_ += program.signature.empty() ? 0 : device.params.rows; // `init` has no samples
  }
  struct Walk {
    CpuDeviceGroup *group;
    BoundProgram *program;
    const StepArguments *arguments;
    Tracer *tracer;
  } walk{this, &program, &arguments, program.tracer};
  if (see_ && watched_ == &program) {
    walkWatched(program);
  } else if (program.tracer && program.tracer->beginRun(arguments.n)) {
    pool_.run(
        [](void *context, const Worker &worker) {
          auto &walk = *static_cast<Walk *>(context);
          walk.group->walk<true>(*walk.program, *walk.arguments, worker, walk.tracer);
        },
        &walk);
    program.tracer->endRun();
  } else {
    pool_.run(
        [](void *context, const Worker &worker) {
          auto &walk = *static_cast<Walk *>(context);
          walk.group->walk<false>(*walk.program, *walk.arguments, worker, nullptr);
        },
        &walk);
  }
  if (exchange_) {
    health_ = exchange_->finish(arguments);
    counts_[0].received = exchange_->receivedInRun();
  }
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

template <bool traced>
void CpuDeviceGroup::walkShared(const DeviceProgram &device, const Worker &worker, Track *track) {
  SharedWork &work = pool_.work();
  mt_kernel_params params = paramsOf(device, worker);
  const BoundStep *launches[SharedWork::maxLaunches];
  uint32_t group = pool_.firstGroup(), count = 0, done = 0;
  auto takeFrom = [&](int owner) {
    for (uint32_t launch; (launch = work.take(group, owner, count)) < count; ++done) {
      const BoundStep &step = *launches[launch];
      runPart(step, params, owner, pool_.threads());
      if constexpr (traced)
        track->mark(SpanKind::Kernel, step.index);
    }
  };
  // Completes the group, with others' work where they are late. False: the run has ended.
  auto finish = [&] {
    const uint32_t index = launches[count - 1]->index;
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
  for (const BoundStep &step : device.steps) {
    if (count > 0 && (step.waits || count == SharedWork::maxLaunches) && !finish())
      return;
    if (!step.kernel || (step.usesRows && params.rows == 0)) // a single device has the sums already
      continue;
    counts_[worker.index].launches += worker.thread == 0;
    launches[count++] = &step;
    takeFrom(worker.thread);
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
    walkShared<traced>(program.devices[0], worker, track);
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

uint64_t CpuDeviceGroup::launches() const {
  uint64_t sum = 0;
  for (const Counts &counts : counts_)
    sum += counts.launches;
  return sum;
}

uint64_t CpuDeviceGroup::collectiveBytes() const {
  uint64_t sum = 0;
  for (const Counts &counts : counts_)
    sum += counts.received;
  return sum;
}

void CpuDeviceGroup::corruptPartial(int collective, int device) { collectives_.corruptPartial(collective, device); }

} // namespace mtrun
