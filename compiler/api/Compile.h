// SPDX-License-Identifier: Apache-2.0
//
// Finds what the options leave open (the batch, micro-batches, blocks of logits), then runs the pipeline.
#ifndef COMPILER_API_COMPILE_H
#define COMPILER_API_COMPILE_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

#include <vector>

namespace mtc {

// Returns the bytes of a plan or, with stopAfter, of MLIR text. Threads may call it concurrently. MT_NO_MEMORY: the
// plan fits on no number of devices; the message names options that would make it fit.
mtrun::Status compile(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes);

} // namespace mtc

#endif
