// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/KernelKinds.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/gpu/Kernels.h"

using namespace mlir;
using namespace mtc;
using mt::KernelKind;

// One row per kind, in the order of the enumerators.
static constexpr KernelCode kinds[] = {
    {KernelKind::rows, rowsGrid, emitRows, rowsGpuGrid, emitBlockRows},
    {KernelKind::single, singleGrid, emitSingle, singleGpuGrid, emitBlockSingle},
    {KernelKind::elementwise, elementwiseGrid, emitElementwise, elementwiseGpuGrid, emitBlockElementwise},
    {KernelKind::matmul, matmulGrid, emitMatmul, matmulGpuGrid, emitBlockMatmul},
    {KernelKind::matmul_wgrad, matmulWgradGrid, emitMatmulWgrad, matmulWgradGpuGrid, emitBlockMatmulWgrad},
    {KernelKind::reduce, reduceGrid, emitReduce, reduceGpuGrid, emitBlockReduce},
    {KernelKind::transpose, transposeGrid, emitTranspose, transposeGpuGrid, emitBlockTranspose},
    {KernelKind::conv, convGrid, emitConv, convGpuGrid, emitBlockConv},
    {KernelKind::conv_wgrad, convWgradGrid, emitConvWgrad, convWgradGpuGrid, emitBlockConvWgrad},
    {KernelKind::scatter_add, scatterAddGrid, emitScatterAdd, scatterAddGpuGrid, emitBlockScatterAdd},
    {KernelKind::attention, attentionGrid, emitAttention, attentionGpuGrid, emitBlockAttention},
    {KernelKind::attention_gradient, attentionGradientGrid, emitAttentionGradient, attentionGpuGrid,
     emitBlockAttention},
};
static_assert(std::size(kinds) == mt::getMaxEnumValForKernelKind() + 1);
static_assert([] {
  for (size_t i = 0; i < std::size(kinds); ++i)
    if (kinds[i].kind != static_cast<KernelKind>(i))
      return false;
  return true;
}());

const KernelCode &mtc::codeOf(plan::KernelOp op) { return kinds[static_cast<size_t>(op.getKind())]; }
