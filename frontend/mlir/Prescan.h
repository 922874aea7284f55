// SPDX-License-Identifier: Apache-2.0
//
// Checks of a text before MLIR parses it. The parser recurses on nesting, expands aliases without limit, and reads
// decimals into an array of fixed size, so these three are limited here. Some attributes and types abort the process in
// a release build of MLIR 22; they are rejected, and no model needs them.
#ifndef FRONTEND_MLIR_PRESCAN_H
#define FRONTEND_MLIR_PRESCAN_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace mtc {

constexpr size_t maxTextBytes = size_t{1} << 28;
constexpr unsigned maxNesting = 256; // depth of ( [ { <, outside of strings and comments
constexpr size_t maxNumberChars = 1000;

// Whether a line begins with a word, after spaces.
bool beginsLine(llvm::StringRef text, llvm::StringRef word);

// Returns an empty text if the text may be parsed, else one line "name:line:column: error: ...". Files of other formats
// are recognized by their first bytes and by the extension of `name`.
//
// `isDouble`: a text for --precision f64, where a decimal of f32 whose digits f32 would lose is an error. A number is
// of f64 if that type follows it, or the brackets of `dense`.
std::string prescan(llvm::StringRef text, llvm::StringRef name, bool isDouble = false);

} // namespace mtc

#endif
