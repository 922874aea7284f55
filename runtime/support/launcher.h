// SPDX-License-Identifier: Apache-2.0
//
// Detects the launcher that started this process. A launcher of several processes passes the rank of each in
// environment variables.
#pragma once

#include "runtime/support/status.h"

#include <optional>
#include <string>
#include <string_view>

namespace mtrun {

// The environment variables of a launcher; null if the launcher does not set a variable for it.
struct Launcher {
  std::string_view name;
  const char *rank, *size, *local, *localSize;
  bool mpi; // its processes can exchange messages through a library of MPI
};

// The environment variable that a user sets to "1" if the processes of a launcher are independent runs.
inline constexpr const char *processesVariable = "MTRUN_PROCESSES";

// The environment variable that `mtrun supervise` sets for the processes that it starts: "NAME SECRET ADDRESS...", its
// name, and where process 0 connects to it.
inline constexpr const char *supervisorVariable = "MTRUN_SUPERVISOR";

// Returns the value of an environment variable, or null if it is unset or empty.
const char *environmentVariable(const char *name);
// Reads an environment variable as a whole number >= 0; nullopt if it is unset. MT_INVALID: it has another text.
Status environmentNumber(const char *name, std::optional<int> &value);

// Finds the launcher that started this process as one of several; null if there is none. MT_INVALID: one of its
// variables is not a number.
Status findLauncher(const Launcher *&launcher);

// Returns the first host of a list of Slurm: "node07" for "node[07-09,12],gpu1". "" for an empty list.
std::string firstHost(std::string_view list);

// Returns true if the user says so.
bool isIndependent();

// Finds the place of this process among the processes of a launcher of MPI: number `process` of `processes`, and number
// `local` on its host. Without a launcher, or if the processes are independent runs, 0 of 1. MT_INVALID: the processes
// of this launcher cannot exchange messages; `what` and `independent` are as for expectNoLauncher().
struct LaunchedProcess {
  int process = 0, processes = 1, local = 0;
};
Status findLaunchedProcess(std::string_view what, std::string_view independent, LaunchedProcess &result);

// MT_INVALID: a launcher started several processes, and each would do all of the work of `what`. `independent` is the
// option that allows it, for the message.
Status expectNoLauncher(std::string_view what, std::string_view independent);

} // namespace mtrun
