// SPDX-License-Identifier: Apache-2.0
//
// "cpu:2x4", "cuda:0-3": which devices a session runs on.
#pragma once

#include "runtime/support/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct DeviceSpec {
  std::string kind = "cpu";
  int devices = 1;
  int threads = 1;        // a device
  std::vector<int> gpus; // of kind cuda: each device's GPU
};

// KIND, KIND:N or KIND:NxT with KIND cpu or null, N and T from 1, N * T at most 1024; or cuda:LIST, a list of GPUs by
// number, A or A-B, with commas between; *K after one: K devices on each of them. MT_INVALID.
Status parseDeviceSpec(std::string_view text, DeviceSpec &spec);

} // namespace mtrun
