// SPDX-License-Identifier: Apache-2.0
//
// A process a GPU: which of them this one is, who started it, and starting them.
#pragma once

#include "tools/mtrun/Arguments.h"

#include <optional>
#include <string>
#include <vector>

namespace mtrun_tool {

// The variable of the environment with the secret that the processes of a run know each other by. mtrun makes one for
// the processes that it starts; for those of another launcher on several hosts the user does.
inline constexpr const char *secretVariable = "MTC_SECRET";

// Sets in `arguments` what mtrun_options needs, from the launcher that started this process (mpirun, srun, torchrun,
// mtrun itself); where none did and there are several GPUs, starts a process for each of them, waits, and returns the
// exit code. Throws Failure.
std::optional<int> distribute(Arguments &arguments, char **argv);

// The GPUs that --devices lists; empty where they are none, or several devices on one.
std::vector<int> distinctGpus(const std::string &devices);

// Starts `processes` copies of this program with the arguments `argv`, a session together, and waits for them. A signal
// goes to the first, which ends all after a step; a second one ends all at once. One that fails ends all. Returns the
// exit code of what failed first.
int runProcesses(const std::vector<int> &gpus, char **argv);

} // namespace mtrun_tool
