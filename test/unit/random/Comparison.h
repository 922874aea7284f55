// SPDX-License-Identifier: Apache-2.0
//
// A random model on its way from mt-differentiate to a running plan: it means the same after every pass, and compiled.
#ifndef TEST_UNIT_RANDOM_COMPARISON_H
#define TEST_UNIT_RANDOM_COMPARISON_H

#include "test/unit/random/RandomModel.h"

namespace mtc::test {

// What a faulty pass would do: changes what the pass `after` left. False where there is nothing to spoil.
struct Fault {
  const char *name;
  const char *after;
  bool (*seed)(mlir::ModuleOp);
};

struct Options {
  bool passes = true;  // interpret what each pass shards
  bool compile = true; // to a plan, and run it on two sets of devices
  const Fault *fault = nullptr;
  int64_t logitBytes = 0;          // 0: as many are stored as a whole as mtc has it
  const char *precision = nullptr; // bf16 or f16: what the rounded program means is compared, from mt-precision on
};

struct Report {
  std::string problem; // the first difference, or why there is no result; "": none
  bool seeded = false; // the fault found something to spoil
  bool slack = false;  // a value was only equal within the rounding of the model
  bool blocks = false; // logits were computed by blocks of classes
  bool again = false;  // compiled once more, something ran twice
  uint64_t hash = 0;   // of all that was executed
};

// Interpretations differ by less than `tolerance` of a tensor's largest value, else by less than rounding moves it
// (roundingOf); executions with other devices not at all.
inline constexpr double tolerance = 4e-6;

Report compare(const RandomModel &model, uint32_t seed, const Options &options = {});

} // namespace mtc::test

#endif
