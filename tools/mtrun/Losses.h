// SPDX-License-Identifier: Apache-2.0
//
// A supervisor reads in the messages of a run's processes which process was lost, and on which host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mtrun_tool {

struct Loss {
  int process = 0;
  std::string host;     // "" if the message names none
  bool answers = false; // the process ended, so its host answers; else the host may be gone
};

// Reads a line such as "mtrun: error: process 2 (cpu:1x8 of b) was lost: it was silent for 15 seconds".
std::optional<Loss> lossIn(std::string_view line);

} // namespace mtrun_tool
