// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_COMMON_REDUCTION_H
#define COMPILER_CODEGEN_COMMON_REDUCTION_H

#include "compiler/codegen/common/Emitter.h"
#include "dialects/mt/MtDialect.h"

namespace mtc {

// Where a reduction starts, and its next value.
mlir::Value identityOf(Emitter &emit, mlir::mt::Reduction kind);
mlir::Value combine(Emitter &emit, mlir::mt::Reduction kind, mlir::Value running, mlir::Value next);

} // namespace mtc

#endif
