// SPDX-License-Identifier: Apache-2.0
//
// The command line of mtrun.
#pragma once

#include "runtime/abi/mtc.h"
#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrun_tool {

// Values are parsed directly into the option structs of the C API, which mtrun.h documents. Other values have fields of
// their own.
struct Arguments {
  mtc_options compile = mtc_options_init(); // of a model in place of a plan
  std::vector<std::string> words;           // the command line as it was given
  mtrun_options session = mtrun_options_init();
  mtrun_checkpoint_options saving = mtrun_checkpoint_options_init();
  mtrun_loop_options loop = mtrun_loop_options_init();

  std::string plan, data, validation, devices, load, save, output;
  std::string run, checkpoint, epochFile, history, tensorboard, trace;
  std::string saveColumns;        // of data
  std::string receipt, window;    // of verify
  std::vector<std::string> paths; // of diff
  int64_t windows = 0, windowSeed = 0;
  int64_t steps = 200, warmup = 20, rows = 0, samples = 3;
  std::vector<int64_t> allReduces; // sizes for benchmark to measure, in place of a plan; empty: none
  int32_t outputIndex = -1, repeats = 20;
  bool json = false, profile = false, verbose = false, strict = false, speed = false;
  std::optional<double> learningRate;
  std::string lrScaling;
  int64_t baseBatch = 0;
  double seconds = 5;
  std::vector<std::string> supervised; // a launcher and its arguments
  int32_t minProcesses = 1, maxRestarts = 10;
};

} // namespace mtrun_tool
