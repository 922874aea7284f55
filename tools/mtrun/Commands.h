// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of mtrun, as clients of mtrun.h. Each returns the exit code.
#pragma once

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

struct Arguments {
  CompileArguments compile;
  std::vector<std::string> words; // the command line as it was given
  std::string plan, data, validation, devices, cpu, load, save, output;
  std::string run, checkpoint, resume, history, monitor, tensorboard, trace;
  int64_t epochs = 1, moreEpochs = 0, stepsPerEpoch = 0, shuffleWindow = 0, seed = 0, steps = 200, warmup = 20,
          rows = 0;
  int64_t everySteps = 0, everyEpochs = 0, keep = 3, earlyPatience = 0, plateauPatience = 0, samples = 3;
  double validationSplit = 0, everySeconds = 0, earlyMinDelta = 0, plateauFactor = 0.1, plateauMinRate = 0;
  int32_t outputIndex = -1, repeats = 20;
  bool validationLast = false; // hold out the last samples instead of drawn ones
  bool noShuffle = false, dropRemainder = false, privateVariables = false, noPin = false, noSpin = false;
  bool json = false, force = false, allowNan = false, uncheckedIds = false, restoreBest = false, profile = false,
       verbose = false, strict = false, speed = false;
  std::string epochFile, earlyMonitor, plateauMonitor, checkpointMonitor;
  int64_t startFromEpoch = 0, plateauCooldown = 0, validationFreq = 1, validationSteps = 0, initialEpoch = 0;
  std::optional<double> baseline, plateauMinDelta, learningRate;
  bool bestOnly = false, weightsOnly = false;
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
