// SPDX-License-Identifier: Apache-2.0
//
// What is checked in a text before MLIR's parser sees it. The parser recurses on nesting, expands aliases without
// bound, and reads decimals into an array of fixed size, so all three are bounded here. Some attributes and types end
// the process in a release build of MLIR 22; no model has them, and they are refused.
#ifndef FRONTEND_MLIR_PRESCAN_H
#define FRONTEND_MLIR_PRESCAN_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mtc {

constexpr size_t maxTextBytes = size_t{1} << 28;
constexpr unsigned maxNesting = 256; // of ( [ { <, outside strings and comments
constexpr size_t maxNumberChars = 1000;

// Empty if the text may be parsed, else one line "name:line:column: error: ...". Files of other formats are told
// apart by their first bytes and by the ending of `name`.
std::string prescan(llvm::StringRef text, llvm::StringRef name);

} // namespace mtc

#endif
