// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaDevices.h"

#include <algorithm>

namespace mtrun::cuda {

static Address address(const void *memory) { return reinterpret_cast<Address>(memory); }

uint64_t allocated(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + allocationAlignment - 1) / allocationAlignment * allocationAlignment;
}

Status CudaDevices::open(const std::vector<int> &ordinals) {
  std::vector<Gpu> all;
  if (Status status = listGpus(driver_, all); !status.ok())
    return status;
  for (int ordinal : ordinals) {
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
  for (int ordinal : ordinals) {
    CudaDevice &device = devices_.emplace_back();
    device.gpu = &*std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu &c) { return c.ordinal == ordinal; });
    Result result = driver_.ctxSetCurrent(device.gpu->context);
    if (result == success)
      result = driver_.streamCreate(&device.stream, streamNonBlocking);
    for (Stream *stream : {&device.independent, &device.inputs})
      if (result == success)
        result = driver_.streamCreate(stream, streamNonBlocking);
    // Operations that other devices wait for have priority over this device's launches; nodes of a graph keep the
    // priority.
    int least = 0, greatest = 0;
    if (result == success)
      result = driver_.ctxGetStreamPriorityRange(&least, &greatest);
    if (result == success)
      result = driver_.streamCreateWithPriority(&device.links, streamNonBlocking, greatest);
    for (Event *event : {&device.event, &device.arrived})
      if (result == success)
        result = driver_.eventCreate(event, eventDisableTiming);
    if (result != success)
      return failure(driver_, result, device.gpu->title() + ": cannot make a stream");
  }
  return {};
}

// Enables peer access. Without it copies between GPUs go through host memory: slower, with the same result.
Status CudaDevices::enablePeers() {
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

// Errors are ignored: the process's end frees the resources.
CudaDevices::~CudaDevices() {
  for (CudaDevice &device : devices_) {
    (void)driver_.ctxSetCurrent(device.gpu->context);
    for (Event event : device.reached)
      (void)driver_.eventDestroy(event);
    for (Event event : {device.event, device.arrived})
      if (event)
        (void)driver_.eventDestroy(event);
    for (Stream stream : {device.inputs, device.independent, device.links, device.stream})
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

bool CudaDevices::check(Result result, int device, const char *what) {
  if (result != success && health_.ok())
    health_ = failure(driver_, result, devices_[static_cast<size_t>(device)].gpu->title() + ": " + what, MT_LOST);
  return result == success;
}

bool CudaDevices::makeCurrent(int device) {
  return check(driver_.ctxSetCurrent(devices_[static_cast<size_t>(device)].gpu->context), device, "cannot use it");
}

uint64_t CudaDevices::availableMemory() const {
  uint64_t sum = 0;
  for (const Gpu &gpu : gpus_) {
    size_t free = 0, total = 0;
    if (driver_.ctxSetCurrent(gpu.context) == success && driver_.memGetInfo(&free, &total) == success)
      sum += free;
  }
  return sum;
}

// Handles are indices + 1, because a kernel has a different function on each GPU.
KernelHandle CudaDevices::kernel(uint32_t index) const { return reinterpret_cast<KernelHandle>(uintptr_t{index} + 1); }

const LoadedKernel &CudaDevices::loaded(int device, KernelHandle kernel) const {
  return devices_[static_cast<size_t>(device)].gpu->kernels[reinterpret_cast<uintptr_t>(kernel) - 1];
}

Status CudaDevices::newBlock(int index, uint64_t bytes, std::byte **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  std::string what = device.gpu->title() + ": cannot take " + std::to_string(allocated(bytes)) + " bytes of its memory";
  Address place = 0;
  Result result = driver_.ctxSetCurrent(device.gpu->context);
  if (result == success)
    result = driver_.memAlloc(&place, allocated(bytes));
  if (result != success)
    return failure(driver_, result, what);
  *memory = reinterpret_cast<std::byte *>(place);
  device.blocks.push_back(*memory);
  result = driver_.memsetD8Async(place, 0, allocated(bytes), device.stream);
  if (result == success)
    result = driver_.streamSynchronize(device.stream);
  return result == success ? Status() : failure(driver_, result, what);
}

Status CudaDevices::allocate(int index, uint64_t bytes, void **memory) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  uint64_t size = allocated(bytes);
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

uint64_t CudaDevices::scratchBytes(int64_t maxRows) const {
  uint64_t most = 0;
  for (const Tensors &tensors : tensors_)
    most = std::max(most, tensors.places * (tensors.rowBytes * static_cast<uint64_t>(maxRows) + tensorSlack));
  return allocated(most);
}

Status CudaDevices::scratch(int index, uint64_t bytes, int64_t maxRows, std::byte **onDevice, std::byte **onHost) {
  CudaDevice &device = devices_[static_cast<size_t>(index)];
  if (bytes > device.scratchBytes || !device.scratch) {
    bytes = std::max(bytes, scratchBytes(maxRows));
    void *place = nullptr;
    if (Status status = allocate(index, bytes, &place); !status.ok())
      return status;
    device.scratch = static_cast<std::byte *>(place);
    // Programs that were prepared before keep their smaller pinned memory.
    if (Result result = driver_.memHostAlloc(&place, std::max<uint64_t>(bytes, 1), hostPortable); result != success)
      return failure(driver_, result, "cannot pin " + std::to_string(bytes) + " bytes of the host's memory");
    device.hostScratch.push_back(static_cast<std::byte *>(place));
    device.scratchBytes = bytes;
  }
  *onDevice = device.scratch;
  *onHost = device.hostScratch.back();
  return {};
}

Status CudaDevices::makePartials(int index) {
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

Status CudaDevices::makeEvents(size_t count) {
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

void CudaDevices::fill(int device, void *memory, uint8_t byte, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
  drain();
  if (bytes == 0 || !health_.ok() || !makeCurrent(device))
    return;
  if (check(driver_.memsetD8Async(address(memory), byte, bytes, stream), device, "cannot fill its memory"))
    check(driver_.streamSynchronize(stream), device, "cannot fill its memory");
}

void CudaDevices::copyIn(int device, void *to, const void *from, uint64_t bytes) {
  Stream stream = devices_[static_cast<size_t>(device)].stream;
  drain();
  if (bytes == 0 || !health_.ok() || !makeCurrent(device))
    return;
  if (check(driver_.memcpyAsync(address(to), address(from), bytes, stream), device, "cannot write its memory"))
    check(driver_.streamSynchronize(stream), device, "cannot write its memory");
}

void CudaDevices::copyOut(int device, void *to, const void *from, uint64_t bytes) { copyIn(device, to, from, bytes); }

} // namespace mtrun::cuda
