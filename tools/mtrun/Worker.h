// SPDX-License-Identifier: Apache-2.0
//
// The process that trains, in addition to the process that the launcher has started. Launchers kill all their processes
// as soon as one is lost (MPICH at once, Open MPI after a second), and by then the others have not written what the
// next start goes on with. So the launcher's process only waits for a worker, in a process group of its own that no
// launcher reaches.
#pragma once

#include <optional>

namespace mtrun_tool {

// Forks. Returns nullopt in the worker; in the launcher's process it waits for the worker and returns its exit code. A
// first signal to stop is passed on as stopSignal, later signals as they are. The end of the launcher's process
// requests a stop too.
std::optional<int> startWorker();

// Requests a stop; further requests change nothing. Blocked in a worker until it is handled.
extern const int stopSignal;
// Call in the handler of stopSignal: a worker whose launcher's process has ended gets half a minute to stop.
void limitOrphan();
// Ends a worker whose launcher's process has ended: the library of MPI would wait for the launcher.
void endOrphan(int code);

} // namespace mtrun_tool
