// SPDX-License-Identifier: Apache-2.0
//
// The state of a compilation outside of the IR.
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

// Batch, shards, mode and seed are also in an attribute of the module (dialects/mt/Compilation.h), which passes read.
struct Compilation {
  mtc_options options = mtc_options_init(); // the caller's options, checked (compiler/api/Options.h)
  std::vector<std::string> cpus; // "native", "x86-64-v4" ..., best first (compiler/codegen/common/CpuTarget.h)
  std::vector<std::string> gpus; // "sm_90" ..., "simulated"
  // Largest size in bytes of the logits of a batch that are stored whole; larger logits are computed by blocks. The
  // limit is higher for GPUs, where blocks cost time and memory is plentiful.
  int64_t logitBytes = int64_t(64) << 20, gpuLogitBytes = int64_t(4) << 30;
  int32_t logitBlocks = 0;                // in a plan for GPUs: smallest number of blocks of the largest logits
  std::vector<NamedTensor> initial;       // values of variables from the model's file
  ExportArchive archive;                  // the file format in which a trained model is exported
  std::vector<InputScaling> inputScaling; // rescaling of the inputs of the imported model
  std::vector<int64_t> lengths; // sequence lengths, increasing; empty or one length: all programs have one size

  std::vector<TargetCode> code; // output of the stage `codegen`, best target first
  std::vector<uint8_t> plan;    // output of the stage `plan`: the bytes of the file
};

} // namespace mtc

#endif
