// SPDX-License-Identifier: Apache-2.0
//
// The class names, the vocabulary and the columns file that the options of a compilation give.
#ifndef COMPILER_API_NAMES_H
#define COMPILER_API_NAMES_H

#include "runtime/support/status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mtc {

// Reads "cat,dog", or a file with one name per line if `option` is the path of a file. MT_INVALID, MT_IO.
mtrun::Status readClassNames(const std::string &option, std::vector<std::string> &names);
// Reads the distinct characters of a UTF-8 file, in the order of their code points. MT_INVALID, MT_IO.
mtrun::Status readVocabulary(const std::string &path, std::vector<std::string> &characters);

// Reads and checks the text of a columns file. MT_INVALID, MT_IO.
mtrun::Status readColumns(const std::string &path, std::string &text);

// Checks that class names and vocabulary of the module are arrays of valid strings and that the outputs have as many
// elements, and that the inputs have as many elements as the columns file says. Emits an error if not.
llvm::LogicalResult checkNames(mlir::ModuleOp module);

} // namespace mtc

#endif
