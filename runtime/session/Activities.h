// SPDX-License-Identifier: Apache-2.0
//
// The work that each process of a session has done.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/device/DeviceGroup.h"
#include "runtime/device/ProcessGroup.h"

#include <span>

namespace mtrun {

// Collects the activity of all processes in process 0, one entry per process. `own`: what the session knows; the
// group's rows and bytes are added. `processGroup` is null for one process.
// Collective. MT_LOST.
Status gatherActivities(const DeviceGroup &group, ProcessGroup *processGroup, mtrun_activity own,
                        std::span<mtrun_activity> activities);

} // namespace mtrun
