// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of mtrun, as clients of mtrun.h. Each returns the exit code.
#pragma once

#include "runtime/abi/mtrun.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrun_tool {

// EX_TEMPFAIL: asked to stop, and what is needed to go on is saved.
inline constexpr int kInterrupted = 75;

// Of mtc, where a command is given a model in place of a plan.
struct CompileArguments {
  int64_t batch = 0;
  std::string optimizer, loss, metrics, precision, vocabulary;
  std::vector<std::string> inputShapes;
  bool sampleWeights = false;
};

inline mtrun_loop_options loopDefaults() {
  mtrun_loop_options options = mtrun_loop_options_init();
  options.epochs = options.validation_freq = 1;
  options.plateau_factor = 0.1;
  return options;
}

inline mtrun_checkpoint_options checkpointDefaults() {
  mtrun_checkpoint_options options = mtrun_checkpoint_options_init();
  options.keep = 3;
  return options;
}

struct Arguments {
  CompileArguments compile;
  std::vector<std::string> words; // the command line as it was given
  std::string plan, data, validation, devices, cpu, load, save, output;
  std::string run, checkpoint, resume, history, monitor, tensorboard, trace;
  // Fields that the command line sets as they are; train() sets those that depend on others.
  mtrun_loop_options loop = loopDefaults();
  mtrun_checkpoint_options saving = checkpointDefaults();
  int64_t seed = 0, steps = 200, warmup = 20, rows = 0, samples = 3;
  int32_t outputIndex = -1, repeats = 20;
  bool privateVariables = false, noPin = false, noSpin = false, json = false, allowNan = false, uncheckedIds = false,
       profile = false, verbose = false, strict = false, speed = false;
  std::string epochFile, earlyMonitor, plateauMonitor, checkpointMonitor;
  std::optional<double> baseline, plateauMinDelta, learningRate;
  std::string lrScaling, libraries = "auto", tuning;
  int64_t baseBatch = 0, stepsPerLaunch = 1, microBatches = 0;
  double seconds = 5;
  int64_t processes = 0; // 0: one a GPU
  int32_t process = 0, localProcess = 0;
  std::string rendezvous, secret;
  double timeout = 600;
};

int train(const Arguments &arguments);
int evaluate(const Arguments &arguments);
int predict(const Arguments &arguments);
int exportModel(const Arguments &arguments);
int benchmark(const Arguments &arguments);
int devices(const Arguments &arguments);
int tune(const Arguments &arguments);
int data(const Arguments &arguments);

// Prints "mtrun: error: ..." a line of the message.
int reportError(int code, const std::string &message);
// To standard output, at once.
void print(const std::string &text);
// The reason why it could not be written, 0 if it could.
int outputError();

} // namespace mtrun_tool
