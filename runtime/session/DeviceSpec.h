// SPDX-License-Identifier: Apache-2.0
//
// "cpu:2x4": which devices a session runs on.
#pragma once

#include "runtime/abi/status.h"

#include <string>
#include <string_view>

namespace mtrun {

struct DeviceSpec {
  std::string kind = "cpu";
  int devices = 1;
  int threads = 1; // a device
};

// KIND, KIND:N or KIND:NxT with KIND cpu or null, N and T from 1, N * T at most 1024. MT_INVALID.
Status parseDeviceSpec(std::string_view text, DeviceSpec &spec);

} // namespace mtrun
