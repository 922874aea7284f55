// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of mtrun, as clients of mtrun.h. Each returns the exit code.
#pragma once

#include <cstdint>
#include <string>

namespace mtrun_tool {

struct Arguments {
  std::string plan, data, validation, devices = "cpu:1", cpu, load, save, output;
  int64_t epochs = 1, seed = 0, steps = 200, warmup = 20, rows = 0;
  int32_t outputIndex = 0;
  bool noShuffle = false, dropRemainder = false, privateVariables = false, noPin = false, noSpin = false;
  bool json = false;
};

int train(const Arguments &arguments);
int evaluate(const Arguments &arguments);
int predict(const Arguments &arguments);
int benchmark(const Arguments &arguments);
int devices(const Arguments &arguments);

// Prints "mtrun: error: ..." a line of the message.
int reportError(int code, const std::string &message);

} // namespace mtrun_tool
