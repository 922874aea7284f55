// SPDX-License-Identifier: Apache-2.0
//
// Grids of the kernel kinds on CPUs. Conv.cpp, ConvWgrad.cpp and ScatterAdd.cpp have the grids of their kinds.
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/cpu/Kernels.h"
#include "compiler/codegen/cpu/Tile.h"
#include "dialects/mt/Blocks.h"

using namespace mlir;
using namespace mtc;

static Block &bodyOf(plan::KernelOp op) { return op.getBody().front(); }
static OperandRange yieldsOf(plan::KernelOp op) { return bodyOf(op).getTerminator()->getOperands(); }
static int64_t panels(int64_t columns) { return ceilDiv(columns, panelColumns); }

static bool hasConvolution(Block &body) {
  return llvm::any_of(body, [](Operation &op) { return isa<mt::ConvolutionOpInterface>(op); });
}

// Bytes of the values of one line, and of the lines of a tile: the values that one statement passes to the next stay in
// the L2 cache.
static constexpr int64_t lineBytes = 1 << 16;

LineForm mtc::cpuLineForm(plan::KernelOp op) { return lineFormOf(op, lineBytes); }

int64_t mtc::linesOfTile(const LineForm &form) {
  return std::clamp<int64_t>(lineBytes / std::max<int64_t>(1, form.bytes), 1, form.lines);
}

Grid mtc::rowsGrid(plan::KernelOp op) {
  if (LineForm form = cpuLineForm(op); form.lines > 1)
    return {1, ceilDiv(form.lines, linesOfTile(form)), 0};
  return {isLine(op) ? 4 * lanes : hasConvolution(bodyOf(op)) ? 1 : 4, 1, 0};
}

Grid mtc::singleGrid(plan::KernelOp) { return {}; }

Grid mtc::elementwiseGrid(plan::KernelOp) { return {0, 1, elementwiseElementsPerTile}; }

Grid mtc::matmulGrid(plan::KernelOp op) {
  Value result = yieldsOf(op).front();
  int64_t across = panels(tensorOf(result).getShape().back());
  if (isSplit(result))
    return {ceilDiv(matmulRows, linesOf(result)), across, 0};
  return {0, across * ceilDiv(linesOf(result), matmulRows), 0};
}

Grid mtc::matmulWgradGrid(plan::KernelOp op) {
  Value result = yieldsOf(op).front();
  std::optional<mt::PlacedPart> placed = mt::placedPartOf(result);
  RankedTensorType type = tensorOf(placed ? placed->part : result);
  int64_t height = type.getDimSize(0), columns = type.getDimSize(1);
  if (isTransposed(height, columns))
    std::swap(height, columns);
  return {0, ceilDiv(height, treeRows) * panels(columns), 0};
}

Grid mtc::reduceGrid(plan::KernelOp op) {
  Grid grid{0, 0, 0};
  for (Value yield : yieldsOf(op))
    grid.innerTiles += panels(innerCount(yield));
  return grid;
}

Grid mtc::transposeGrid(plan::KernelOp op) {
  return {0, ceilDiv(tensorOf(bodyOf(op).getArgument(0)).getDimSize(0), transposeRows), 0};
}
