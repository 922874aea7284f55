// SPDX-License-Identifier: Apache-2.0
//
// The supported GPU architectures: one description per compute capability. The compiler chooses tile sizes by these
// descriptions (compiler/codegen/gpu/GpuTarget.h), and the runtime computes a GPU's peak rates from them.
#pragma once

#include <cstdint>
#include <string_view>

namespace mtrun {

struct GpuArchitecture {
  std::string_view name; // name for ptxas
  int capability;        // 10 * major + minor
  // Fused multiply-adds per multiprocessor and clock. `f32`: float32. `tf32`: tensor cores in TF32 (dense, sums in
  // float32), 0 if they do not support TF32. BF16 and F16 have twice the TF32 rate.
  int f32, tf32;
  int sharedBytes;     // workgroup memory per multiprocessor
  int multiprocessors; // per GPU

  constexpr bool hasTensorCores() const { return tf32 > 0; }
  // PTX ISA supports wgmma only for sm_90a.
  constexpr bool hasWarpgroups() const { return capability == 90; }
};

// Lowest capability first. Sources of `f32` and `sharedBytes`: CUDA C++ Programming Guide, arithmetic instructions and
// technical specifications per compute capability. Sources of `tf32` and `multiprocessors`: NVIDIA's data sheets and
// architecture papers of T4, A100, RTX A6000, L40S, H100 SXM, B200 and RTX PRO 6000. A GeForce GPU has half the rate
// for sums in float32.
inline constexpr GpuArchitecture gpuArchitectures[] = {
    {"sm_75", 75, 64, 0, 64 << 10, 40},        {"sm_80", 80, 64, 512, 164 << 10, 108},
    {"sm_86", 86, 128, 256, 100 << 10, 84},    {"sm_89", 89, 128, 256, 100 << 10, 142},
    {"sm_90", 90, 128, 1024, 228 << 10, 132},  {"sm_100", 100, 128, 2048, 228 << 10, 148},
    {"sm_120", 120, 128, 256, 100 << 10, 188},
};
// The architecture of the simulated driver, which reports capability 0.
inline constexpr GpuArchitecture simulatedArchitecture = {"simulated", 0, 128, 0, 64 << 10, 1};

// Returns the highest architecture whose capability is at most `capability`, or the lowest architecture of all.
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
