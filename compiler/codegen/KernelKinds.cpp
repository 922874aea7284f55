// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/gpu/Kernels.h"

using namespace mlir;
using namespace mtc;
using mt::KernelKind;

static constexpr KernelCode kinds[] = {
#define KIND(kind, name, Name) {KernelKind::kind, name##Grid, emit##Name, name##GpuGrid, emitBlock##Name},
#include "dialects/mt/KernelKinds.def"
};
static_assert(std::size(kinds) == mt::getMaxEnumValForKernelKind() + 1);
static_assert([] {
  for (size_t i = 0; i < std::size(kinds); ++i)
    if (kinds[i].kind != static_cast<KernelKind>(i))
      return false;
  return true;
}());

const KernelCode &mtc::codeOf(plan::KernelOp op) { return kinds[static_cast<size_t>(op.getKind())]; }
