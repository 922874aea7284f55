// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_CENTREDSUMS_H
#define COMPILER_DIFFERENTIATE_CENTREDSUMS_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Sums over the batch of differences from the mean of the batch are 0: they and their all-reduces go. Returns whether
// there were any. The backward pass of a variance has one, where its formula was differentiated.
bool dropCentredSums(mlir::mt::ProgramOp program);

} // namespace mtc

#endif
