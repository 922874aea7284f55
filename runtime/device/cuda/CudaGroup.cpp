// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaGroup.h"

#include "runtime/device/cuda/Capture.h"
#include "runtime/device/cuda/Links.h"
#include "runtime/plan/Check.h"

#include <algorithm>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

constexpr uint64_t alignment = 256; // of every allocation, as the driver's own

uint64_t aligned(uint64_t bytes) { return (std::max<uint64_t>(bytes, 1) + alignment - 1) / alignment * alignment; }

Address address(const void *memory) { return reinterpret_cast<Address>(memory); }

} // namespace

CudaGroup::CudaGroup(const Driver &driver) : driver_(driver), links_(std::make_unique<LocalLinks>(*this)) {}

Status CudaGroup::start(const GroupOptions &options) {
  std::vector<Card> all;
  if (Status status = listCards(driver_, all); !status.ok())
    return status;
  for (int ordinal : options.cards) {
    if (static_cast<size_t>(ordinal) >= all.size())
      return {MT_NO_DEVICE, "expected a GPU cuda:" + std::to_string(ordinal) + ", found " + std::to_string(all.size()) +
                                (all.size() == 1 ? " GPU: cuda:0" : " GPUs")};
    Card &card = all[static_cast<size_t>(ordinal)];
    if (std::none_of(cards_.begin(), cards_.end(), [&](const Card &c) { return c.ordinal == ordinal; }))
      cards_.push_back(card);
    if (card.major != cards_[0].major || card.minor != cards_[0].minor)
      return {MT_DEVICE, "expected cards of one compute capability, found " + cards_[0].title() + " of " +
                             std::to_string(cards_[0].major) + "." + std::to_string(cards_[0].minor) + " and " +
                             card.title() + " of " + std::to_string(card.major) + "." + std::to_string(card.minor)};
  }
  for (Card &card : cards_)
    if (Result result = driver_.primaryCtxRetain(&card.context, card.device); result != success) {
      card.context = nullptr;
      return failure(driver_, result, card.title() + ": cannot start it");
    }
  for (int ordinal : options.cards) {
    CudaDevice &device = devices_.emplace_back();
    device.card = &*std::find_if(cards_.begin(), cards_.end(), [&](const Card &c) { return c.ordinal == ordinal; });
    Result result = driver_.ctxSetCurrent(device.card->context);
    if (result == success)
      result = driver_.streamCreate(&device.stream, streamNonBlocking);
    if (result == success)
      result = driver_.streamCreate(&device.links, streamNonBlocking);
    if (result == success)
      result = driver_.eventCreate(&device.event, eventDisableTiming);
    if (result != success)
      return failure(driver_, result, device.card->title() + ": cannot make a stream");
  }
  return enablePeers();
}

// Without it copies between cards go through the host: slower, and the same.
Status CudaGroup::enablePeers() {
  for (Card &card : cards_)
    for (Card &peer : cards_) {
      int can = 0;
      if (&card == &peer || driver_.deviceCanAccessPeer(&can, card.device, peer.device) != success || !can)
        continue;
      if (Result result = driver_.ctxSetCurrent(card.context); result != success)
        return failure(driver_, result, card.title() + ": cannot use it");
      (void)driver_.ctxEnablePeerAccess(peer.context, 0);
    }
  return {};
}

// What fails here is freed with the process.
CudaGroup::~CudaGroup() {
  for (CudaDevice &device : devices_) {
    (void)driver_.ctxSetCurrent(device.card->context);
    for (Event event : device.reached)
      (void)driver_.eventDestroy(event);
    if (device.event)
      (void)driver_.eventDestroy(device.event);
    for (Stream stream : {device.links, device.stream})
      if (stream)
        (void)driver_.streamDestroy(stream);
    for (std::byte *block : device.blocks)
      (void)driver_.memFree(address(block));
  }
  for (Card &card : cards_) {
    if (!card.context)
      continue;
    (void)driver_.ctxSetCurrent(card.context);
    if (card.module)
      (void)driver_.moduleUnload(card.module);
    (void)driver_.ctxSetCurrent(nullptr);
    (void)driver_.primaryCtxRelease(card.device);
  }
}

bool CudaGroup::check(Result result, int device, const char *what) {
  if (result != success && health_.ok())
    health_ = failure(driver_, result, devices_[static_cast<size_t>(device)].card->title() + ": " + what, MT_LOST);
  return result == success;
}

bool CudaGroup::makeCurrent(int device) {
  return check(driver_.ctxSetCurrent(devices_[static_cast<size_t>(device)].card->context), device, "cannot use it");
}

uint64_t CudaGroup::availableMemory() const {
  uint64_t sum = 0;
  for (const Card &card : cards_) {
    size_t free = 0, total = 0;
    if (driver_.ctxSetCurrent(card.context) == success && driver_.memGetInfo(&free, &total) == success)
      sum += free;
  }
  return sum;
}

Status CudaGroup::loadCode(const Plan &plan, const char *target) {
  uint32_t index = 0;
  if (Status status = chooseTarget(plan, target, cards_[0].major, cards_[0].minor, index); !status.ok())
    return status;
  for (Card &card : cards_) {
    if (Result result = driver_.ctxSetCurrent(card.context); result != success)
      return failure(driver_, result, card.title() + ": cannot use it");
    if (Status status = loadModule(driver_, plan, index, card); !status.ok())
      return status;
  }
  target_ = plan.tables().targets()->Get(index)->name()->c_str();
  for (uint32_t p = 0; p < count(plan.tables().programs()); ++p)
    scratchRowBytes_ = std::max(scratchRowBytes_, tensorRowBytes(*plan.tables().programs()->Get(p)));
  return {};
}

// Handles are indices, from 1: a kernel has one function a card.
KernelHandle CudaGroup::kernel(uint32_t index) const { return reinterpret_cast<KernelHandle>(uintptr_t{index} + 1); }

Function CudaGroup::function(int device, KernelHandle kernel) const {
  return devices_[static_cast<size_t>(device)].card->kernels[reinterpret_cast<uintptr_t>(kernel) - 1];
}

uint64_t CudaGroup::preparedBytes(const Plan &plan, int64_t maxRows) const {
  uint64_t bytes = aligned(scratchRowBytes_ * static_cast<uint64_t>(maxRows) + tensorSlack);
  for (uint32_t p = 0; p < count(plan.tables().programs()); ++p)
    bytes += aligned(tableBytes(*plan.tables().programs()->Get(p), devices()));
  // Blocks of the session, each up to the next multiple of the alignment.
  return bytes + 16 * alignment;
}

Status CudaGroup::reserve(const std::vector<uint64_t> &bytes, uint64_t hostBytes) {
  for (Card &card : cards_) {
    uint64_t needed = 0, sharing = 0;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (devices_[d].card == &card) {
        needed += bytes[d];
        ++sharing;
      }
    size_t free = 0, total = 0;
    Result result = driver_.ctxSetCurrent(card.context);
    if (result == success)
      result = driver_.memGetInfo(&free, &total);
    if (result != success)
      return failure(driver_, result, card.title() + ": cannot ask for its free memory");
    if (needed > free)
      return {MT_NO_MEMORY, card.title() + ": expected " + std::to_string(needed) + " bytes of free memory for " +
                                std::to_string(sharing) + (sharing == 1 ? " device" : " devices") + ", found " +
                                std::to_string(free) + " of " + std::to_string(total) + "; " +
                                std::to_string(needed - free) + " are missing"};
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    CudaDevice &device = devices_[d];
    if (Status status = newBlock(static_cast<int>(d), bytes[d], &device.block); !status.ok())
      return status;
    device.blockBytes = aligned(bytes[d]);
    device.used = 0;
  }
  return {};
}

Status CudaGroup::newBlock(int index, uint64_t bytes, std::byte **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  std::string what = device.card->title() + ": cannot take " + std::to_string(aligned(bytes)) + " bytes of its memory";
  Address place = 0;
  Result result = driver_.ctxSetCurrent(device.card->context);
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

Status CudaGroup::scratch(int index, uint64_t bytes, std::byte **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  if (bytes > device.scratchBytes || !device.scratch) {
    void *place = nullptr;
    if (Status status = allocate(index, bytes, &place); !status.ok())
      return status;
    device.scratch = static_cast<std::byte *>(place);
    device.scratchBytes = bytes;
  }
  *memory = device.scratch;
  return {};
}

Status CudaGroup::makeEvents(size_t count) {
  for (CudaDevice &device : devices_)
    while (device.reached.size() < count) {
      Event event = nullptr;
      Result result = driver_.ctxSetCurrent(device.card->context);
      if (result == success)
        result = driver_.eventCreate(&event, eventDisableTiming);
      if (result != success)
        return failure(driver_, result, device.card->title() + ": cannot make an event");
      device.reached.push_back(event);
    }
  return {};
}

void CudaGroup::fill(int device, void *memory, uint8_t byte, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
  if (bytes == 0 || !health_.ok() || !makeCurrent(device))
    return;
  if (check(driver_.memsetD8Async(address(memory), byte, bytes, stream), device, "cannot fill its memory"))
    check(driver_.streamSynchronize(stream), device, "cannot fill its memory");
}

void CudaGroup::copyIn(int device, void *to, const void *from, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
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
  auto prepared = std::make_unique<CapturedProgram>(*this);
  if (Status status = prepared->layOut(program); !status.ok())
    return status;
  if (Status status = prepared->capture(program); !status.ok())
    return status;
  program.prepared = std::move(prepared);
  return health_;
}

void CudaGroup::run(BoundProgram &program, const StepArguments &arguments) {
  if (!health_.ok() || !makeCurrent(0))
    return;
  auto &captured = static_cast<CapturedProgram &>(*program.prepared);
  if (!captured.isCurrent())
    if (Status status = captured.capture(program); !status.ok()) {
      health_ = std::move(status);
      return;
    }
  captured.setInputs(program, arguments);
  const char *what = "the GPU failed in a step";
  if (!makeCurrent(0) || !check(driver_.graphLaunch(captured.exec(), devices_[0].stream), 0, what) ||
      !check(driver_.streamSynchronize(devices_[0].stream), 0, what))
    return;
  captured.takeOutputs(program, arguments);
  launches_ += captured.launches(program);
  collectiveBytes_ = captured.collectiveBytes();
}

void CudaGroup::corruptRoot(int collective, int device) {
  corruptCollective_ = collective;
  corruptDevice_ = device;
}

} // namespace mtrun::cuda
