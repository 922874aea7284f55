// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of this machine: their properties, and the plan's code on them.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun::cuda {

// A kernel of a loaded module, and the dynamic workgroup memory of its launches.
struct LoadedKernel {
  Function function = nullptr;
  unsigned sharedBytes = 0;
};

struct Gpu {
  int ordinal = 0; // the driver's number of the GPU
  Device device = 0;
  std::string name;
  int major = 0, minor = 0; // compute capability; 0.0: the simulated driver
  uint64_t bytes = 0;       // size of memory
  // Peak rates per second from the driver's properties: float32 operations, operations of tensor cores in TF32 and in
  // 16-bit types, and bytes of memory; 0: unknown.
  double flopRate = 0, tf32Rate = 0, halfRate = 0, byteRate = 0;
  uint64_t residentThreads = 0; // maximum number of threads that run at once
  Context context = nullptr;
  Module module = nullptr;
  std::vector<LoadedKernel> kernels; // indexed as Plan.kernels

  std::string title() const { return "cuda:" + std::to_string(ordinal) + " (" + name + ")"; }
};

// Converts an error of the driver to a status: MT_NO_MEMORY if memory is exhausted, else `code`.
Status failure(const Driver &driver, Result error, const std::string &what, mt_code code = MT_DEVICE);

// Lists all GPUs, without creating contexts.
Status listGpus(const Driver &driver, std::vector<Gpu> &gpus);

// Finds the plan's targets that a GPU of this compute capability can run, best first. If `forced` is not null, only
// that target. Otherwise machine code for the same major and an equal or lower minor number, highest first; then PTX
// for an equal or lower capability. MT_INVALID, MT_DEVICE as for chooseTarget() of CPUs.
Status chooseTargets(const Plan &plan, const char *forced, int major, int minor, std::vector<uint32_t> &indices);

// Loads the target's code on the GPU, whose context must be current. `refused`: the driver does not support this code,
// but may support another target's. MT_CORRUPT, MT_DEVICE, MT_NO_MEMORY.
Status loadModule(const Driver &driver, const Plan &plan, uint32_t target, Gpu &gpu, bool &refused);
void unloadModule(const Driver &driver, Gpu &gpu);

} // namespace mtrun::cuda
