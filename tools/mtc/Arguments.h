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
  // Options of compile; import and summary use some of them.
  mtc_options options = mtc_options_init();
  // Options of inspect.
  bool json = false, html = false;
  std::string gpu, trace, against;
  std::string hosts, hostCpu, network; // of the model of hosts
  std::optional<int32_t> inspectDevices;
};

// Parses the command line. Returns false if the program must end with `exitCode`, because help was printed or the
// command line is invalid.
bool parseArguments(int argc, char **argv, Arguments &arguments, int &exitCode);
