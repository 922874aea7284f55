// SPDX-License-Identifier: Apache-2.0
//
// Grids of the kernel kinds on a GPU. Tree.cpp and Conv.cpp have the grids of sums of products.
#include "compiler/codegen/common/Statements.h"
#include "compiler/codegen/gpu/Elements.h"
#include "compiler/codegen/gpu/Image.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/Tree.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mtc;

// One thread for each element of the longest statement of a row, up to a limit.
static int64_t rowThreads(plan::KernelOp op) {
  SmallVector<Operation *> operations;
  for (Operation &inner : op.getBody().front().without_terminator())
    operations.push_back(&inner);
  int64_t longest = 1;
  for (const RowStatement &step : splitStatements(operations))
    longest = std::max(longest, step.loop ? step.count : innerCount(step.operations.front()->getResult(0)));
  return std::clamp<int64_t>(llvm::bit_ceil(static_cast<uint64_t>(longest)), minRowThreads, maxRowThreads);
}

bool mtc::isWarpRows(plan::KernelOp op) {
  if (op.getKind() != mt::KernelKind::rows || isElements(op) || columnsOf(op))
    return false;
  return llvm::all_of(op.getBody().front().without_terminator(), [](Operation &inner) {
    bool sums = reachOf(&inner) == Reach::line && inner.getNumOperands() == 1; // a sum or a search
    Value longest = sums ? inner.getOperand(0) : inner.getResult(0);
    bool isOne = !sums || innerCount(inner.getResult(0)) == 1;
    return innerCount(longest) <= maxWarpElements && isOne && (sums || reachOf(&inner) == Reach::element);
  });
}

// A sample with several lines counts as that many rows; a block has the rows of full samples, or of a part of one
// sample.
static GpuGrid productGrid(const ProductTile &tile, Value result) {
  int64_t lines = linesOf(result), inner = ceilDiv(tensorOf(result).getShape().back(), tile.columns);
  int64_t samples = isSplit(result) ? std::max<int64_t>(1, tile.rows / lines) : 0;
  if (lines > tile.rows || !samples)
    inner *= ceilDiv(lines, tile.rows);
  return {tile.threads(), samples, inner, 0, 0};
}

// A tile has several rows, or a part of one row or of a value without rows.
static GpuGrid elementGrid(plan::KernelOp op) {
  OperandRange yields = op.getBody().front().getTerminator()->getOperands();
  int64_t longest = 1;
  for (Value yield : yields)
    longest = std::max(longest, innerCount(yield));
  if (mt::WindowGradientOpInterface gradient = gradientByCells(op))
    longest = ShapedType::getNumElements(cellsOf(gradient.getPooling()));
  int64_t rows = isSplit(yields.front()) ? std::max<int64_t>(1, elementTile / longest) : 0;
  return {elementwiseThreads, rows, ceilDiv(longest, elementTile), 0, 0};
}

static OperandRange yieldsOf(plan::KernelOp op) { return op.getBody().front().getTerminator()->getOperands(); }

LineForm mtc::gpuLineForm(plan::KernelOp op) {
  return isElements(op) || columnsOf(op) ? LineForm() : lineFormOf(op, maxKeptBytes);
}

GpuGrid mtc::rowsGpuGrid(plan::KernelOp op, int64_t) {
  if (isElements(op))
    return elementGrid(op);
  if (int64_t columns = columnsOf(op))
    return columnGrid(op, columns);
  if (isWarpRows(op))
    return {rowWarps * warpThreads, rowWarps, 1, 0, 0};
  return {rowThreads(op), 1, 1, 0, 0};
}

GpuGrid mtc::singleGpuGrid(plan::KernelOp op, int64_t) {
  return isElements(op) ? elementGrid(op) : GpuGrid{rowThreads(op), 0, 1, 0, 0};
}

GpuGrid mtc::elementwiseGpuGrid(plan::KernelOp, int64_t) { return {elementwiseThreads, 0, 1, elementwiseTile, 0}; }

GpuGrid mtc::matmulGpuGrid(plan::KernelOp op, int64_t) { return productGrid(matmulTile(op), yieldsOf(op)[0]); }

GpuGrid mtc::transposeGpuGrid(plan::KernelOp op, int64_t) {
  RankedTensorType type = tensorOf(yieldsOf(op)[0]);
  return {transposeThreads, 0, ceilDiv(type.getDimSize(0), transposeSide) * ceilDiv(type.getDimSize(1), transposeSide),
          0, 0};
}
