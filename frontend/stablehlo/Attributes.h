// SPDX-License-Identifier: Apache-2.0
//
// Numbers in attributes of StableHLO, which are texts here.
#ifndef FRONTEND_STABLEHLO_ATTRIBUTES_H
#define FRONTEND_STABLEHLO_ATTRIBUTES_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace mtc::stablehlo {

// "key = [1, 2]" in a text; empty where the key is missing.
llvm::SmallVector<int64_t> listIn(llvm::StringRef text, llvm::StringRef key);
// "key = 3" in a text.
std::optional<int64_t> numberIn(llvm::StringRef text, llvm::StringRef key);

} // namespace mtc::stablehlo

#endif
