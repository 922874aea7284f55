// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is a folder of two files: variables.safetensors, and manifest.json, which says what the variables are,
// where the run stood and what every byte must hash to. docs/checkpoints.md is the prose.
#pragma once

#include "runtime/abi/mt.h"
#include "runtime/support/hash_text.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mtrun {

// What a loop needs beside the variables to go on as if it had never stopped.
struct LoopState {
  int64_t seed = 0;
  int64_t epoch = 0;    // complete ones
  int64_t position = 0; // steps done in the epoch under way; all of them: its validation is still to come
  int64_t step = 0;     // steps done since the beginning

  // What `position` and the order of samples depend on.
  int64_t samples = 0, batch = 0, stepsPerEpoch = 0, window = 0;
  bool shuffle = false, dropRemainder = false;
  int64_t choice = 0;  // tells apart which samples were chosen of the data, where some are held out; 0: all of them
  std::string content; // tells apart what the samples hold (contentHash); "": not known

  std::vector<std::string> classNames; // of the labels 0, 1, ...; empty: not known

  std::vector<double> sums, totals; // of the running means of the epoch under way

  std::vector<std::string> names;                       // of the history's columns
  std::vector<double> history;                          // a row an epoch
  std::map<std::string, std::vector<double>> callbacks; // what each must remember

  bool stoppedEarly = false;                                       // early stopping ended the run after `epoch`
  double scheduledRate = std::numeric_limits<double>::quiet_NaN(); // of the last step, where a schedule computes it
  double givenRate = 0; // the learning rate that the run was started with; 0: the model's own
};

struct TensorRecord {
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape;
  Hash128 hash; // of its bytes
};

struct Manifest {
  std::string model;
  Hash128 plan;           // Plan::stepsHash of the plan that made it; in older checkpoints Plan::hash
  std::string tuning;     // hash of the tuning file of its GPUs, in hexadecimal digits; "" without one
  std::string conditions; // what else may change bits (Session::conditions); "": an older checkpoint does not say
  LoopState state;
  std::string monitor;               // the metric that chooses the best checkpoint
  std::optional<double> monitored;   // its value; none in the middle of an epoch
  uint64_t fileSize = 0;             // of variables.safetensors
  Hash128 header;                    // of its length and header
  std::vector<TensorRecord> tensors; // in the order of the file
};

inline constexpr const char *manifestFile = "manifest.json";
inline constexpr const char *variablesFile = "variables.safetensors";

// The text ends with the hash of all that is before it.
std::string writeManifest(const Manifest &manifest);
// Any bytes are fine, those that end with their own hash too: no number that a run would take is left unchecked.
// MT_CORRUPT says what was expected and what was found. `where` begins messages.
Status parseManifest(const std::string &text, const std::string &where, Manifest &manifest);

} // namespace mtrun
