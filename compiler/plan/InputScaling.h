// SPDX-License-Identifier: Apache-2.0
//
// Rescaling of inputs: the first thing that a model computes from an input, if it is Keras' Rescaling or Normalization,
// or equivalent arithmetic with constants.
#ifndef COMPILER_PLAN_INPUTSCALING_H
#define COMPILER_PLAN_INPUTSCALING_H

#include "dialects/mt/MtDialect.h"
#include "frontend/NamedTensor.h"

namespace mtc {

// scale * x + offset. If the numbers differ between elements (`varies`), these are the numbers of the first element.
struct InputScaling {
  std::string input;
  double scale = 1, offset = 0;
  bool varies = false;
};

// Rescalings of the inputs of a model, in the order of the inputs. Random augmentation, resizing and moves of elements
// may surround the arithmetic. `initial` has the values of variables whose initializer does not define them, such as
// the statistics of a Normalization layer.
std::vector<InputScaling> findInputScaling(mlir::mt::ModelOp model, llvm::ArrayRef<NamedTensor> initial);

} // namespace mtc

#endif
