// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_SIMPLIFY_H
#define COMPILER_DIFFERENTIATE_SIMPLIFY_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Removes what is computed twice and what nobody uses. Changes no bit.
void simplify(mlir::mt::ProgramOp program);

} // namespace mtc

#endif
