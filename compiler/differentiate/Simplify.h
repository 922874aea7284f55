// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_DIFFERENTIATE_SIMPLIFY_H
#define COMPILER_DIFFERENTIATE_SIMPLIFY_H

#include "dialects/mt/MtDialect.h"

namespace mtc {

// Dead code elimination in one block, from the last operation to the first.
void eraseUnused(mlir::Block &block);

// Common subexpression elimination and dead code elimination. The bits of all values stay the same.
void simplify(mlir::mt::ProgramOp program);

} // namespace mtc

#endif
