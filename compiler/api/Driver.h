// SPDX-License-Identifier: Apache-2.0
//
// Takes a text through the pipeline once, by the options as they are.
#ifndef COMPILER_API_DRIVER_H
#define COMPILER_API_DRIVER_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtc {

// The bytes of a plan or, with stopAfter, of MLIR text. A context of its own: any number of threads may do this at
// once. MT_NO_MEMORY: under the options' limit the plan fits on no number of devices.
mtrun::Status runPipeline(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes);

// What a device needs that hosts 1, 2, 4 ... R shards, in bytes: variables and the hungriest program's buffers. By the
// pipeline up to `allocate`, with recomputation where the options ask for it; a limit is no error here.
mtrun::Status measureMemory(const ModelSource &source, const Options &options, std::vector<int64_t> &bytes);

// The model as MLIR text with its layers as locations, and its weights as a .safetensors file; no bytes if it has none.
mtrun::Status importModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text,
                          std::vector<uint8_t> &weights);

// The table of the model's layers.
mtrun::Status summarizeModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text);

} // namespace mtc

#endif
