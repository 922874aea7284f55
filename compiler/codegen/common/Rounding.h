// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_COMMON_ROUNDING_H
#define COMPILER_CODEGEN_COMMON_ROUNDING_H

#include "compiler/codegen/common/Emitter.h"

namespace mtc {

// Rounds f32 scalars or vectors to bf16 or f16, with the bits of mt::roundTo: by the instruction of CPUs that have one
// for bf16, and not again if the value is known to be rounded.
mlir::Value emitRounded(Emitter &emit, mlir::Type half, mlir::Value value);

} // namespace mtc

#endif
