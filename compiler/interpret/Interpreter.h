// SPDX-License-Identifier: Apache-2.0
//
// Reference evaluation of a program in double precision, op by op. Tests compare the output of every later stage with
// it. It also evaluates programs after sharding and fusion.
#ifndef COMPILER_INTERPRET_INTERPRETER_H
#define COMPILER_INTERPRET_INTERPRETER_H

#include "dialects/mt/MtDialect.h"
#include <functional>
#include <map>
#include <string>

namespace mtc {

using Tensors = std::map<std::string, mlir::mt::Tensor>;

struct Step {
  Tensors inputs; // inputs, targets and sample weights by name, [samples, ...]; missing sample weights are 1
  int64_t samples = 0;
  int64_t batch = 0;  // global batch B; 0: `samples`. Determines the shard of each sample
  int64_t shards = 1; // number of shards R of a program after mt-partition
  uint64_t seed = 0;
  // Rounding of each computed float32 element, to measure how far rounding changes a result. Empty: only scalars are
  // rounded.
  std::function<double(double)> round;
};

// A loss or metric of a step: the mean, or the sums from which a finalizer computes one number (docs/ir.md).
struct StepMetric {
  mlir::mt::Tensor value;
  double weight;
};

struct StepResults {
  Tensors outputs;
  std::map<std::string, StepMetric> metrics; // losses and metrics
};

// Runs a program of the module and updates `variables`. Values of rank 0 are rounded to float32, as in Keras and in
// compiled code, so that the scalars of optimizers agree. With several shards, each op is evaluated for one shard after
// the other, and an all-reduce adds along the tree. Fails, with an error at the op, if an input or a variable is
// missing or has another size, or if shards disagree about a replicated value.
mlir::FailureOr<StepResults> interpretProgram(mlir::ModuleOp module, llvm::StringRef program, const Step &step,
                                              Tensors &variables);

} // namespace mtc

#endif
