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

namespace mtrun {
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
          int64_t begin = chunkBegin(fill.bytes, worker.thread, fill.threads);
          int64_t end = chunkBegin(fill.bytes, worker.thread + 1, fill.threads);
          std::memset(fill.memory + begin, fill.byte, static_cast<size_t>(end - begin));
        }
        fill.pool.waitForAll();
      },
      &fill);
}

void CpuDeviceGroup::copyIn(int device, void *to, const void *from, uint64_t bytes) { std::memcpy(to, from, bytes); }

void CpuDeviceGroup::copyOut(int device, void *to, const void *from, uint64_t bytes) { std::memcpy(to, from, bytes); }

Status CpuDeviceGroup::watchNextRun(const BoundProgram &program, LaunchWatcher see) {
  if (program.takes)
    return {MT_INVALID, "expected whole batches to see launches, found a session that divides them itself; run it with "
                        "--micro-batches 1"};
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
