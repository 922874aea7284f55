// SPDX-License-Identifier: Apache-2.0
//
// Messages through a library of MPI that is opened when a run needs it: the launcher's, or the file that MTRUN_MPI
// names. Only point-to-point messages are used, because MPI does not fix the order of additions of its collectives.
#pragma once

#include "runtime/device/Transport.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace mtrun {

// Opens and starts MPI, which a process can do once; later calls return the same world. `process` and `processes` are
// what the launcher said. `log`: receives the library's version; may be empty. MT_NO_DEVICE: there is no library of
// MPI, it cannot be used, or it is not the launcher's.
Status openMpi(int process, int processes, const std::function<void(int level, const std::string &message)> &log,
               std::unique_ptr<Transport> &transport);

// Returns true after a call of openMpi(). `status`: whether MPI has started.
bool hasOpenedMpi(Status &status);

// MPI_Allreduce of floats after openMpi(), to compare with: its order of additions is MPI's own. MT_LOST.
Status mpiAllReduce(const float *from, float *to, int64_t elements);

// Selects whether MPI is ended when this process exits, which waits for all processes: true after a session that ended
// in all processes, false after a loss.
void endMpiAtExit(bool all);

} // namespace mtrun
