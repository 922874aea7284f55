// SPDX-License-Identifier: Apache-2.0
//
// What a model does to the values of its inputs before anything else: Keras' Rescaling and Normalization, or arithmetic
// with constants that means the same.
#ifndef COMPILER_PLAN_INPUTSCALING_H
#define COMPILER_PLAN_INPUTSCALING_H

#include "dialects/mt/MtDialect.h"
#include "frontend/NamedTensor.h"

namespace mtc {

// scale * x + offset of every element, or other numbers for other elements (`varies`), of which these are the first.
struct InputScaling {
  std::string input;
  double scale = 1, offset = 0;
  bool varies = false;
};

// Of the inputs that a model rescales, in its order. Random augmentation, resizing and moves of elements may stand
// around the arithmetic. `initial` has the values that variables start with where their initialiser does not say: the
// statistics of a Normalization.
std::vector<InputScaling> findInputScaling(mlir::mt::ModelOp model, llvm::ArrayRef<NamedTensor> initial);

} // namespace mtc

#endif
