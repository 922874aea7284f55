// SPDX-License-Identifier: Apache-2.0
//
// Class names and vocabularies that the options of a compilation give.
#ifndef COMPILER_API_NAMES_H
#define COMPILER_API_NAMES_H

#include "runtime/support/status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mtc {

// "cat,dog", or the path of a file with one name a line. MT_INVALID, MT_IO.
mtrun::Status readClassNames(const std::string &option, std::vector<std::string> &names);
// The distinct characters of a file of UTF-8, in the order of their numbers. MT_INVALID, MT_IO.
mtrun::Status readVocabulary(const std::string &path, std::vector<std::string> &characters);

// The module's names, of the options or of its text, are strings that its outputs can hold. Emits an error where
// not.
llvm::LogicalResult checkNames(mlir::ModuleOp module);

} // namespace mtc

#endif
