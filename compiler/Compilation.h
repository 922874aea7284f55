// SPDX-License-Identifier: Apache-2.0
//
// What a compilation holds beside the IR.
#ifndef COMPILER_COMPILATION_H
#define COMPILER_COMPILATION_H

#include "compiler/codegen/Codegen.h"
#include "compiler/plan/InputScaling.h"
#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"
#include "runtime/abi/mtc.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

// Batch, shards, mode and seed are also one attribute of the module (dialects/mt/Compilation.h), which passes read.
struct Compilation {
  mtc_options options = mtc_options_init(); // of the caller, checked (compiler/api/Options.h)
  std::vector<std::string> cpus; // "native", "x86-64-v4" ..., best first (compiler/codegen/common/CpuTarget.h)
  std::vector<std::string> gpus; // "sm_90" ..., "simulated"
  // Of logits of the batch that are stored as a whole; more are computed by blocks. On GPUs blocks cost time, and
  // memory is plenty.
  int64_t logitBytes = int64_t(64) << 20, gpuLogitBytes = int64_t(4) << 30;
  int32_t logitBlocks = 0;                // in a plan for GPUs: so many at least of the largest logits
  std::vector<NamedTensor> initial;       // values of variables that the model's file brings along
  ExportArchive archive;                  // what a trained model is written back as
  std::vector<InputScaling> inputScaling; // of the model as it was read
  std::vector<int64_t> lengths;           // of sequences, rising; fewer than two: all programs have one size

  std::vector<TargetCode> code; // made by `codegen`, best first
  std::vector<uint8_t> plan;    // made by `plan`: the whole file
};

} // namespace mtc

#endif
