// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is a folder with two files: variables.safetensors, and manifest.json, which describes the variables, the
// position of the run and the hash of every byte. docs/checkpoints.md has the details.
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

// The state of a training loop, except for the variables, that a run needs to continue with the same bits.
struct LoopState {
  int64_t seed = 0;
  int64_t epoch = 0;    // completed epochs
  int64_t position = 0; // completed steps of the current epoch; all of them: only its validation is missing
  int64_t step = 0;     // completed steps of the run

  // The facts that `position` and the order of samples depend on.
  int64_t samples = 0, batch = 0, stepsPerEpoch = 0, window = 0;
  bool shuffle = false, dropRemainder = false;
  int64_t choice = 0;  // hash of the samples that are used, if some are held out; 0: all samples are used
  std::string content; // hash of the samples' values (contentHash); "": unknown

  std::vector<std::string> classNames; // names of the labels 0, 1, ...; empty: unknown

  std::vector<double> sums, totals; // sums and weights of the means in the current epoch

  std::vector<std::string> names;                       // names of the history's columns
  std::vector<double> history;                          // a row per epoch
  std::map<std::string, std::vector<double>> callbacks; // state of each callback

  bool stoppedEarly = false; // early stopping ended the run after `epoch`
  // learning rate of the last step if a schedule computes it
  double scheduledRate = std::numeric_limits<double>::quiet_NaN();
  double givenRate = 0; // the learning rate that the run was started with; 0: the model's own rate
};

struct TensorRecord {
  std::string name;
  mt_dtype dtype = MT_F32;
  std::vector<int64_t> shape;
  Hash128 hash; // hash of the tensor's bytes
};

struct Manifest {
  std::string model;
  Hash128 plan;           // Plan::stepsHash of the plan that wrote the checkpoint; in older checkpoints Plan::hash
  std::string tuning;     // hash of the GPUs' tuning file in hexadecimal digits; "" without a tuning file
  std::string conditions; // other conditions that may change bits (Session::conditions); "" in older checkpoints
  LoopState state;
  std::string monitor;               // the metric by which the best checkpoint is chosen
  std::optional<double> monitored;   // value of the monitored metric; nullopt in the middle of an epoch
  uint64_t fileSize = 0;             // size of variables.safetensors
  Hash128 header;                    // hash of the file's length field and header
  std::vector<TensorRecord> tensors; // records in the order of the file
};

inline constexpr const char *manifestFile = "manifest.json";
inline constexpr const char *variablesFile = "variables.safetensors";

// Returns the text, which ends with the hash of everything before it.
std::string writeManifest(const Manifest &manifest);
// Parses a manifest from untrusted text, which may be sealed with a correct hash: all numbers are checked. MT_CORRUPT
// with the expected and the found value. `where` begins messages.
Status parseManifest(const std::string &text, const std::string &where, Manifest &manifest);

} // namespace mtrun
