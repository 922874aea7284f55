// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaGroup.h"

#include "runtime/device/cuda/Launches.h"
#include "runtime/device/cuda/NcclCommunicator.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <utility>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

constexpr uint64_t alignment = 256; // of every allocation, as the driver's own

uint64_t aligned(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

Address address(const void *memory) { return reinterpret_cast<Address>(memory); }

} // namespace

CudaGroup::CudaGroup(const Driver &driver)
    : driver_(driver), libraries_(std::make_unique<Libraries>(driver)),
      communicator_(std::make_unique<LocalCommunicator>(*this)) {}

Status CudaGroup::start(const GroupOptions &options) {
  options_ = options;
  std::vector<Gpu> all;
  if (Status status = listGpus(driver_, all); !status.ok())
    return status;
  for (int ordinal : options.gpus) {
    if (static_cast<size_t>(ordinal) >= all.size())
      return {MT_NO_DEVICE, "expected a GPU cuda:" + std::to_string(ordinal) + ", found " + std::to_string(all.size()) +
                                (all.size() == 1 ? " GPU: cuda:0" : " GPUs")};
    Gpu &gpu = all[static_cast<size_t>(ordinal)];
    if (std::none_of(gpus_.begin(), gpus_.end(), [&](const Gpu &c) { return c.ordinal == ordinal; }))
      gpus_.push_back(gpu);
    if (gpu.major != gpus_[0].major || gpu.minor != gpus_[0].minor)
      return {MT_DEVICE, "expected GPUs of one compute capability, found " + gpus_[0].title() + " of " +
                             std::to_string(gpus_[0].major) + "." + std::to_string(gpus_[0].minor) + " and " +
                             gpu.title() + " of " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor)};
  }
  for (Gpu &gpu : gpus_)
    if (Result result = driver_.primaryCtxRetain(&gpu.context, gpu.device); result != success) {
      gpu.context = nullptr;
      return failure(driver_, result, gpu.title() + ": cannot start it");
    }
  for (int ordinal : options.gpus) {
    CudaDevice &device = devices_.emplace_back();
    device.gpu = &*std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu &c) { return c.ordinal == ordinal; });
    Result result = driver_.ctxSetCurrent(device.gpu->context);
    if (result == success)
      result = driver_.streamCreate(&device.stream, streamNonBlocking);
    if (result == success)
      result = driver_.streamCreate(&device.inputs, streamNonBlocking);
    // What others wait for goes before the blocks of this device's launches; nodes of a graph keep it.
    int least = 0, greatest = 0;
    if (result == success)
      result = driver_.ctxGetStreamPriorityRange(&least, &greatest);
    if (result == success)
      result = driver_.streamCreateWithPriority(&device.links, streamNonBlocking, greatest);
    for (Event *event : {&device.event, &device.arrived})
      if (result == success)
        result = driver_.eventCreate(event, eventDisableTiming);
    for (Launch &launch : inFlightLaunches_)
      if (result == success && devices_.size() == 1)
        result = driver_.eventCreate(&launch.done, eventDisableTiming);
    if (result != success)
      return failure(driver_, result, device.gpu->title() + ": cannot make a stream");
  }
  if (options.processGroup) {
    sessionDevices_ = options.processGroup->processes();
    return NcclCommunicator::open(*this, *options.processGroup, communicator_);
  }
  sessionDevices_ = devices();
  return enablePeers();
}

// Without it what goes between GPUs goes through the host's memory: slower, and the same.
Status CudaGroup::enablePeers() {
  for (Gpu &gpu : gpus_)
    for (Gpu &peer : gpus_) {
      int can = 0;
      if (&gpu == &peer)
        continue;
      constexpr Result alreadyEnabled = 704;
      if (Result result = driver_.ctxSetCurrent(gpu.context); result != success)
        return failure(driver_, result, gpu.title() + ": cannot use it");
      Result result = driver_.deviceCanAccessPeer(&can, gpu.device, peer.device);
      if (result == success && can)
        result = driver_.ctxEnablePeerAccess(peer.context, 0);
      peersReach_ &= can && (result == success || result == alreadyEnabled);
    }
  return {};
}

// What fails here is freed with the process.
CudaGroup::~CudaGroup() {
  communicator_.reset();
  if (!devices_.empty())
    (void)driver_.ctxSetCurrent(devices_[0].gpu->context);
  for (Launch &launch : inFlightLaunches_)
    if (launch.done)
      (void)driver_.eventDestroy(launch.done);
  libraries_.reset();
  for (CudaDevice &device : devices_) {
    (void)driver_.ctxSetCurrent(device.gpu->context);
    for (Event event : device.reached)
      (void)driver_.eventDestroy(event);
    for (Event event : {device.event, device.arrived})
      if (event)
        (void)driver_.eventDestroy(event);
    for (Stream stream : {device.inputs, device.links, device.stream})
      if (stream)
        (void)driver_.streamDestroy(stream);
    for (std::byte *memory : device.hostScratch)
      (void)driver_.memFreeHost(memory);
    for (std::byte *block : device.blocks)
      (void)driver_.memFree(address(block));
  }
  for (Gpu &gpu : gpus_) {
    if (!gpu.context)
      continue;
    (void)driver_.ctxSetCurrent(gpu.context);
    if (gpu.module)
      (void)driver_.moduleUnload(gpu.module);
    (void)driver_.ctxSetCurrent(nullptr);
    (void)driver_.primaryCtxRelease(gpu.device);
  }
}

bool CudaGroup::check(Result result, int device, const char *what) {
  if (result != success && health_.ok())
    health_ = failure(driver_, result, devices_[static_cast<size_t>(device)].gpu->title() + ": " + what, MT_LOST);
  return result == success;
}

bool CudaGroup::makeCurrent(int device) {
  return check(driver_.ctxSetCurrent(devices_[static_cast<size_t>(device)].gpu->context), device, "cannot use it");
}

uint64_t CudaGroup::availableMemory() const {
  uint64_t sum = 0;
  for (const Gpu &gpu : gpus_) {
    size_t free = 0, total = 0;
    if (driver_.ctxSetCurrent(gpu.context) == success && driver_.memGetInfo(&free, &total) == success)
      sum += free;
  }
  return sum;
}

// Code that the driver is too old for gives way to the next target's: PTX text, which it compiles.
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
  addsByCommunicator_ = plan.tables().fast() && communicator_->adds() && sessionDevices_ > 1;
  measureDriver(plan);
  uint64_t most = 0; // bytes of an all-reduce
  for (const fb::Program *program : Each(plan.tables().programs()))
    for (const fb::Step *step : Each(program->steps()))
      most = step->kernel() < 0 ? std::max(most, step->partial_bytes()) : most;
  if (Status status = communicator_->warmUp(addsByCommunicator_, most); !status.ok())
    return status;
  return libraries_->choose(plan, gpus_, options_);
}

// Handles are indices, from 1: a kernel has one function a GPU.
KernelHandle CudaGroup::kernel(uint32_t index) const { return reinterpret_cast<KernelHandle>(uintptr_t{index} + 1); }

Function CudaGroup::function(int device, KernelHandle kernel) const {
  return devices_[static_cast<size_t>(device)].gpu->kernels[reinterpret_cast<uintptr_t>(kernel) - 1];
}

uint64_t CudaGroup::placesOf(const fb::Program &program) const {
  bool reads = count(program.metrics()) > 0 || program.learning_rate() >= 0;
  return static_cast<uint64_t>(runsOf(reads) * setsOf(count(program.signature()) > 0));
}

// A thread's stack is there for all threads that a GPU can hold at once. Graphs take memory in pages of 2 MiB.
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
  driverBytes_ = aligned(stackBytes_ * gpus_[0].residentThreads + graphs * graphBytes);
}

uint64_t CudaGroup::preparedBytes(const Plan &plan, int64_t maxRows) const {
  uint64_t tables = 0;
  for (const fb::Program *program : Each(plan.tables().programs()))
    tables += placesOf(*program) * (aligned(tableBytes(*program, sessionDevices_)) + libraries_->tableBytes(*program));
  uint64_t workspace = libraries_->workspaceBytes(maxRows);
  // Blocks of the session, each up to the next multiple of the alignment.
  return scratchBytes(maxRows) + tables + workspace + aligned(partialRoom_.bytes()) + 16 * alignment + driverBytes_;
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
                                std::to_string(needed - free) + " are missing"};
  }
  // The stacks now, or the driver takes them at a launch.
  for (Gpu &gpu : gpus_) {
    Result result = driver_.ctxSetCurrent(gpu.context);
    if (result == success && stackBytes_)
      result = driver_.ctxSetLimit(stackLimit, stackBytes_);
    if (result != success)
      return failure(driver_, result, gpu.title() + ": cannot take " + std::to_string(stackBytes_) +
                                          " bytes of its memory for the stack of each thread");
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    CudaDevice &device = devices_[d];
    uint64_t size = bytes[d] - driverBytes_;
    if (Status status = newBlock(static_cast<int>(d), size, &device.block); !status.ok())
      return status;
    device.blockBytes = aligned(size);
    device.used = 0;
  }
  return {};
}

Status CudaGroup::newBlock(int index, uint64_t bytes, std::byte **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  std::string what = device.gpu->title() + ": cannot take " + std::to_string(aligned(bytes)) + " bytes of its memory";
  Address place = 0;
  Result result = driver_.ctxSetCurrent(device.gpu->context);
  if (result == success)
    result = driver_.memAlloc(&place, aligned(bytes));
  if (result != success)
    return failure(driver_, result, what);
  *memory = reinterpret_cast<std::byte *>(place);
  device.blocks.push_back(*memory);
  result = driver_.memsetD8Async(place, 0, aligned(bytes), device.stream);
  if (result == success)
    result = driver_.streamSynchronize(device.stream);
  return result == success ? Status() : failure(driver_, result, what);
}

Status CudaGroup::allocate(int index, uint64_t bytes, void **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  uint64_t size = aligned(bytes);
  if (size <= device.blockBytes - device.used) {
    *memory = device.block + device.used;
    device.used += size;
    return {};
  }
  std::byte *place = nullptr;
  Status status = newBlock(index, bytes, &place);
  *memory = place;
  return status;
}

uint64_t CudaGroup::scratchBytes(int64_t maxRows) const {
  uint64_t most = 0;
  for (const Tensors &tensors : tensors_)
    most = std::max(most, tensors.places * (tensors.rowBytes * static_cast<uint64_t>(maxRows) + tensorSlack));
  return aligned(most);
}

Status CudaGroup::scratch(int index, uint64_t bytes, int64_t maxRows, std::byte **onDevice, std::byte **onHost) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  if (bytes > device.scratchBytes || !device.scratch) {
    bytes = std::max(bytes, scratchBytes(maxRows));
    void *place = nullptr;
    if (Status status = allocate(index, bytes, &place); !status.ok())
      return status;
    device.scratch = static_cast<std::byte *>(place);
    // Programs that were prepared before keep what they have, as they do on the device.
    if (Result result = driver_.memHostAlloc(&place, std::max<uint64_t>(bytes, 1), hostPortable); result != success)
      return failure(driver_, result, "cannot pin " + std::to_string(bytes) + " bytes of the host's memory");
    device.hostScratch.push_back(static_cast<std::byte *>(place));
    device.scratchBytes = bytes;
  }
  *onDevice = device.scratch;
  *onHost = device.hostScratch.back();
  return {};
}

Status CudaGroup::makePartials(int index) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  if (partialRoom_.bytes() == 0 || device.partials)
    return {};
  void *place = nullptr;
  if (Status status = allocate(index, partialRoom_.bytes(), &place); !status.ok())
    return status;
  fill(index, place, 0, partialRoom_.counterBytes);
  device.partials = static_cast<std::byte *>(place) + partialRoom_.counterBytes;
  return health_;
}

Status CudaGroup::makeEvents(size_t count) {
  for (CudaDevice &device : devices_)
    while (device.reached.size() < count) {
      Event event = nullptr;
      Result result = driver_.ctxSetCurrent(device.gpu->context);
      if (result == success)
        result = driver_.eventCreate(&event, eventDisableTiming);
      if (result != success)
        return failure(driver_, result, device.gpu->title() + ": cannot make an event");
      device.reached.push_back(event);
    }
  return {};
}

void CudaGroup::fill(int device, void *memory, uint8_t byte, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
  drain();
  if (bytes == 0 || !health_.ok() || !makeCurrent(device))
    return;
  if (check(driver_.memsetD8Async(address(memory), byte, bytes, stream), device, "cannot fill its memory"))
    check(driver_.streamSynchronize(stream), device, "cannot fill its memory");
}

void CudaGroup::copyIn(int device, void *to, const void *from, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
  drain();
  if (bytes == 0 || !health_.ok() || !makeCurrent(device))
    return;
  if (check(driver_.memcpyAsync(address(to), address(from), bytes, stream), device, "cannot write its memory"))
    check(driver_.streamSynchronize(stream), device, "cannot write its memory");
}

void CudaGroup::copyOut(int device, void *to, const void *from, uint64_t bytes) { copyIn(device, to, from, bytes); }

Status CudaGroup::prepare(BoundProgram &program) {
  if (!health_.ok())
    return health_;
  program.prepared.reset();
  auto prepared =
      std::make_unique<Launches>(*this, runsOf(!program.readBacks.empty()), setsOf(!program.signature.empty()));
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
  Launch &launch = inFlightLaunches_[static_cast<size_t>(oldest_ + flying_) % inFlightLaunches_.size()];
  launch = {&program, launches.nextSet(), static_cast<int>(runs.size()), 0, launch.done, false};
  if (program.tracer && program.tracer->recordsNext()) {
    flying_ += runTraced(program, launch, runs[0]);
    return;
  }
  if (program.tracer)
    program.tracer->beginRun(runs[0].n); // which counts it
  communicator_->begin(runs.size());
  if (launches.begin(program, launch.set, runs, false) &&
      check(driver_.eventRecord(launch.done, devices_[0].stream), 0, "the GPU failed in a step"))
    ++flying_;
}

bool CudaGroup::runTraced(BoundProgram &program, Launch &launch, const StepArguments &run) {
  Tracer &tracer = *program.tracer;
  auto &launches = static_cast<Launches &>(*program.prepared);
  drain();
  tracer.beginRun(run.n);
  int64_t end = 0;
  communicator_->begin(1);
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
  if (!health_.ok() || flying_ == 0 || !makeCurrent(0))
    return;
  Launch &launch = inFlightLaunches_[static_cast<size_t>(oldest_)];
  if (!launch.over && !wait(launch))
    return;
  auto &launches = static_cast<Launches &>(*launch.program->prepared);
  const CapturedProgram &run = launches.finish(*launch.program, launch.set, launch.finished);
  launches_ += run.launches(*launch.program);
  collectiveBytes_ = run.collectiveBytes();
  if (++launch.finished < launch.runs)
    return;
  oldest_ = (oldest_ + 1) % static_cast<int>(inFlightLaunches_.size());
  --flying_;
}

bool CudaGroup::wait(Launch &launch) {
  if (Status status = communicator_->wait(launch.done); !status.ok()) {
    health_ = std::move(status);
    return false;
  }
  communicator_->end(static_cast<size_t>(launch.runs));
  return launch.over = true;
}

void CudaGroup::drain() {
  for (int i = 0; i < flying_ && health_.ok(); ++i)
    if (Launch &launch = inFlightLaunches_[static_cast<size_t>(oldest_ + i) % inFlightLaunches_.size()];
        !launch.over && makeCurrent(0))
      wait(launch);
}

void CudaGroup::corruptPartial(int collective, int device) {
  corruptCollective_ = collective;
  corruptDevice_ = device;
}

} // namespace mtrun::cuda
