// SPDX-License-Identifier: Apache-2.0
//
// The GPU architectures that code is made for: one description per compute capability. The compiler cuts kernels by
// them (compiler/codegen/gpu/GpuTarget.h), and the runtime computes a GPU's peak rates from them.
#pragma once

#include <cstdint>
#include <string_view>

namespace mtrun {

struct GpuArchitecture {
  std::string_view name; // ptxas'
  int capability;        // 10 * major + minor
  // Fused multiply-adds of a multiprocessor in a clock: of float32; of its tensor cores in TF32, dense, with sums in
  // float32, 0 if they have no TF32. In BF16 and F16 the tensor cores do twice as many.
  int f32, tf32;
  int sharedBytes;     // of workgroup memory of a multiprocessor
  int multiprocessors; // of one GPU of this architecture

  constexpr bool hasTensorCores() const { return tf32 > 0; }
  // wgmma: PTX ISA has it for sm_90a alone.
  constexpr bool hasWarpgroups() const { return capability == 90; }
};

// Lowest first. float32 and sharedBytes: CUDA C++ Programming Guide, arithmetic instructions and technical
// specifications per compute capability. TF32 and multiprocessors: NVIDIA's data sheets and architecture papers of T4,
// A100, RTX A6000, L40S, H100 SXM, B200 and RTX PRO 6000. Sums in float32 are half as fast on a GeForce.
inline constexpr GpuArchitecture gpuArchitectures[] = {
    {"sm_75", 75, 64, 0, 64 << 10, 40},        {"sm_80", 80, 64, 512, 164 << 10, 108},
    {"sm_86", 86, 128, 256, 100 << 10, 84},    {"sm_89", 89, 128, 256, 100 << 10, 142},
    {"sm_90", 90, 128, 1024, 228 << 10, 132},  {"sm_100", 100, 128, 2048, 228 << 10, 148},
    {"sm_120", 120, 128, 256, 100 << 10, 188},
};
// What the simulated driver says it is: capability 0.
inline constexpr GpuArchitecture simulatedArchitecture = {"simulated", 0, 128, 0, 64 << 10, 1};

// The newest that a GPU of this capability is at least; the lowest for older ones.
constexpr const GpuArchitecture &gpuArchitecture(int capability) {
  const GpuArchitecture *found = capability == 0 ? &simulatedArchitecture : gpuArchitectures;
  for (const GpuArchitecture &architecture : gpuArchitectures)
    if (architecture.capability <= capability)
      found = &architecture;
  return *found;
}

static_assert(gpuArchitecture(0).name == "simulated" && gpuArchitecture(70).name == "sm_75");
static_assert(gpuArchitecture(87).name == "sm_86" && gpuArchitecture(121).name == "sm_120");

} // namespace mtrun
