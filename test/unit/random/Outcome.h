// SPDX-License-Identifier: Apache-2.0
//
// All that init, eval_step, two train_steps (the second of fewer samples) and predict compute, interpreted or compiled.
#ifndef TEST_UNIT_RANDOM_OUTCOME_H
#define TEST_UNIT_RANDOM_OUTCOME_H

#include "compiler/interpret/Interpreter.h"
#include "runtime/abi/mtrun.h"

namespace mtc::test {

// Values by program and name: "eval_step loss", "train_step 2 layer_0/w", "predict y".
struct Outcome {
  Tensors values;
  std::string problem; // why there are none
};

// Samples of the second train_step.
int64_t fewerSamples(const Step &step);

Outcome interpret(mlir::ModuleOp module, const Step &step);
// Runs a plan on `options.devices`. Behind the samples lie NaNs; after the predicted rows nothing may be written.
Outcome execute(llvm::ArrayRef<uint8_t> plan, const Step &step, const mtrun_options &options);

// The first difference, or "". A value may be off by `tolerance` times the largest of its tensor, or by what `slack`
// says of its tensor.
std::string difference(const Outcome &found, const Outcome &expected, double tolerance,
                       const std::map<std::string, double> &slack = {});
// The first difference in a bit, or "".
std::string differentBits(const Outcome &found, const Outcome &expected);
// A hash of all names and bits.
uint64_t hashOf(const Outcome &outcome);

// How far rounding moves each tensor: eight times the largest distance of eight interpretations with every element
// rounded up or down to float32 at random.
std::map<std::string, double> roundingOf(mlir::ModuleOp module, const Step &step, const Outcome &expected);

} // namespace mtc::test

#endif
