// SPDX-License-Identifier: Apache-2.0
//
// The command line of mtc.
#pragma once

#include "runtime/abi/mtc.h"

#include <cstdint>
#include <optional>
#include <string>

enum class Command { Compile, Import, Inspect, Summary };

struct Arguments {
  Command command = Command::Compile;
  std::string input, output; // "-": standard input, standard output
  // compile, and what import and summary take of it
  mtc_options options = mtc_options_init();
  // inspect
  bool json = false, html = false;
  std::string gpu, trace, against;
  std::optional<int32_t> inspectDevices;
};

// False if the program is done, with `exitCode`: help was asked for, or the command line is wrong.
bool parseArguments(int argc, char **argv, Arguments &arguments, int &exitCode);
