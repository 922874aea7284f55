// SPDX-License-Identifier: Apache-2.0
//
// The options of a compilation, after checks and with defaults.
#ifndef COMPILER_API_OPTIONS_H
#define COMPILER_API_OPTIONS_H

#include "frontend/training/TrainingOptions.h"
#include "runtime/abi/mtc.h"
#include "runtime/support/status.h"
#include "runtime/support/text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtc {

// The fields of mtc_options, and the options that checkOptions parses from them.
struct Options {
  mtc_options values = mtc_options_init(); // each in its range (option_table.h), and with its default where it has none
  std::vector<std::string> cpus;           // best first
  bool forCpus = true;
  std::string precision;         // "f32", "tf32", "bf16", "f16", "f64"; empty: the model's own
  std::vector<std::string> gpus; // "sm_90" ..., "simulated"
  int32_t logitBlocks = 0;       // Compilation::logitBlocks
  int stopAfter = -1;            // index of a stage, -1: make the plan
  TrainingOptions training;      // for formats whose models may lack them
  std::vector<std::string> vocabulary;
  std::string columns;          // the text of a columns file; "": none
  std::vector<int64_t> lengths; // sequence lengths, increasing; empty: the model has one size

  int64_t shardRows() const { return (values.batch + values.shards - 1) / values.shards; }
  // Whether batch normalization uses the statistics of each shard instead of the batch.
  bool localStatistics() const { return std::string_view(values.batch_norm) == "local"; }
  bool isDouble() const { return precision == "f64"; }
  bool recomputes() const { return std::string_view(values.recompute) == "auto"; }
  void say(int level, const std::string &message) const {
    if (values.log)
      values.log(values.log_user, level, mtrun::printable(message).c_str());
  }
};

// Checks the options of the caller, null for all defaults. MT_INVALID: the message says what was expected and what was
// found.
mtrun::Status checkOptions(const mtc_options *caller, Options &options);

} // namespace mtc

#endif
