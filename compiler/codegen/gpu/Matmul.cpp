// SPDX-License-Identifier: Apache-2.0
//
// (rows x K) . (K x N), then element-wise operations on the result.
#include "compiler/codegen/gpu/Product.h"

using namespace mlir;
using namespace mtc;

static mt::MatmulOp productOf(plan::KernelOp op) {
  for (Operation &inner : op.getBody().front())
    if (auto found = dyn_cast<mt::MatmulOp>(inner))
      return found;
  return {};
}

// The largest tile that makes enough blocks for a card, by the batch of the model and not of a device: grids are the
// same everywhere.
ProductTile mtc::matmulTile(plan::KernelOp op) {
  constexpr int64_t enough = 96, usualBatch = 256;
  Value result = op.getBody().front().getTerminator()->getOperand(0);
  int64_t rows = linesOf(result), columns = tensorOf(result).getShape().back();
  if (columns <= 16)
    return {64, 16, 16, 4, 1};
  if (isSplit(result)) {
    auto batch = op->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>("mt.batch");
    rows *= batch ? batch.getInt() : usualBatch;
  }
  if (rows * columns >= enough * 64 * 64)
    return {64, 64, 16, 4, 4};
  return {32, 32, 16, 2, 4};
}

// Coordinates of a product's element: of a matrix its row and column, else what its row is of a sample.
static Emitter::Values placeOf(BlockKernel &kernel, Value product, Value index, Value row, Value column) {
  Emitter &emit = kernel.emit;
  if (tensorOf(product).getRank() == 2)
    return {row, column};
  if (!isSplit(product))
    return coordinates(emit, index, tensorOf(product).getShape());
  int64_t count = innerCount(product);
  Emitter::Values place = coordinates(emit, emit.rem(index, emit.integer(count)), innerShape(product));
  place.insert(place.begin(), emit.div(index, emit.integer(count)));
  return place;
}

LogicalResult mtc::emitBlockMatmul(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  mt::MatmulOp product = productOf(kernel.op);
  if (!product || product.getTransposeA() || !isa<BlockArgument>(product.getLhs()) ||
      !isa<BlockArgument>(product.getRhs()))
    return kernel.op.emitError(
        "expected one mt.matmul of two operands, without transpose_a, in a kernel of kind matmul");
  Value left = product.getLhs();
  int64_t depth = tensorOf(left).getShape().back(), lines = linesOf(left);
  bool turned = product.getTransposeB();
  int64_t columns = tensorOf(product.getRhs()).getDimSize(turned ? 0 : 1);
  Value a = kernel.argument(cast<BlockArgument>(product.getLhs()).getArgNumber());
  Value b = kernel.argument(cast<BlockArgument>(product.getRhs()).getArgNumber());
  ProductTile tile = matmulTile(kernel.op);
  int64_t across = (columns + tile.columns - 1) / tile.columns, down = kernel.gpu.innerTiles / across;
  Value block = emit.div(kernel.tile, emit.integer(across)), rows = emit.integer(lines);
  Value firstColumn = emit.mul(emit.rem(kernel.tile, emit.integer(across)), tile.columns);
  Value firstRow = emit.mul(block, tile.rows);
  if (isSplit(left)) {
    Value sample = emit.mul(emit.div(block, emit.integer(down)), kernel.gpu.rowsPerTile);
    Value end = emit.least(emit.add(sample, kernel.gpu.rowsPerTile), kernel.rows());
    firstRow = emit.add(emit.mul(sample, lines), emit.mul(emit.rem(block, emit.integer(down)), tile.rows));
    rows = emit.mul(end, lines);
  }
  auto loadLeft = [&](Value line, Value k) {
    Value row = emit.add(firstRow, line);
    auto load = [&] { return emit.load(f32, emit.address(a, f32, emit.add(emit.mul(row, depth), k))); };
    return choose(emit, emit.less(row, rows), load, emit.zeros(f32));
  };
  auto loadRight = [&](Value line, Value k) {
    Value column = emit.add(firstColumn, line);
    Value index = turned ? emit.add(emit.mul(column, depth), k) : emit.add(emit.mul(k, columns), column);
    auto load = [&] { return emit.load(f32, emit.address(b, f32, index)); };
    return choose(emit, emit.less(column, emit.integer(columns)), load, emit.zeros(f32));
  };
  ProductBlock panels(kernel, tile);
  Emitter::Values sums = panels.add({/*depthFirst=*/true, loadLeft}, {turned, loadRight}, emit.integer(0),
                                    emit.integer(depth), panels.zeros());
  LogicalResult status = success();
  for (auto [i, sum] : llvm::enumerate(sums)) {
    auto [line, across] = panels.placeOf(i);
    Value row = emit.add(firstRow, line), column = emit.add(firstColumn, across), number = sum;
    emit.when(both(emit, emit.less(row, rows), emit.less(column, emit.integer(columns))), [&] {
      Value index = emit.add(emit.mul(row, columns), column);
      Emitter::Values place = placeOf(kernel, product.getResult(), index, row, column);
      if (failed(storeEpilogue(kernel, product.getResult(), number, place, index)))
        status = failure();
    });
    if (failed(status))
      break;
  }
  return status;
}
