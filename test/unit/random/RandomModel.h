// SPDX-License-Identifier: Apache-2.0
//
// Random models: at least 20 ops, odd sizes, every op of the language, attributes that are not the defaults. A seed
// gives one model, its data and its batch.
#ifndef TEST_UNIT_RANDOM_RANDOMMODEL_H
#define TEST_UNIT_RANDOM_RANDOMMODEL_H

#include "compiler/interpret/Interpreter.h"
#include <cstdlib>

namespace mtc::test {

struct RandomModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mtc::Step step; // inputs, samples, batch, shards; every number is a float32
};

// A number that is given in the environment.
inline uint32_t fromEnvironment(const char *name, uint32_t otherwise) {
  const char *given = std::getenv(name);
  return given ? std::atoi(given) : otherwise;
}

// With `classes` a loss is a cross-entropy of so many, whose logits a product with a matrix of weights makes.
RandomModel makeRandomModel(mlir::MLIRContext &context, uint32_t seed, int64_t classes = 0);

} // namespace mtc::test

#endif
