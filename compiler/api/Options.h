// SPDX-License-Identifier: Apache-2.0
//
// The options of a compilation, checked and with their defaults in place.
#ifndef COMPILER_API_OPTIONS_H
#define COMPILER_API_OPTIONS_H

#include "frontend/keras/ReadKeras.h"
#include "runtime/abi/mtc.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

struct Options {
  int64_t batch = 32;
  int64_t shards = 8;
  bool fast = false;
  bool localStatistics = false; // of batch normalisation: each shard's own
  std::vector<std::string> cpus; // best first
  bool forCpus = true;
  std::string precision;        // "f32", "tf32", "bf16", "f16"; empty: the model's own
  std::vector<std::string> gpus; // "sm_90" ..., "simulated"
  int64_t seed = 1;
  int64_t deviceMemory = 0;
  bool recompute = false; // under deviceMemory
  int64_t microBatches = 0; // of the batch, which a device computes one after the other; 0: found by deviceMemory
  bool maxBatch = false;  // the largest that fits in deviceMemory in place of `batch`
  int stopAfter = -1; // index of a stage, -1: make the plan
  std::string dumpStages;
  bool timing = false;
  TrainingOptions training; // for formats whose models may lack them
  std::string weights;      // a .safetensors file of values that variables start with
  std::vector<std::string> vocabulary;
  void (*log)(void *user, int level, const char *message) = nullptr;
  void *logUser = nullptr;

  int64_t shardRows() const { return (batch + shards - 1) / shards; }
  void say(int level, const std::string &message) const {
    if (log)
      log(logUser, level, message.c_str());
  }
};

// `given` may be null: all defaults. MT_INVALID says what was expected and what was found.
mtrun::Status checkOptions(const mtc_options *given, Options &options);

} // namespace mtc

#endif
