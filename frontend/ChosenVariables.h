// SPDX-License-Identifier: Apache-2.0
//
// Variables chosen by name: those that stay as they are, those that the optimizer does not decay.
#ifndef FRONTEND_CHOSENVARIABLES_H
#define FRONTEND_CHOSENVARIABLES_H

#include "dialects/mt/MtDialect.h"

#include <string>
#include <vector>

namespace mtc {

// Patterns of names of layers and variables, with * and ? (which stand for / too) and [abc]. A pattern that matches a
// layer, or a folder of layers, matches all of its variables.
struct FreezeOptions {
  std::string freeze;    // "PATTERN[,PATTERN...]": these are frozen
  std::string trainable; // the same: all but these are frozen
  bool any() const { return !freeze.empty() || !trainable.empty(); }
};

// Makes variables `frozen`; they have no gradient and no slots then. Batch normalisation whose statistics are among
// them computes as in prediction, as Keras' does with trainable = False. An error where a pattern is none or matches
// nothing, and where nothing is left to train. `names` receives those that were trainable.
llvm::LogicalResult freezeVariables(mlir::mt::ModelOp model, const FreezeOptions &options,
                                    std::vector<std::string> &names);

// Freezes the variables that no loss and no regularizer depends on, as Keras leaves them without gradients, and adds
// their names. A warning for each.
void freezeUnused(mlir::mt::ModelOp model, std::vector<std::string> &names);

// Makes the variables that "PATTERN[,PATTERN...]" matches `no_weight_decay`. An error where a pattern is none or
// matches nothing, and where the optimizer decays no variable.
llvm::LogicalResult excludeFromWeightDecay(mlir::mt::ModelOp model, llvm::StringRef patterns);

} // namespace mtc

#endif
