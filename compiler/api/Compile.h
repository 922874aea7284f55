// SPDX-License-Identifier: Apache-2.0
//
// A compilation as the caller asks for it: the pipeline, after what the options leave to be found was found.
#ifndef COMPILER_API_COMPILE_H
#define COMPILER_API_COMPILE_H

#include "compiler/api/Options.h"
#include "frontend/Importers.h"

#include <vector>

namespace mtc {

// The bytes of a plan or, with stopAfter, of MLIR text. Any number of threads may compile at once. A plan that is too
// large for every number of devices is MT_NO_MEMORY, with advice.
mtrun::Status compile(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes);

} // namespace mtc

#endif
