// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver that the runtime calls. They are looked up in the driver's library when a GPU is
// first used, and declared here, so that neither the build nor the start needs NVIDIA's toolkit; test/unit/runtime_cuda
// compares the declarations with cuda.h if it is installed.
#pragma once

#include "runtime/support/status.h"

#include <cstddef>
#include <string>

// The driver's opaque types.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace mtrun::cuda {

using Result = int;                 // CUresult
using Device = int;                 // CUdevice
using Address = unsigned long long; // CUdeviceptr
using Context = CUctx_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Stream = CUstream_st *;
using Event = CUevent_st *;
using Graph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;

// Values of enum cudaError_enum.
inline constexpr Result success = 0, outOfMemory = 2, noDevice = 100, invalidImage = 200, noBinaryForGpu = 209,
                        invalidPtx = 218, unsupportedPtx = 222, functionNotFound = 500, notReady = 600;
// Values of other enumerations: CUfunction_attribute, CUdevice_attribute, CUjit_option, CUstream_flags, CUevent_flags,
// CUstreamCaptureMode.
inline constexpr int maxDynamicSharedBytes = 8;
inline constexpr int capabilityMajor = 75, capabilityMinor = 76, jitErrorLog = 5, jitErrorLogBytes = 6;
inline constexpr int clockRate = 13, multiprocessors = 16, memoryClockRate = 36, memoryBusWidth = 37; // kHz, bits
inline constexpr int threadsPerMultiprocessor = 39, stackLimit = 0; // CUlimit: bytes of a thread's stack
inline constexpr unsigned streamNonBlocking = 1, eventDisableTiming = 2, hostPortable = 1, eventRecordExternal = 1;
inline constexpr int captureThreadLocal = 1;

// CUDA 11.4 is the first version with cuGraphInstantiateWithFlags.
inline constexpr int oldestDriver = 11040;

// X(member, symbol in the library, parameters)
#define MTRUN_CUDA_FUNCTIONS(X)                                                                                        \
  X(init, cuInit, (unsigned flags))                                                                                    \
  X(driverGetVersion, cuDriverGetVersion, (int *version))                                                              \
  X(getErrorName, cuGetErrorName, (Result error, const char **text))                                                   \
  X(getErrorString, cuGetErrorString, (Result error, const char **text))                                               \
  X(deviceGetCount, cuDeviceGetCount, (int *count))                                                                    \
  X(deviceGet, cuDeviceGet, (Device * device, int ordinal))                                                            \
  X(deviceGetName, cuDeviceGetName, (char *name, int bytes, Device device))                                            \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, Device device))                              \
  X(deviceGetPciBusId, cuDeviceGetPCIBusId, (char *id, int bytes, Device device))                                      \
  X(deviceTotalMem, cuDeviceTotalMem_v2, (size_t *bytes, Device device))                                               \
  X(deviceCanAccessPeer, cuDeviceCanAccessPeer, (int *can, Device device, Device peer))                                \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, (Context * context, Device device))                                    \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (Device device))                                                  \
  X(ctxSetCurrent, cuCtxSetCurrent, (Context context))                                                                 \
  X(ctxSetLimit, cuCtxSetLimit, (int limit, size_t value))                                                             \
  X(ctxEnablePeerAccess, cuCtxEnablePeerAccess, (Context peer, unsigned flags))                                        \
  X(memGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                        \
  X(memAlloc, cuMemAlloc_v2, (Address * memory, size_t bytes))                                                         \
  X(memFree, cuMemFree_v2, (Address memory))                                                                           \
  X(memHostAlloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                       \
  X(memFreeHost, cuMemFreeHost, (void *memory))                                                                        \
  X(memcpyAsync, cuMemcpyAsync, (Address to, Address from, size_t bytes, Stream stream))                               \
  X(memsetD8Async, cuMemsetD8Async, (Address to, unsigned char byte, size_t bytes, Stream stream))                     \
  X(streamCreate, cuStreamCreate, (Stream * stream, unsigned flags))                                                   \
  X(streamCreateWithPriority, cuStreamCreateWithPriority, (Stream * stream, unsigned flags, int priority))             \
  X(ctxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                               \
  X(streamDestroy, cuStreamDestroy_v2, (Stream stream))                                                                \
  X(streamSynchronize, cuStreamSynchronize, (Stream stream))                                                           \
  X(streamWaitEvent, cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                                  \
  X(streamBeginCapture, cuStreamBeginCapture_v2, (Stream stream, int mode))                                            \
  X(streamEndCapture, cuStreamEndCapture, (Stream stream, Graph * graph))                                              \
  X(eventCreate, cuEventCreate, (Event * event, unsigned flags))                                                       \
  X(eventQuery, cuEventQuery, (Event event))                                                                           \
  X(eventDestroy, cuEventDestroy_v2, (Event event))                                                                    \
  X(eventRecord, cuEventRecord, (Event event, Stream stream))                                                          \
  X(eventRecordWithFlags, cuEventRecordWithFlags, (Event event, Stream stream, unsigned flags))                        \
  X(eventElapsedTime, cuEventElapsedTime, (float *milliseconds, Event from, Event to))                                 \
  X(eventSynchronize, cuEventSynchronize, (Event event))                                                               \
  X(moduleLoadDataEx, cuModuleLoadDataEx,                                                                              \
    (Module * module, const void *image, unsigned options, int *option, void **values))                                \
  X(moduleUnload, cuModuleUnload, (Module module))                                                                     \
  X(moduleGetFunction, cuModuleGetFunction, (Function * function, Module module, const char *name))                    \
  X(funcSetAttribute, cuFuncSetAttribute, (Function function, int attribute, int value))                               \
  X(launchKernel, cuLaunchKernel,                                                                                      \
    (Function function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,              \
     unsigned blockZ, unsigned sharedBytes, Stream stream, void **parameters, void **extra))                           \
  X(graphInstantiate, cuGraphInstantiateWithFlags, (GraphExec * exec, Graph graph, unsigned long long flags))          \
  X(graphLaunch, cuGraphLaunch, (GraphExec exec, Stream stream))                                                       \
  X(graphExecDestroy, cuGraphExecDestroy, (GraphExec exec))                                                            \
  X(graphDestroy, cuGraphDestroy, (Graph graph))

struct Driver {
#define MTRUN_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  MTRUN_CUDA_FUNCTIONS(MTRUN_CUDA_MEMBER)
#undef MTRUN_CUDA_MEMBER

  // Returns a text such as "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure".
  std::string describe(Result error) const;
};

// Returns "12.4" for 12040.
std::string versionText(int version);

// Opens libcuda.so.1, or the file in $MTRUN_CUDA_DRIVER, and initializes the driver, once per process. MT_NO_DEVICE:
// the library is missing, older than CUDA 11.4, or fails to initialize.
Status openDriver(const Driver *&driver);

} // namespace mtrun::cuda
