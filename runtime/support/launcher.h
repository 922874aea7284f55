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

// Returns true if the user says so.
bool isIndependent();

// MT_INVALID: a launcher started several processes, and each would do all of the work of `what`. `independent` is the
// option that allows it, for the message.
Status expectNoLauncher(std::string_view what, std::string_view independent);

} // namespace mtrun
