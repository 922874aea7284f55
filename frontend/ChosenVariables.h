// SPDX-License-Identifier: Apache-2.0
//
// Variables chosen by name: which stay as they are, and which have a learning rate and a weight decay of their own.
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
  std::string until;     // a pattern: all before the first variable that it matches are frozen
  bool any() const { return !freeze.empty() || !trainable.empty() || !until.empty(); }
};

// What the optimizer does differently for single variables; patterns as of FreezeOptions.
struct RateOptions {
  std::string noDecay; // "PATTERN[,PATTERN...]": variables that the optimizer does not decay
  std::string rates;   // "PATTERN=FACTORx[,...]": factors of the learning rate; the last pattern that matches counts
  std::string decays;  // "PATTERN=DECAY[,...]": weight decays in the place of the optimizer's; the last that matches
};

// Makes variables `frozen`; they have no gradient and no slots then. Batch normalisation whose statistics are among
// them computes as in prediction, as Keras' does with trainable = False. An error where a pattern is none or matches
// nothing, and where nothing is left to train. `names` receives those that were trainable.
llvm::LogicalResult freezeVariables(mlir::mt::ModelOp model, const FreezeOptions &options,
                                    std::vector<std::string> &names);

// Freezes the variables that no loss and no regularizer depends on, as Keras leaves them without gradients, and adds
// their names. A warning for each.
void freezeUnused(mlir::mt::ModelOp model, std::vector<std::string> &names);

// Marks variables with their own rates and decays. An error where a pattern is none or matches nothing, where a number
// is out of range, where `noDecay` is given and the optimizer decays no variable, and in a model with mt.update.
llvm::LogicalResult setRates(mlir::mt::ModelOp model, const RateOptions &options);

} // namespace mtc

#endif
