// SPDX-License-Identifier: Apache-2.0
//
// (rows x K) . (K x N), then element-wise operations on the result.
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Product.h"
#include "compiler/codegen/gpu/TileSums.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

// Coordinates of an element of a product: row and column of a matrix, else the coordinates in a sample.
static Emitter::Values coordinatesOf(BlockKernel &kernel, Value product, Value index, Value row, Value column) {
  Emitter &emit = kernel.emit;
  if (tensorOf(product).getRank() == 2)
    return {row, column};
  if (!isSplit(product))
    return coordinates(emit, index, tensorOf(product).getShape());
  int64_t count = innerCount(product);
  Emitter::Values at = coordinates(emit, emit.rem(index, emit.integer(count)), innerShape(product));
  at.insert(at.begin(), emit.div(index, emit.integer(count)));
  return at;
}

// Whether an operand should not be read once per row of tiles, because it is larger than the part of the cache that
// other reads leave (an H100 has 50 MiB).
static bool isLarge(Value operand) {
  constexpr int64_t kept = 16 << 20;
  return !isSplit(operand) && innerCount(operand) * Emitter::bytes(elementOf(operand)) > kept;
}

// Row and column of a tile in the grid of tiles. A sample, or several samples, has `down` rows of tiles. Blocks that
// run at the same time are adjacent tiles, which share a side: rows of the left side, or columns of the right side if
// it is large.
static std::pair<Value, Value> tilePosition(Emitter &emit, Value tile, int64_t down, int64_t across, bool isLarge) {
  if (!isLarge || down == 1)
    return {emit.div(tile, emit.integer(across)), emit.rem(tile, emit.integer(across))};
  Value sample = emit.div(tile, emit.integer(down * across)), inSample = emit.rem(tile, emit.integer(down * across));
  Value row = emit.add(emit.mul(sample, down), emit.rem(inSample, emit.integer(down)));
  return {row, emit.div(inSample, emit.integer(down))};
}

std::optional<TileShape> mtc::matmulTileShape(plan::KernelOp op) {
  auto product = cast<mt::MatmulOp>(mt::productOf(op.getBody().front()));
  Value result = product.getResult();
  TileShape shape{matmulTile(op), linesOf(result), 1, tensorOf(result).getShape().back()};
  bool differs = shape.columns % shape.tile.columns || (isLarge(product.getRhs()) && shape.across() > 1);
  return !isSplit(result) || differs ? std::nullopt : std::optional(shape);
}

LogicalResult mtc::emitBlockMatmul(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  mt::SummedProducts all = mt::summedProductsOf(kernel.body());
  auto product = cast<mt::MatmulOp>(all.products.front());
  Value left = product.getLhs(), right = product.getRhs();
  int64_t lines = linesOf(left), columns = tensorOf(all.sum).getShape().back();
  ProductTile tile = withDepth(kernel, matmulTile(kernel.op), elementOf(left));
  int64_t across = (columns + tile.columns - 1) / tile.columns, down = kernel.gpu.innerTiles / across;
  auto [block, blockColumn] = tilePosition(emit, kernel.tile, down, across, isLarge(right));
  Value rows = emit.integer(lines), firstColumn = emit.mul(blockColumn, tile.columns);
  Value firstRow = emit.mul(block, tile.rows);
  TileRows tileRows;
  if (isSplit(left)) {
    Value sample = emit.mul(emit.div(block, emit.integer(down)), kernel.gpu.rowsPerTile);
    Value end = emit.min(emit.add(sample, kernel.gpu.rowsPerTile), kernel.rows());
    firstRow = emit.add(emit.mul(sample, lines), emit.mul(emit.rem(block, emit.integer(down)), tile.rows));
    rows = emit.mul(end, lines);
    tileRows = {emit.mul(emit.rem(block, emit.integer(down)), tile.rows), sample, end,
                [](Value line) { return std::pair(line, Value()); }};
  }
  Lines columnsOf{firstColumn, emit.integer(columns)};
  // The sides of a product, and their depth. The k of several products are one after the other.
  auto sidesOf = [&](mt::MatmulOp of) {
    int64_t depth = tensorOf(of.getLhs()).getShape().back();
    ProductSide leftSide = matrixAlong(kernel, of.getLhs(), depth, {firstRow, rows});
    ProductSide rightSide = of.getTransposeB()
                                ? matrixAlong(kernel, of.getRhs(), depth, columnsOf)
                                : matrixAcross(kernel, of.getRhs(), columns, columnsOf, emit.integer(depth));
    return std::tuple(leftSide, rightSide, emit.integer(depth));
  };
  emit.when(emit.less(firstRow, rows), [&] {
    ProductBlock panels(kernel, tile, elementOf(left));
    Emitter::Values sums = panels.zeros();
    for (Operation *of : all.products) {
      auto [leftSide, rightSide, depth] = sidesOf(cast<mt::MatmulOp>(of));
      sums = panels.add(leftSide, rightSide, panelsOf(emit, tile, emit.integer(0), depth), sums);
    }
    auto each = [&](Value line, Value across, ValueRange numbers) {
      Value row = emit.add(firstRow, line), column = emit.add(firstColumn, across);
      Value there = both(emit, emit.less(row, rows), emit.less(column, emit.integer(columns)));
      row = arith::SelectOp::create(emit, there, row, firstRow);
      column = arith::SelectOp::create(emit, there, column, firstColumn);
      Value index = emit.add(emit.mul(row, columns), column);
      Emitter::Values at = coordinatesOf(kernel, all.sum, index, row, column);
      return ProductResult{there, epilogueStores(kernel, all.sum, numbers, at, index)};
    };
    panels.finish(sums, storedWidth(columns), each, &tileRows);
  });
  return success();
}
