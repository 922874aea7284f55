// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaGroup.h"

#include "runtime/device/cuda/Launches.h"
#include "runtime/device/cuda/NcclCommunicator.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

CudaGroup::CudaGroup(const Driver &driver)
    : CudaDevices(driver),
      parts_{*this, std::make_unique<Libraries>(driver), std::make_unique<LocalCommunicator>(*this)} {}

Status CudaGroup::start(const GroupOptions &options) {
  options_ = options;
  if (Status status = open(options.gpus); !status.ok())
    return status;
  for (Launch &launch : launchSlots_) {
    Result result = driver_.ctxSetCurrent(devices_[0].gpu->context);
    if (result == success)
      result = driver_.eventCreate(&launch.done, eventDisableTiming);
    if (result != success)
      return failure(driver_, result, devices_[0].gpu->title() + ": cannot make a stream");
  }
  if (options.processGroup) {
    sessionDevices_ = options.processGroup->processes();
    return NcclCommunicator::open(*this, *options.processGroup, parts_.communicator);
  }
  sessionDevices_ = devices();
  return enablePeers();
}

// Errors are ignored: the process's end frees the resources.
CudaGroup::~CudaGroup() {
  parts_.communicator.reset();
  if (!devices_.empty())
    (void)driver_.ctxSetCurrent(devices_[0].gpu->context);
  for (Launch &launch : launchSlots_)
    if (launch.done)
      (void)driver_.eventDestroy(launch.done);
  parts_.libraries.reset();
}

// If the driver is too old for the machine code, the next target's code is used: PTX, which the driver compiles.
Status CudaGroup::loadTarget(const Plan &plan, const char *forced) {
  std::vector<uint32_t> indices;
  if (Status status = chooseTargets(plan, forced, gpus_[0].major, gpus_[0].minor, indices); !status.ok())
    return status;
  Status first;
  for (uint32_t index : indices) {
    bool refused = false;
    Status status;
    for (Gpu &gpu : gpus_) {
      if (Result result = driver_.ctxSetCurrent(gpu.context); result != success)
        return failure(driver_, result, gpu.title() + ": cannot use it");
      if (status.ok())
        status = loadModule(driver_, plan, index, gpu, refused);
    }
    target_ = plan.tables().targets()->Get(index)->name()->c_str();
    if (status.ok() && !first.ok() && options_.log)
      options_.log(1, first.message() + "; using target " + target_ +
                          ", which the driver compiles: that takes seconds the first time");
    if (status.ok() || !refused)
      return status;
    first = first.ok() ? status : first;
    for (Gpu &gpu : gpus_)
      unloadModule(driver_, gpu);
  }
  return {first.code(), first.message() + "; install a newer driver, or recompile the plan on a machine with an older "
                                          "toolkit or without ptxas, for PTX"};
}

Status CudaGroup::loadCode(const Plan &plan, const char *target) {
  if (Status status = loadTarget(plan, target); !status.ok())
    return status;
  precision_ = plan.tables().precision() ? plan.tables().precision()->str() : "f32";
  for (const fb::Program *program : Each(plan.tables().programs()))
    tensors_.push_back({placesOf(*program), tensorRowBytes(*program)});
  partialRoom_ = partialRoom(plan.tables());
  parts_.addsByCommunicator = plan.tables().fast() && parts_.communicator->adds() && sessionDevices_ > 1;
  measureDriver(plan);
  std::set<uint64_t> sizes; // of all-reduces
  for (const fb::Program *program : Each(plan.tables().programs()))
    for (const fb::Step *step : Each(program->steps()))
      if (step->kernel() < 0 && step->partial_bytes() > 0)
        sizes.insert(step->partial_bytes());
  if (Status status = parts_.communicator->warmUp(parts_.addsByCommunicator, {sizes.begin(), sizes.end()});
      !status.ok())
    return status;
  return parts_.libraries->choose(plan, gpus_, options_);
}

// For machine code the target name is sufficient; for PTX the driver's version also determines the code.
std::string CudaGroup::conditions() const {
  const Gpu &gpu = gpus_[0];
  std::string text = std::string("devices: cuda\ntarget: ") + target_ + "\nGPU: " + gpu.name +
                     "\ncompute capability: " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
  int version = 0;
  if (std::string_view(target_).ends_with("ptx") && driver_.driverGetVersion(&version) == success)
    text += "\ndriver: " + std::to_string(version);
  return text + "\nlibrary calls: " + parts_.libraries->conditions();
}

uint64_t CudaGroup::placesOf(const fb::Program &program) const {
  bool reads = count(program.metrics()) > 0 || program.learning_rate() >= 0;
  return static_cast<uint64_t>(runsOf(reads) * setsOf(count(program.signature()) > 0));
}

// The driver allocates a stack for every thread that can run at once on the GPU, and memory for graphs in pages of 2
// MiB.
void CudaGroup::measureDriver(const Plan &plan) {
  constexpr uint64_t graphBytes = 2 << 20, stackAlignment = 16;
  uint64_t stack = 0, graphs = 0;
  for (const fb::Target *target : Each(plan.tables().targets()))
    if (target->name()->string_view() == target_ && target->usage())
      for (const fb::GpuUsage *usage : *target->usage())
        stack = std::max<uint64_t>(stack, usage->stack_bytes());
  stackBytes_ = (stack + stackAlignment - 1) / stackAlignment * stackAlignment;
  for (const fb::Program *program : Each(plan.tables().programs()))
    graphs += static_cast<uint64_t>(setsOf(count(program->signature()) > 0)) *
              (runsOf(count(program->metrics()) > 0) > 1 ? 2 : 1);
  driverBytes_ = allocated(stackBytes_ * gpus_[0].residentThreads + graphs * graphBytes);
}

uint64_t CudaGroup::preparedBytes(const Plan &plan, int64_t maxRows) const {
  uint64_t tables = 0;
  for (const fb::Program *program : Each(plan.tables().programs()))
    tables += placesOf(*program) *
              (allocated(tableBytes(*program, sessionDevices_)) + parts_.libraries->tableBytes(*program));
  uint64_t workspace = parts_.libraries->workspaceBytes(maxRows);
  // The blocks of the session, each rounded up to the alignment.
  return scratchBytes(maxRows) + tables + workspace + allocated(partialRoom_.bytes()) + 16 * allocationAlignment +
         driverBytes_;
}

Status CudaGroup::reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) {
  freeBefore_ = availableMemory();
  for (Gpu &gpu : gpus_) {
    uint64_t needed = 0, sharing = 0;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (devices_[d].gpu == &gpu) {
        needed += bytes[d];
        ++sharing;
      }
    size_t free = 0, total = 0;
    Result result = driver_.ctxSetCurrent(gpu.context);
    if (result == success)
      result = driver_.memGetInfo(&free, &total);
    if (result != success)
      return failure(driver_, result, gpu.title() + ": cannot ask for its free memory");
    if (needed > free)
      return {MT_NO_MEMORY, gpu.title() + ": expected " + std::to_string(needed) + " bytes of free memory for " +
                                std::to_string(sharing) + (sharing == 1 ? " device" : " devices") + ", found " +
                                std::to_string(free) + " of " + std::to_string(total) + "; " +
                                std::to_string(needed - free) + " bytes too few"};
  }
  // Allocate the stacks now; otherwise the driver allocates them at a launch.
  for (Gpu &gpu : gpus_) {
    Result result = driver_.ctxSetCurrent(gpu.context);
    if (result == success && stackBytes_)
      result = driver_.ctxSetLimit(stackLimit, stackBytes_);
    if (result != success)
      return failure(driver_, result,
                     gpu.title() + ": cannot take " + std::to_string(stackBytes_) +
                         " bytes of its memory for the stack of each thread");
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    CudaDevice &device = devices_[d];
    uint64_t size = bytes[d] - driverBytes_;
    if (Status status = newBlock(static_cast<int>(d), size, &device.block); !status.ok())
      return status;
    device.blockBytes = allocated(size);
    device.used = 0;
  }
  return {};
}

Status CudaGroup::prepare(BoundProgram &program) {
  if (!health_.ok())
    return health_;
  program.prepared.reset();
  auto prepared =
      std::make_unique<Launches>(parts_, runsOf(!program.readBacks.empty()), setsOf(!program.signature.empty()));
  if (Status status = prepared->prepare(program); !status.ok())
    return status;
  program.prepared = std::move(prepared);
  return checkCalls(program);
}

int CudaGroup::runsPerLaunch(const BoundProgram &program) const { return runsOf(!program.readBacks.empty()); }

void CudaGroup::begin(BoundProgram &program, std::span<const StepArguments> runs) {
  if (!health_.ok() || !makeCurrent(0))
    return;
  auto &launches = static_cast<Launches &>(*program.prepared);
  if (!launches.isCurrent()) {
    drain();
    if (Status status = launches.capture(program); !status.ok()) {
      health_ = std::move(status);
      return;
    }
  }
  if (std::exchange(last_, &program) != &program)
    launches.forget();
  Launch &launch = launchSlots_[static_cast<size_t>(oldest_ + launchesInFlight_) % launchSlots_.size()];
  launch = {&program, launches.nextSet(), static_cast<int>(runs.size()), 0, launch.done, false};
  if (program.tracer && program.tracer->recordsNext()) {
    launchesInFlight_ += runTraced(program, launch, runs[0]);
    return;
  }
  if (program.tracer)
    program.tracer->beginRun(runs[0].n); // counts the run
  parts_.communicator->begin(runs.size());
  if (launches.begin(program, launch.set, runs, false) &&
      check(driver_.eventRecord(launch.done, devices_[0].stream), 0, "the GPU failed in a step"))
    ++launchesInFlight_;
}

bool CudaGroup::runTraced(BoundProgram &program, Launch &launch, const StepArguments &run) {
  Tracer &tracer = *program.tracer;
  auto &launches = static_cast<Launches &>(*program.prepared);
  drain();
  tracer.beginRun(run.n);
  int64_t end = 0;
  parts_.communicator->begin(1);
  bool good = launches.begin(program, launch.set, {&run, 1}, true) &&
              check(driver_.eventRecord(launch.done, devices_[0].stream), 0, "the GPU failed in a step") &&
              wait(launch) && launches.takeTimes(tracer, launch.set, end);
  if (good)
    tracer.endRun(end);
  return good;
}

Status CudaGroup::prepareTrace(BoundProgram &program) {
  drain();
  if (!health_.ok())
    return health_;
  return static_cast<Launches &>(*program.prepared).captureTraced(program);
}

DeviceGroup::Rates CudaGroup::rates() const {
  Rates sum;
  for (const Gpu &gpu : gpus_) {
    sum.flops += precision_ == "f32" ? gpu.flopRate : precision_ == "tf32" ? gpu.tf32Rate : gpu.halfRate;
    sum.bytes += gpu.byteRate;
  }
  return sum;
}

uint64_t CudaGroup::takenMemory() const {
  uint64_t now = health_.ok() ? availableMemory() : freeBefore_;
  return freeBefore_ - std::min(freeBefore_, now);
}

void CudaGroup::finish() {
  if (!health_.ok() || launchesInFlight_ == 0 || !makeCurrent(0))
    return;
  Launch &launch = launchSlots_[static_cast<size_t>(oldest_)];
  if (!launch.over && !wait(launch))
    return;
  auto &launches = static_cast<Launches &>(*launch.program->prepared);
  const CapturedProgram &run = launches.finish(*launch.program, launch.set, launch.finished);
  launches_ += run.launches(*launch.program);
  collectiveBytes_ = run.collectiveBytes();
  if (++launch.finished < launch.runs)
    return;
  oldest_ = (oldest_ + 1) % static_cast<int>(launchSlots_.size());
  --launchesInFlight_;
}

bool CudaGroup::wait(Launch &launch) {
  if (Status status = parts_.communicator->wait(launch.done); !status.ok()) {
    health_ = std::move(status);
    return false;
  }
  parts_.communicator->end(static_cast<size_t>(launch.runs));
  return launch.over = true;
}

void CudaGroup::drain() {
  for (int i = 0; i < launchesInFlight_ && health_.ok(); ++i)
    if (Launch &launch = launchSlots_[static_cast<size_t>(oldest_ + i) % launchSlots_.size()];
        !launch.over && makeCurrent(0))
      wait(launch);
}

void CudaGroup::corruptPartial(int collective, int device) {
  parts_.corruptCollective = collective;
  parts_.corruptDevice = device;
}

} // namespace mtrun::cuda
