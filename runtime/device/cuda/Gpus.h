// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of this machine: what they are, and the plan's code on them.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtrun::cuda {

// A kernel of a loaded module, and the workgroup memory of a block that its launch gives.
struct LoadedKernel {
  Function function = nullptr;
  unsigned sharedBytes = 0;
};

struct Gpu {
  int ordinal = 0; // the driver's number of it
  Device device = 0;
  std::string name;
  int major = 0, minor = 0; // compute capability; 0.0 is the simulated driver's
  uint64_t bytes = 0;       // of memory
  // At best, as the driver's figures of the GPU say: float32 additions and multiplications, those of tensor cores in
  // TF32 and in types of 16 bits, and bytes of memory; a second; 0: it does not tell.
  double flopRate = 0, tf32Rate = 0, halfRate = 0, byteRate = 0;
  uint64_t residentThreads = 0; // that it runs at once, at most
  Context context = nullptr;
  Module module = nullptr;
  std::vector<LoadedKernel> kernels; // as Plan.kernels

  std::string title() const { return "cuda:" + std::to_string(ordinal) + " (" + name + ")"; }
};

// An error of the driver in the runtime's words. MT_NO_MEMORY where memory is what is missing, else `code`.
Status failure(const Driver &driver, Result error, const std::string &what, mt_code code = MT_DEVICE);

// All GPUs, without contexts.
Status listGpus(const Driver &driver, std::vector<Gpu> &gpus);

// The plan's targets that a GPU of this compute capability may run, best first: `forced` alone where it is not null,
// else machine code for its capability, which has the same major number and a minor number not above its own, the
// highest first; then the PTX text, if it is for no higher one. MT_INVALID, MT_DEVICE as chooseTarget of CPUs.
Status chooseTargets(const Plan &plan, const char *forced, int major, int minor, std::vector<uint32_t> &indices);

// Loads the target's code on the GPU, whose context is current; `refused`: the driver does not take such code, but may
// take another target's. MT_CORRUPT, MT_DEVICE, MT_NO_MEMORY.
Status loadModule(const Driver &driver, const Plan &plan, uint32_t target, Gpu &gpu, bool &refused);
void unloadModule(const Driver &driver, Gpu &gpu);

} // namespace mtrun::cuda
