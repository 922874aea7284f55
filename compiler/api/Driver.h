// SPDX-License-Identifier: Apache-2.0
//
// Takes a text down the road.
#ifndef COMPILER_API_DRIVER_H
#define COMPILER_API_DRIVER_H

#include "compiler/api/Options.h"

#include <string_view>
#include <vector>

namespace mtc {

// The bytes of a plan or, with stopAfter, of MLIR text. A context of its own: any number of threads may compile at once.
mtrun::Status compile(std::string_view text, const std::string &name, const Options &options, std::vector<uint8_t> &bytes);

} // namespace mtc

#endif
