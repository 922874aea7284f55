// SPDX-License-Identifier: Apache-2.0
//
// What the programs of a group are recorded with.
#pragma once

#include "runtime/device/cuda/Communicator.h"
#include "runtime/device/cuda/HostCopies.h"
#include "runtime/device/cuda/Libraries.h"

namespace mtrun::cuda {

struct GroupParts {
  CudaDevices &devices;
  std::unique_ptr<Libraries> libraries; // of the plan whose code is loaded
  std::unique_ptr<Communicator> communicator;
  HostCopies copies{};                            // of the caller's tensors
  bool addsByCommunicator = false;                // all-reduces are the communicator's own, in an order of theirs
  int corruptCollective = -1, corruptDevice = -1; // DeviceGroup::corruptPartial
};

} // namespace mtrun::cuda
