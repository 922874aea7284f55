// SPDX-License-Identifier: Apache-2.0
//
// Names of a model's labels and characters of its tokens: facts that a plan keeps beside the model. In the IR they are
// lists of strings at the module: `mt.class_names`, `mt.vocabulary`.
#ifndef FRONTEND_CLASSNAMES_H
#define FRONTEND_CLASSNAMES_H

#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"

#include <string>
#include <vector>

namespace mtc {

using mlir::mt::classNamesAttribute, mlir::mt::vocabularyAttribute;

// What is wrong with a list of names: one that is empty, over 1024 bytes, no UTF-8, has control characters, or stands
// twice. Empty: nothing.
std::string checkClassNames(llvm::ArrayRef<std::string> names);

// Whether an output of the model has as many classes as there are names, along its last axis: one number stands for two
// of them.
bool fitsClasses(mlir::mt::ModelOp model, size_t names);
// Whether an output of the model has room for so many characters.
bool fitsVocabulary(mlir::mt::ModelOp model, size_t characters);
// "'dense' with 10", of all outputs.
std::string describeOutputs(mlir::mt::ModelOp model);

void setStrings(mlir::ModuleOp module, llvm::StringRef attribute, llvm::ArrayRef<std::string> strings);

} // namespace mtc

#endif
