// SPDX-License-Identifier: Apache-2.0
//
// The objects of a group that recording a program needs.
#pragma once

#include "runtime/device/cuda/Communicator.h"
#include "runtime/device/cuda/HostCopies.h"
#include "runtime/device/cuda/Libraries.h"

namespace mtrun::cuda {

struct GroupParts {
  CudaDevices &devices;
  std::unique_ptr<Libraries> libraries; // libraries of the loaded plan
  std::unique_ptr<Communicator> communicator;
  HostCopies copies{};                            // copies of the caller's tensors
  bool addsByCommunicator = false;                // the communicator adds in all-reduces, in its own order
  int corruptCollective = -1, corruptDevice = -1; // DeviceGroup::corruptPartial
};

} // namespace mtrun::cuda
