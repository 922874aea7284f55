// SPDX-License-Identifier: Apache-2.0
//
// The kinds of devices there are, and "cpu:2x4", "cuda:0-3": which devices a session runs on. How a kind is opened and
// listed is a row of runtime/device/Groups.cpp.
#pragma once

#include "runtime/support/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

struct DeviceKind {
  std::string_view name; // what comes before the colon, and the device of a plan's target
  bool hasCode;          // plans have machine code for it
  // Its devices have numbers, "KIND:0-3", and memory of their own: each owns its variables, may have a process of its
  // own, and is worth tuning for. Others are counted, "KIND:2x4".
  bool gpu;
};

inline constexpr DeviceKind deviceKinds[] = {{"cpu", true, false}, {"null", false, false}, {"cuda", true, true}};

// Null: there is no such kind.
const DeviceKind *deviceKind(std::string_view name);
// The kind of a list of devices, whether or not what follows the colon is right; null as above.
const DeviceKind *kindOfDevices(std::string_view devices);
// Their names, for messages: "cpu or cuda" of those with code, "cpu, null or cuda".
std::string deviceKindNames(bool withCode);

struct DeviceSpec {
  std::string kind = "cpu";
  int devices = 1;
  int threads = 1;       // a device
  std::vector<int> gpus; // of a kind of GPUs: each device's GPU

  bool onGpus() const;
};

// KIND, KIND:N or KIND:NxT, N and T from 1, N * T at most 1024; or for GPUs KIND:LIST, a list of GPUs by number, A or
// A-B, with commas between; *K after one: K devices on each of them. MT_INVALID.
Status parseDeviceSpec(std::string_view text, DeviceSpec &spec);

// The first `count` GPUs of a kind, as parseDeviceSpec() takes them.
std::string firstGpus(const DeviceKind &kind, int64_t count);

} // namespace mtrun
