// SPDX-License-Identifier: Apache-2.0
//
// What libmtrun_cuda.so offers to libmtrun of the same build.
#pragma once

#include "runtime/device/DeviceGroup.h"

namespace mtrun::cuda {

struct PlugIn {
  const char *build; // of both: their classes are the same only then
  Status (*make)(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group);
  Status (*list)(std::vector<std::string> &lines);      // a line for each GPU
  Status (*libraries)(std::vector<std::string> &lines); // a line for each library of NVIDIA
};

inline constexpr const char *build = MTRUN_BUILD;

} // namespace mtrun::cuda

extern "C" MT_API const mtrun::cuda::PlugIn *mtrun_cuda_plug_in();
