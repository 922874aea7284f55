// SPDX-License-Identifier: Apache-2.0
//
// Chooses the processes, the devices and the shards of each device from a session's options.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/device/DeviceGroup.h"
#include "runtime/device/ProcessGroup.h"
#include "runtime/device/Transport.h"
#include "runtime/session/Memory.h"
#include "runtime/support/device_spec.h"

#include <functional>
#include <memory>
#include <string>

namespace mtrun {

struct SessionDevices {
  ~SessionDevices(); // waits for the other processes of CPU devices, so that all can end MPI

  DeviceSpec spec;
  std::unique_ptr<Transport> transport;       // null: one process, or GPUs
  std::unique_ptr<ProcessGroup> processGroup; // null: one process
  std::unique_ptr<DeviceGroup> group;
  DeviceLayout layout;
  std::vector<int> hosts; // the number of processes of each host, in order, if each has a whole subtree; else empty
  std::string conditions; // conditions other than plan and seed that may change bits: lines "WHAT: VALUE"

  ExchangePlaces places() const;
  // Returns the number of devices of the group: 1 if the devices of `spec` share variables.
  int devices() const { return static_cast<int>(layout.shards.size()); }
};

// Connects to the other processes, starts the devices, which keep `log`, and loads the plan's code on them. MT_INVALID,
// MT_NO_DEVICE, MT_NO_MEMORY, MT_LOST, MT_IO.
Status chooseDevices(const Plan &plan, const mtrun_options &options,
                     std::function<void(int level, const std::string &message)> log, SessionDevices &chosen);

// Connects to the other processes of CPU devices, without a plan: as many shards as processes, or the next power of
// two. All must have the same `agreement`. MT_INVALID, MT_NO_DEVICE, MT_LOST, MT_IO.
Status connectProcesses(const mtrun_options &options, const std::string &agreement,
                        std::function<void(int level, const std::string &message)> log, SessionDevices &chosen);

// Tells the other processes that this one fails, unless it has begun to connect to them. MT_NO_DEVICE: MPI cannot be
// started.
Status abandonProcesses(const mtrun_options &options, const Status &why);

} // namespace mtrun
