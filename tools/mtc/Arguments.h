// SPDX-License-Identifier: Apache-2.0
//
// The command line of mtc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

enum class Command { Compile, Import, Inspect, Summary };

struct Arguments {
  Command command = Command::Compile;
  std::string input, output; // "-": standard input, standard output
  // compile
  int64_t batch = 0, seed = 0, deviceMemory = 0;
  int32_t shards = 0, microBatches = 0;
  std::string target, mode = "exact", cpu, stopAfter, dumpStages;
  bool timing = false, maxBatch = false;
  std::string recompute;
  std::string weights;
  // compile and import
  std::string loss, optimizer, metrics, freeze, trainable, noWeightDecay;
  std::string batchNorm; // "": global
  std::string precision; // "": the model's own
  std::string classNames, vocabulary;
  std::string inputShape; // of several inputs, between semicolons
  bool dropUnsupportedMetrics = false, sampleWeights = false;
  // inspect
  bool json = false, html = false;
  std::string gpu, trace, against;
  std::optional<int32_t> inspectDevices;
};

// False if the program is done, with `exitCode`: help was asked for, or the command line is wrong.
bool parseArguments(int argc, char **argv, Arguments &arguments, int &exitCode);
