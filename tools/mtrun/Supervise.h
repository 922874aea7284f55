// SPDX-License-Identifier: Apache-2.0
//
// The command mtrun supervise: starts a launcher of several processes again when a process is lost.
#pragma once

#include "tools/mtrun/Arguments.h"

namespace mtrun_tool {

// Returns the run's exit code, or MT_LOST when no start is left. A signal to stop reaches the run past the launcher.
int supervise(const Arguments &arguments);

} // namespace mtrun_tool
