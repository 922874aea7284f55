// SPDX-License-Identifier: Apache-2.0
//
// Runs the pipeline once on a model, with the options as they are.
#ifndef COMPILER_API_DRIVER_H
#define COMPILER_API_DRIVER_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

#include <string>
#include <string_view>
#include <vector>

namespace mtc {

// Checks that the options print the IR before and after passes of the pipeline.
mtrun::Status checkPassLists(const Options &options);

// Returns the bytes of a plan or, with stopAfter, of MLIR text. Each call has a context of its own, so threads may call
// it concurrently. MT_NO_MEMORY: the plan fits on no number of devices under the limit of the options.
mtrun::Status runPipeline(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes);

// Returns the bytes that a device needs that computes 1, 2, 4 ... R shards: variables, and the buffers of the program
// that needs the most. Runs the pipeline up to `allocate`, with recomputation if the options ask for it, and ignores
// the memory limit.
mtrun::Status measureMemory(const ModelSource &source, const Options &options, std::vector<int64_t> &bytes);

// Returns the model as MLIR text with its layers as locations, and its weights as a .safetensors file, empty if the
// model has no weights.
mtrun::Status importModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text,
                          std::vector<uint8_t> &weights);

// Returns the table of the model's layers.
mtrun::Status summarizeModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text);

} // namespace mtc

#endif
