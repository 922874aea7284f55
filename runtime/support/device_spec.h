// SPDX-License-Identifier: Apache-2.0
//
// The kinds of devices, and the syntax of device lists such as "cpu:2x4" and "cuda:0-3". runtime/device/Groups.cpp has
// the function that opens each kind.
#pragma once

#include "runtime/support/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct DeviceKind {
  std::string_view name; // the text before the colon, and the device of a plan's target
  bool hasCode;          // plans have machine code for this kind
  // Devices of this kind have numbers ("KIND:0-3") and their own memory: each has its own variables, may have its own
  // process, and can be tuned. Devices of other kinds are counted ("KIND:2x4").
  bool gpu;
};

inline constexpr DeviceKind deviceKinds[] = {{"cpu", true, false}, {"null", false, false}, {"cuda", true, true}};

// Returns the kind of this name, or null.
const DeviceKind *deviceKind(std::string_view name);
// Returns the kind of a device list, whose part after the colon may be wrong; null if the kind is unknown.
const DeviceKind *kindOfDevices(std::string_view devices);
// Returns the names for messages: "cpu or cuda" for kinds with code, else "cpu, null or cuda".
std::string deviceKindNames(bool withCode);

struct DeviceSpec {
  std::string kind = "cpu";
  int devices = 1;
  int threads = 1;       // per device
  std::vector<int> gpus; // for GPUs: the GPU of each device

  bool onGpus() const;
};

// Parses KIND, KIND:N or KIND:NxT with N, T >= 1 and N * T <= 1024; for GPUs also KIND:LIST, where LIST has numbers A
// or ranges A-B with commas between them. A suffix *K puts K devices on each GPU of the item. MT_INVALID.
Status parseDeviceSpec(std::string_view text, DeviceSpec &spec);

// Returns the list of the first `count` GPUs of a kind in the syntax of parseDeviceSpec().
std::string firstGpus(const DeviceKind &kind, int64_t count);

} // namespace mtrun
