// SPDX-License-Identifier: Apache-2.0
//
// Devices, contexts, memory and code: the driver's functions of these.
#include "Simulator.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

using namespace simulated;

#define MTC_SIM_DECLARE(member, symbol, parameters) extern "C" MT_API Result symbol parameters;
MTRUN_CUDA_FUNCTIONS(MTC_SIM_DECLARE)

namespace {

constexpr Result invalidDevice = 101;
constexpr int threadsOfProcessor = 2048, processors = 4;

CUctx_st &contextOf(Device device, const char *call) {
  Simulator &s = simulator();
  if (device < 0 || device >= s.devices)
    fatal(std::string(call) + " of device " + std::to_string(device));
  return s.contexts[static_cast<size_t>(device)];
}

size_t pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Memory of its own pages, so that what runs past its end ends the process.
void *newMemory(size_t bytes, int device) {
  void *place = mmap(nullptr, pages(bytes) + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED)
    return nullptr;
  mprotect(place, pages(bytes), PROT_READ | PROT_WRITE);
  std::memset(place, 0xff, bytes);
  if (device >= 0)
    mprotect(place, pages(bytes), PROT_NONE);
  simulator().memories[reinterpret_cast<uintptr_t>(place)] = {bytes, device};
  return place;
}

std::string fileBytes(const char *path) {
  std::string bytes;
  FILE *file = std::fopen(path, "rb");
  if (!file)
    fatal(std::string("cannot open ") + path);
  char block[4096];
  for (size_t count; (count = std::fread(block, 1, sizeof block, file)) > 0;)
    bytes.append(block, count);
  std::fclose(file);
  return bytes;
}

void freeMemory(uintptr_t place, bool host, const char *call) {
  Simulator &s = simulator();
  auto at = s.memories.find(place);
  if (at == s.memories.end() || (at->second.device < 0) != host)
    fatal(std::string(call) + " of memory that it did not give");
  s.runQueue();
  munmap(reinterpret_cast<void *>(place), pages(at->second.bytes) + 4096);
  s.memories.erase(at);
}

} // namespace

Result cuInit(unsigned) {
  Simulator &s = simulator();
  if (s.fails("cuInit"))
    return refused();
  s.started = true;
  return s.devices ? success : noDevice;
}

Result cuDriverGetVersion(int *version) {
  Simulator &s = simulator();
  if (s.fails("cuDriverGetVersion"))
    return refused();
  *version = s.version;
  return success;
}

// These two never fail: they tell what did.
Result cuGetErrorName(Result error, const char **text) {
  *text = error == outOfMemory        ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == noDevice         ? "CUDA_ERROR_NO_DEVICE"
          : error == invalidDevice    ? "CUDA_ERROR_INVALID_DEVICE"
          : error == invalidImage     ? "CUDA_ERROR_INVALID_IMAGE"
          : error == noBinaryForGpu   ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : error == functionNotFound ? "CUDA_ERROR_NOT_FOUND"
          : error == 719              ? "CUDA_ERROR_LAUNCH_FAILED"
                                      : "CUDA_ERROR_UNKNOWN";
  return success;
}

Result cuGetErrorString(Result error, const char **text) {
  *text = error == outOfMemory ? "out of memory" : error == 719 ? "unspecified launch failure" : "simulated error";
  return success;
}

Result cuDeviceGetCount(int *count) {
  Simulator &s = simulator();
  if (!s.started)
    fatal("cuDeviceGetCount before cuInit");
  if (s.fails("cuDeviceGetCount"))
    return refused();
  *count = s.devices;
  return success;
}

Result cuDeviceGet(Device *device, int ordinal) {
  if (simulator().fails("cuDeviceGet"))
    return refused();
  if (ordinal < 0 || ordinal >= simulator().devices)
    return invalidDevice;
  *device = ordinal;
  return success;
}

Result cuDeviceGetName(char *name, int bytes, Device device) {
  if (simulator().fails("cuDeviceGetName"))
    return refused();
  contextOf(device, "cuDeviceGetName");
  const char *given = std::getenv("MTC_SIM_NAME");
  std::snprintf(name, static_cast<size_t>(bytes), "%s", given ? given : "Simulated GPU");
  return success;
}

// Processes of one host have the same GPUs.
Result cuDeviceGetPCIBusId(char *id, int bytes, Device device) {
  if (simulator().fails("cuDeviceGetPCIBusId"))
    return refused();
  contextOf(device, "cuDeviceGetPCIBusId");
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(device));
  return success;
}

Result cuDeviceGetAttribute(int *value, int attribute, Device device) {
  if (simulator().fails("cuDeviceGetAttribute"))
    return refused();
  contextOf(device, "cuDeviceGetAttribute");
  const std::map<int, int> values = {{capabilityMajor, simulator().major},
                                     {capabilityMinor, simulator().minor},
                                     {multiprocessors, processors},
                                     {threadsPerMultiprocessor, threadsOfProcessor},
                                     {clockRate, 1'000'000},
                                     {memoryClockRate, 1'000'000},
                                     {memoryBusWidth, 256}};
  if (!values.count(attribute))
    fatal("cuDeviceGetAttribute of attribute " + std::to_string(attribute));
  *value = values.at(attribute);
  return success;
}

Result cuDeviceTotalMem_v2(size_t *bytes, Device device) {
  if (simulator().fails("cuDeviceTotalMem"))
    return refused();
  contextOf(device, "cuDeviceTotalMem");
  *bytes = simulator().memory;
  return success;
}

Result cuDeviceCanAccessPeer(int *can, Device device, Device peer) {
  if (simulator().fails("cuDeviceCanAccessPeer"))
    return refused();
  contextOf(device, "cuDeviceCanAccessPeer");
  contextOf(peer, "cuDeviceCanAccessPeer");
  *can = device != peer && simulator().peers;
  return success;
}

Result cuDevicePrimaryCtxRetain(Context *context, Device device) {
  if (simulator().fails("cuDevicePrimaryCtxRetain"))
    return refused();
  CUctx_st &made = contextOf(device, "cuDevicePrimaryCtxRetain");
  ++made.retained;
  *context = &made;
  return success;
}

Result cuDevicePrimaryCtxRelease_v2(Device device) {
  Simulator &s = simulator();
  bool fails = s.fails("cuDevicePrimaryCtxRelease", true);
  CUctx_st &context = contextOf(device, "cuDevicePrimaryCtxRelease");
  if (--context.retained < 0)
    fatal("a context is released more often than it was retained");
  if (s.current == &context && context.retained == 0)
    s.current = nullptr;
  return fails ? refused() : success;
}

Result cuCtxSetCurrent(Context context) {
  Simulator &s = simulator();
  if (s.fails("cuCtxSetCurrent", true)) // works on a lost device too
    return refused();
  if (context && context->retained == 0)
    fatal("cuCtxSetCurrent of a context that nobody retains");
  s.current = context;
  return success;
}

Result cuCtxEnablePeerAccess(Context peer, unsigned) {
  Simulator &s = simulator();
  if (s.fails("cuCtxEnablePeerAccess"))
    return refused();
  if (s.device("cuCtxEnablePeerAccess") == peer->device)
    fatal("a device is no peer of its own");
  if (!s.peers)
    fatal("cuCtxEnablePeerAccess of a device that has said it cannot be reached");
  return success;
}

Result cuCtxSetLimit(int limit, size_t value) {
  Simulator &s = simulator();
  int device = s.device("cuCtxSetLimit");
  if (s.fails("cuCtxSetLimit"))
    return refused();
  if (limit != stackLimit)
    fatal("cuCtxSetLimit of limit " + std::to_string(limit));
  size_t bytes = value * threadsOfProcessor * processors;
  if (bytes > s.memory - std::min(s.memory, s.used(device)))
    return outOfMemory;
  contextOf(device, "cuCtxSetLimit").localBytes = bytes;
  return success;
}

Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  Simulator &s = simulator();
  s.device("cuCtxGetStreamPriorityRange");
  if (s.fails("cuCtxGetStreamPriorityRange"))
    return refused();
  *least = 0;
  *greatest = greatestPriority;
  return success;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  Simulator &s = simulator();
  if (s.fails("cuMemGetInfo"))
    return refused();
  *total = s.memory;
  *free = s.memory - std::min(s.memory, s.used(s.device("cuMemGetInfo")));
  return success;
}

Result cuMemAlloc_v2(Address *memory, size_t bytes) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuMemAlloc");
  int device = s.device("cuMemAlloc");
  if (s.fails("cuMemAlloc"))
    return s.lost ? 719 : outOfMemory;
  if (bytes == 0)
    fatal("cuMemAlloc of no bytes");
  if (bytes > s.memory - std::min(s.memory, s.used(device)))
    return outOfMemory;
  void *place = newMemory(bytes, device);
  *memory = reinterpret_cast<Address>(place);
  return place ? success : outOfMemory;
}

Result cuMemFree_v2(Address memory) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuMemFree");
  bool fails = s.fails("cuMemFree", true);
  freeMemory(memory, false, "cuMemFree");
  return fails ? refused() : success;
}

Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuMemHostAlloc");
  s.device("cuMemHostAlloc");
  if (s.fails("cuMemHostAlloc"))
    return s.lost ? 719 : outOfMemory;
  *memory = newMemory(bytes, -1);
  return *memory ? success : outOfMemory;
}

Result cuMemFreeHost(void *memory) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuMemFreeHost");
  bool fails = s.fails("cuMemFreeHost", true);
  freeMemory(reinterpret_cast<uintptr_t>(memory), true, "cuMemFreeHost");
  return fails ? refused() : success;
}

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned options, int *option, void **values) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuModuleLoadDataEx");
  int device = s.device("cuModuleLoadDataEx");
  if (s.fails("cuModuleLoadDataEx"))
    return refused();
  if (options != 2 || option[0] != jitErrorLog || option[1] != jitErrorLogBytes || !values[0])
    fatal("cuModuleLoadDataEx with options that it does not know");
  // A cubin runs nowhere here; PTX text is what it is said to be.
  std::string code;
  if (s.major > 0 && std::memcmp(image,
                                 "\x7f"
                                 "ELF",
                                 4) == 0)
    return noBinaryForGpu;
  if (s.major > 0) {
    const char *file = std::getenv("MTC_SIM_PTX");
    if (!file)
      return invalidPtx;
    code = fileBytes(file);
    image = code.data();
  }
  CUmod_st *loaded = s.modules.make();
  loaded->device = device;
  if (!loadImage(image, *loaded)) {
    s.modules.free(loaded);
    return invalidImage;
  }
  *module = loaded;
  return success;
}

Result cuModuleUnload(Module module) {
  Simulator &s = simulator();
  s.notWhileCapturing("cuModuleUnload");
  bool fails = s.fails("cuModuleUnload", true);
  s.runQueue();
  CUmod_st &loaded = s.modules.get(module);
  for (auto &[name, function] : loaded.functions)
    s.functions.free(function);
  unloadImage(loaded);
  s.modules.free(module);
  return fails ? refused() : success;
}
