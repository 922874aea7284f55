// SPDX-License-Identifier: Apache-2.0
//
// What a compilation holds beside the IR.
#ifndef COMPILER_COMPILATION_H
#define COMPILER_COMPILATION_H

#include "compiler/codegen/Codegen.h"
#include "compiler/plan/InputScaling.h"
#include "frontend/ExportArchive.h"
#include "frontend/NamedTensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

// Batch, shards, rows of a shard, mode and seed are attributes of the module: `mt.batch`, `mt.shards`, `mt.shard_rows`,
// `mt.seed` (i64), `mt.fast`, `mt.local_statistics` (unit), `mt.name` (string: the model's), `mt.precision` (string:
// "tf32", "bf16", "f16"; absent: f32), `mt.class_names`, `mt.vocabulary` (lists of strings: frontend/ClassNames.h).
struct Compilation {
  std::vector<std::string> cpus; // "native", "x86-64-v4" ..., best first (compiler/codegen/common/CpuTarget.h)
  std::vector<std::string> gpus; // "sm_90" ..., "simulated"
  int64_t deviceMemory = 0; // bytes a device may use; 0: no limit
  bool recompute = false;   // compute again what would not fit
  int64_t logitBytes = 64 << 20; // of logits of the batch that are stored as a whole; more are computed by blocks
  int64_t microBatches = 1; // of the batch, which a device computes one after the other
  std::vector<NamedTensor> initial; // values of variables that the model's file brings along
  ExportArchive archive;            // what a trained model is written back as
  std::vector<InputScaling> inputScaling; // of the model as it was read

  std::vector<TargetCode> code; // made by `codegen`, best first
  std::vector<uint8_t> plan;    // made by `plan`: the whole file
};

} // namespace mtc

#endif
