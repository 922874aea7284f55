// SPDX-License-Identifier: Apache-2.0
//
// Finds a library of MPI, and the plug-in for its ABI. Open MPI and MPICH (Intel MPI, MVAPICH) have different ones.
#pragma once

#include "runtime/device/mpi/PlugIn.h"
#include "runtime/support/status.h"

#include <string>

namespace mtrun {

struct MpiLibrary {
  const mtrun_mpi_functions *functions = nullptr;
  std::string path; // of the library of MPI
};

// MT_NO_DEVICE: no library can be opened, it is not one of MPI, or its plug-in is missing or of another build.
Status openMpiLibrary(MpiLibrary &library);

} // namespace mtrun
