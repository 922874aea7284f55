// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DefaultDevices.h"

#include "runtime/device/DeviceGroup.h"
#include "runtime/plan/Check.h"
#include "runtime/session/Memory.h"
#include "runtime/support/device_spec.h"
#include "runtime/support/launcher.h"
#include "runtime/support/phases.h"
#include "runtime/support/plan_memory.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <sched.h>
#include <unistd.h>

namespace mtrun {

namespace fb = ::mt::plan;

// Reads a CPU quota such as "max 100000" or "200000 100000": microseconds of CPU time per period, and the period.
// Returns the number of CPUs, rounded; 0 means no limit.
static int quotaOf(const char *path) {
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  long quota = 0, period = 0;
  bool limited = fscanf(file, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0;
  fclose(file);
  return limited ? static_cast<int>(std::clamp((quota + period / 2) / period, 1L, 1024L)) : 0;
}

int allowedCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int usableCpus() {
  int cpus = allowedCpus();
  int quota = quotaOf("/sys/fs/cgroup/cpu.max");
  return std::max(1, quota ? std::min(cpus, quota) : cpus);
}

namespace {

// Estimates that are good to a factor of about two. Higher precision is not needed, because many numbers of threads are
// nearly as fast as the best. `flopsPerSecond` is per thread; `bytesPerSecond` is for one thread, `allBytesPerSecond`
// for all threads.
constexpr double flopsPerSecond = 3e10, bytesPerSecond = 1e10, allBytesPerSecond = 1e11;
// The duration of a barrier in seconds, which grows with the number of threads.
constexpr double wait = 2e-7, waitPerThread = 1e-7;

struct Work {
  double flops = 0, bytes = 0, tiles = 1;
};

// Returns the work of one launch with a full batch.
Work workOf(const fb::Kernel &kernel, const fb::Step &step, double rows) {
  double count = 0, segments = 0;
  for (const fb::Segment *segment : Each(step.segments())) {
    count += static_cast<double>(segment->count());
    segments += 1;
  }
  bool elementwise = kernel.elements_per_tile() > 0 && kernel.rows_per_tile() == 0;
  double units = elementwise ? count : segments * rows;
  Work work;
  work.flops =
      static_cast<double>(kernel.flops_per_row()) * units + segments * static_cast<double>(kernel.flops_fixed());
  work.bytes =
      static_cast<double>(kernel.bytes_per_row()) * units + segments * static_cast<double>(kernel.bytes_fixed());
  if (elementwise)
    work.tiles = std::max(segments, count / static_cast<double>(kernel.elements_per_tile()));
  else
    work.tiles =
        segments * (kernel.rows_per_tile() ? std::max(1.0, rows / static_cast<double>(kernel.rows_per_tile())) : 1);
  work.tiles *= static_cast<double>(std::max<uint64_t>(kernel.inner_tiles(), 1));
  return work;
}

double secondsOf(const std::vector<Work> &launches, int threads) {
  double seconds = 0;
  for (const Work &work : launches) {
    double share = std::min(static_cast<double>(threads), work.tiles);
    seconds += std::max(work.flops / (flopsPerSecond * share),
                        work.bytes / std::min(bytesPerSecond * share, allBytesPerSecond));
    seconds += threads > 1 ? wait + waitPerThread * threads : 0;
  }
  return seconds;
}

} // namespace

int usefulThreads(const Plan &plan, int cpus) {
  const fb::Plan &tables = plan.tables();
  const fb::Program *program = nullptr; // the last of these programs that the plan has
  for (std::string_view name : {"predict", "eval_step", "train_step"})
    for (const fb::Program *each : Each(tables.programs()))
      program = each->name()->string_view() == name ? each : program;
  std::vector<Work> launches;
  if (!program)
    return 1;
  for (const fb::Step *step : Each(program->steps()))
    if (step->kernel() >= 0)
      launches.push_back(workOf(*tables.kernels()->Get(static_cast<uint32_t>(step->kernel())), *step,
                                static_cast<double>(plan.batch())));
  // Choose the smallest number of threads whose time is within 5 % of the minimum.
  double least = secondsOf(launches, 1);
  for (int threads = 2; threads <= cpus; ++threads)
    least = std::min(least, secondsOf(launches, threads));
  for (int threads = 1; threads < cpus; ++threads)
    if (secondsOf(launches, threads) <= 1.05 * least)
      return threads;
  return cpus;
}

// Returns whether each program computes a micro-batch of one shard once, without a part that it computes again after a
// sum over the batch. `repeated`: what the training step does for each micro-batch.
static bool hasOnePhase(const Plan &plan, std::vector<PhaseStep> &repeated) {
  for (const fb::Program *program : Each(plan.tables().programs())) {
    std::vector<Phase> phases;
    if (!phasesOf(plan.tables(), *program, 0, phases).ok() ||
        std::count_if(phases.begin(), phases.end(), [](const Phase &phase) { return phase.repeats; }) > 1)
      return false;
    for (const Phase &phase : phases)
      if (phase.repeats && program->name()->string_view() == "train_step")
        repeated = phase.steps;
  }
  return !repeated.empty();
}

// A step of many samples and few weights, whose values do not stay in the caches, reads and writes them there if it
// computes a shard at a time, or a part of it. Repeated work, above all packing weights, must cost little.
BatchDivision usefulDivision(const Plan &plan, int threads) {
  constexpr uint64_t lastCache = uint64_t{1} << 24, ownCache = 3 << 19; // what a thread may hope for
  constexpr double launchSeconds = 1e-7, packing = 1e-10;               // of a launch, of a byte of weights
  const fb::Plan &tables = plan.tables();
  const auto shards = static_cast<int64_t>(plan.shards()), shardRows = static_cast<int64_t>(plan.shardRows());
  std::vector<PhaseStep> repeated;
  if (tables.fast() || tables.lengths() || (shards + threads - 1) / threads * threads * 5 > shards * 6 ||
      !hasOnePhase(plan, repeated))
    return {};
  auto all = static_cast<uint32_t>(std::countr_zero(plan.shards()));
  DeviceMemory whole = deviceMemory(tables, all, 1, 1), shard = deviceMemory(tables, all, 1, plan.shards());
  if (whole.arena < lastCache ||
      shard.shared + static_cast<uint64_t>(threads) * shard.arena + sumsOfTakers(tables) > whole.shared + whole.arena)
    return {};
  double once = 0, again = 0;
  const fb::Program &program = *plan.program("train_step");
  for (const PhaseStep &step : repeated) {
    const fb::Step &of = *program.steps()->Get(step.step);
    if (of.kernel() < 0 || step.once)
      continue;
    const fb::Kernel &kernel = *tables.kernels()->Get(static_cast<uint32_t>(of.kernel()));
    double segments = count(of.segments());
    once += segments * static_cast<double>(kernel.bytes_per_row() * plan.batch()) / bytesPerSecond;
    again += launchSeconds + segments * packing * static_cast<double>(kernel.bytes_fixed());
  }
  auto most = static_cast<int64_t>(once / (8 * again)) / shards; // parts of a shard
  if (most < 1 || (!program.parts() && shard.arena > 2 * lastCache))
    return {};
  if (!program.parts())
    return {true, shardRows};
  auto parts = std::min<int64_t>(most, static_cast<int64_t>(shard.arena / ownCache) + 1);
  int64_t rows = (shardRows + parts - 1) / parts, unit = static_cast<int64_t>(program.parts()->unit());
  return {true, std::min(shardRows, (rows + unit - 1) / unit * unit)};
}

static bool hasCode(const Plan &plan, std::string_view kind) {
  for (const fb::Target *target : Each(plan.tables().targets()))
    if (target->device() && target->device()->string_view() == kind)
      return true;
  return false;
}

// Returns the CPUs for this process: its share if a launcher has started several on this host and bound none of them.
static int ownCpus() {
  int cpus = usableCpus();
  const Launcher *launcher = nullptr;
  std::optional<int> here;
  if (isIndependent() || !findLauncher(launcher).ok() || !launcher || !launcher->mpi || !launcher->localSize ||
      !environmentNumber(launcher->localSize, here).ok() || allowedCpus() < sysconf(_SC_NPROCESSORS_ONLN))
    return cpus;
  return std::max(1, cpus / std::max(1, here.value_or(1)));
}

std::string defaultDevices(const Plan &plan) {
  std::vector<std::string> gpus;
  for (const DeviceKind &kind : deviceKinds)
    if (kind.gpu && hasCode(plan, kind.name) && listDevices(gpus).ok() && !gpus.empty())
      return firstGpus(kind, std::min<int64_t>(static_cast<int64_t>(gpus.size()), plan.shards()));
  int threads = usefulThreads(plan, std::min(ownCpus(), 1024));
  return threads == 1 ? "cpu:1" : "cpu:1x" + std::to_string(threads);
}

} // namespace mtrun
