// SPDX-License-Identifier: Apache-2.0
//
// What started this process: a launcher that started several tells each its number in variables of the environment.
#pragma once

#include "runtime/support/status.h"

#include <optional>
#include <string>
#include <string_view>

namespace mtrun {

// The variables of a launcher; null: it has none of that kind.
struct Launcher {
  std::string_view name;
  const char *rank, *size, *local, *localSize;
};

// In which a user says that the processes of a launcher have nothing to do with each other: "1".
inline constexpr const char *processesVariable = "MTRUN_PROCESSES";

// The value of a variable of the environment; null: it is not set, or empty.
const char *environmentVariable(const char *name);
// A whole number from 0 in one; none: it is not set. MT_INVALID: it is another text.
Status environmentNumber(const char *name, std::optional<int> &value);

// The launcher that started this process beside others, or null. MT_INVALID: a variable of one is no number.
Status findLauncher(const Launcher *&launcher);

// MT_INVALID: a launcher started several processes, each of which would do all of the work of `what`. `independent`
// says how a user asks for just that.
Status expectNoLauncher(std::string_view what, std::string_view independent);

} // namespace mtrun
