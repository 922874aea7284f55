// SPDX-License-Identifier: Apache-2.0
//
// The meaning of the language: evaluates a program in double precision, op by op. What every later stage is compared
// against; it also runs what sharding and fusion make of a program.
#ifndef COMPILER_INTERPRET_INTERPRETER_H
#define COMPILER_INTERPRET_INTERPRETER_H

#include "dialects/mt/MtDialect.h"
#include <functional>
#include <map>
#include <string>

namespace mtc {

using Tensors = std::map<std::string, mlir::mt::Tensor>;

struct Step {
  Tensors inputs; // inputs, targets and sample weights by name, [samples, ...]; absent sample weights are ones
  int64_t samples = 0;
  int64_t batch = 0;  // B; 0: `samples`. Fixes which sample belongs to which shard
  int64_t shards = 1; // R, of a program after mt-partition
  uint64_t seed = 0;
  // How a computed float32 element is rounded: to learn how far rounding moves a result. None: only scalars are.
  std::function<double(double)> round;
};

// A loss or metric of a step: the mean, or the sums of which a finalizer makes one number (docs/ir.md).
struct StepMetric {
  mlir::mt::Tensor value;
  double weight;
};

struct StepResults {
  Tensors outputs;
  std::map<std::string, StepMetric> metrics; // and losses
};

// Runs a program of the module and updates `variables`. Values of rank 0 are rounded to float32, as in Keras and in
// compiled code, so that an optimizer's scalars agree. With shards, every op runs on all of them in turn; an
// all-reduce adds along the tree. Fails, with an error at the op, where an input or a variable is missing or of another
// size, or where shards disagree about a value that must be the same on all.
mlir::FailureOr<StepResults> interpretProgram(mlir::ModuleOp module, llvm::StringRef program, const Step &step,
                                              Tensors &variables);

} // namespace mtc

#endif
