// SPDX-License-Identifier: Apache-2.0
//
// The interface of libmtrun_cuda.so for libmtrun of the same build.
#pragma once

#include "runtime/device/DeviceGroup.h"

namespace mtrun::cuda {

struct PlugIn {
  const char *build; // must be equal in both libraries, which share C++ classes
  Status (*make)(const GroupOptions &options, std::unique_ptr<DeviceGroup> &group);
  Status (*list)(std::vector<std::string> &lines);      // a line per GPU
  Status (*libraries)(std::vector<std::string> &lines); // a line per library of NVIDIA
};

inline constexpr const char *build = MTRUN_BUILD;

} // namespace mtrun::cuda

extern "C" MT_API const mtrun::cuda::PlugIn *mtrun_cuda_plug_in();
