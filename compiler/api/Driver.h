// SPDX-License-Identifier: Apache-2.0
//
// Takes a text through the pipeline.
#ifndef COMPILER_API_DRIVER_H
#define COMPILER_API_DRIVER_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtc {

// The bytes of a plan or, with stopAfter, of MLIR text. A context of its own: any number of threads may compile at
// once.
mtrun::Status compile(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes);

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
