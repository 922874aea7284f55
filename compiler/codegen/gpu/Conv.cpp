// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients as products.
#include "compiler/codegen/gpu/Image.h"
#include "compiler/codegen/gpu/Kernels.h"
#include "compiler/codegen/gpu/Sizes.h"
#include "compiler/codegen/gpu/TileSums.h"
#include "compiler/codegen/gpu/Tree.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

GpuGrid mtc::convGpuGrid(plan::KernelOp op, int64_t shardRows) {
  std::optional<ImageProduct> product = imageProductOf(mt::productOf(op.getBody().front()));
  if (!product)
    return {convThreads, 1, ceilDiv(innerCount(op.getBody().front().getTerminator()->getOperand(0)), convThreads), 0,
            0};
  ProductTile tile = imageTile(op, *product);
  int64_t samples = imageSamples(tile, product->pixels(), shardRows);
  int64_t tiles = tilesOf(tile, samples * product->pixels(), product->columns);
  return {tile.threads(), samples, tiles * product->groups * product->residues(), 0, 0};
}

std::optional<TileShape> mtc::convTileShape(plan::KernelOp op) {
  std::optional<ImageProduct> product = imageProductOf(mt::productOf(op.getBody().front()));
  if (!product || product->groups != 1)
    return std::nullopt;
  TileShape shape{imageTile(op, *product), product->pixels(), product->residues(), product->columns};
  return shape.columns % shape.tile.columns ? std::nullopt : std::optional(shape);
}

// The part of a block, from the number of its tile. Columns change fastest, because their blocks read the same images.
static ImageBlock blockOf(BlockKernel &kernel, const ImageProduct &product, const ProductTile &tile) {
  Emitter &emit = kernel.emit;
  Value rest = kernel.tile;
  auto take = [&](int64_t count) {
    Value number = emit.rem(rest, emit.integer(count));
    rest = emit.div(rest, emit.integer(count));
    return number;
  };
  auto narrow = [&](Value value) { return arith::TruncIOp::create(emit, emit.getI32Type(), value); };
  Value column = emit.mul(take(ceilDiv(product.columns, tile.columns)), tile.columns), group = take(product.groups);
  Value pixel = emit.mul(take(ceilDiv(kernel.gpu.rowsPerTile * product.pixels(), tile.rows)), tile.rows);
  Value residueColumn = narrow(take(product.across)), residueRow = narrow(take(product.down));
  Value sample = emit.mul(rest, kernel.gpu.rowsPerTile);
  Value end = emit.min(emit.add(sample, kernel.gpu.rowsPerTile), kernel.rows());
  return {product, sample, end, pixel, group, column, residueRow, residueColumn};
}

LogicalResult mtc::emitBlockConv(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  mt::SummedProducts all = mt::summedProductsOf(kernel.body());
  Operation *op = all.products.front();
  std::optional<ImageProduct> product = imageProductOf(op);
  if (!product)
    return emitDirectConv(kernel);
  Type element = elementOf(op->getOperand(0));
  ProductTile tile = withDepth(kernel, imageTile(kernel.op, *product), element);
  ImageBlock block = blockOf(kernel, *product, tile);
  ArrayRef<int64_t> shape = innerShape(op->getResult(0));
  Value firstSample = emit.add(block.sample, emit.div(block.pixel, emit.integer(product->pixels())));
  emit.when(emit.less(firstSample, block.end), [&] {
    ProductBlock panels(kernel, tile, element);
    Emitter::Values sums = panels.zeros();
    for (Operation *each : all.products) { // one k after the other
      ImageProduct own = *imageProductOf(each);
      ImageBlock part{own,         block.sample, block.end,        block.pixel,
                      block.group, block.column, block.residueRow, block.residueColumn};
      sums = panels.add(gatheredSide(kernel, part, each->getOperand(0), tile.depth),
                        filterSide(kernel, part, each->getOperand(1)),
                        panelsOf(emit, tile, emit.integer(0), gatheredDepth(kernel, part)), sums);
    }
    TileRows rows{block.pixel, block.sample, block.end, [&](Value pixel) { return pixelOfResult(emit, block, pixel); }};
    auto each = [&](Value line, Value across, ValueRange numbers) {
      Value inGroup = emit.add(block.column, across);
      ImagePosition position = imagePosition(kernel, block, line);
      Value there = both(emit, position.there, emit.less(inGroup, emit.integer(product->columns)));
      auto orFirst = [&](Value value, Value first) -> Value {
        return arith::SelectOp::create(emit, there, value, first);
      };
      Value sample = orFirst(position.sample, block.sample), row = orZero(emit, there, position.row),
            column = orZero(emit, there, position.column);
      Value channel = emit.add(emit.mul(block.group, product->columns), orFirst(inGroup, block.column));
      Value index = flatten(emit, {row, column, channel}, shape);
      index = emit.add(emit.mul(sample, innerCount(all.sum)), index);
      Emitter::Values at{sample, row, column, channel};
      return ProductResult{there, epilogueStores(kernel, all.sum, numbers, at, index)};
    };
    panels.finish(sums, storedWidth(product->columns), each, &rows);
  });
  return success();
}

static mt::Conv2DKernelGradientOp kernelGradientOf(plan::KernelOp op) {
  return op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<mt::Conv2DKernelGradientOp>();
}

static ProductTree kernelTree(plan::KernelOp op, const mt::Convolution &conv, int64_t shardRows) {
  int64_t rows = conv.rows.taps * conv.columns.taps * conv.groupChannels();
  return productTree(op, rows, conv.groupFilters(), conv.groups, conv.rows.outputs * conv.columns.outputs, shardRows);
}

GpuGrid mtc::convWgradGpuGrid(plan::KernelOp op, int64_t shardRows) {
  auto gradient = kernelGradientOf(op);
  if (!isKernelProduct(gradient.getConvolution()))
    return {convThreads, 0, ceilDiv(innerCount(op.getBody().front().getTerminator()->getOperand(0)), convThreads), 0,
            0};
  return treeGrid(op, kernelTree(op, gradient.getConvolution(), shardRows), shardRows);
}

LogicalResult mtc::emitBlockConvWgrad(BlockKernel &kernel) {
  Emitter &emit = kernel.emit;
  Type f32 = emit.getF32Type();
  auto op = kernelGradientOf(kernel.op);
  mt::Convolution conv = op.getConvolution();
  if (!isKernelProduct(conv))
    return emitDirectConvWgrad(kernel);
  ProductTree tree = kernelTree(kernel.op, conv, kernel.shardRows);
  Type element = elementOf(op.getInput());
  ProductTile tile = withDepth(kernel, tree.tile, element);
  int64_t height = conv.rows.taps * conv.columns.taps * conv.groupChannels(), columns = conv.groupFilters();
  int64_t across = ceilDiv(columns, tile.columns), down = ceilDiv(height, tile.rows);
  Value number = resultTile(kernel, tree), blocks = emit.div(number, emit.integer(across));
  Value group = emit.div(blocks, emit.integer(down));
  Value firstRow = emit.mul(emit.rem(blocks, emit.integer(down)), tile.rows);
  Value firstColumn =
      emit.add(emit.mul(group, columns), emit.mul(emit.rem(number, emit.integer(across)), tile.columns));
  Lines filters{firstColumn, emit.mul(emit.add(group, 1), columns)};
  ProductBlock panels(kernel, tile, element);
  auto sum = [&](Value sample, Value from, Value to) {
    return panels.add(windowSide(kernel, conv, op.getInput(), firstRow, group, sample, to),
                      matrixAcross(kernel, op.getGradient(), conv.filters, filters, to), panelsOf(emit, tile, from, to),
                      panels.zeros());
  };
  emitProductTree(kernel, panels, tree, sum, [&](ValueRange root) {
    Value result = kernel.resultLoadedHere(0);
    panels.finish(root, storedWidth(columns), [&](Value line, Value across, ValueRange numbers) {
      Value row = emit.add(firstRow, line), column = emit.add(firstColumn, across);
      Value there = both(emit, emit.less(row, emit.integer(height)), emit.less(column, filters.end));
      Value to = emit.address(result, f32, emit.add(emit.mul(row, conv.filters), column));
      return ProductResult{there, storesOf(emit, numbers, to)};
    });
  });
  return success();
}
