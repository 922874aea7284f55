// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/Groups.h"

namespace mtc {

// Replaces the program's computations by one mt.kernel a unit, and adds the copies that make these hold: an assigned
// value is an elementwise kernel's result of its own, an output a kernel's result of its own, a reported scalar a
// kernel's or an all-reduce's result.
void outlineKernels(mlir::mt::ProgramOp program, const Groups &groups);

} // namespace mtc
