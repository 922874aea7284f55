// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cpu/Winograd.h"

using namespace mlir;
using namespace mtc;

bool mtc::isWinograd(const Product &product) {
  if (product.groups > 1 || product.depthwise || product.element || product.residues.size() > 1)
    return false;
  const Residue &residue = product.residues.front();
  if (residue.rowStep != 1 || residue.columnStep != 1 || residue.taps.size() != 9 || residue.tapColumns() != 3)
    return false;
  if (residue.highRow - residue.lowRow != 2 || residue.highColumn - residue.lowColumn != 2)
    return false;
  // One vector of channels is transformed at a time. The transforms do not pay off for fewer filters, nor for tiles of
  // which half is outside of the result. The elements of a block of 1024 channels take 4 MiB.
  int64_t channels = product.source.groupChannels;
  if (channels % lanes != 0 || channels > 1024 || product.result.groupChannels < lanes)
    return false;
  return residue.rows >= 4 && residue.columns >= 4;
}

bool mtc::isWinogradGradient(const Product &product, Type gradient) {
  // The sums of each shard are transformed, which does not pay off for few positions. A tile of the grid is four
  // channels: fewer than eight tiles would leave threads without work.
  const Residue &residue = product.residues.front();
  return isWinograd(product) && !Emitter::isHalf(gradient) && residue.rows * residue.columns >= 64 &&
         product.source.groupChannels >= 32;
}

Product mtc::overTiles(Product product) {
  product.winograd = true;
  for (Residue &residue : product.residues) {
    residue.rows += residue.rows % 2;
    residue.columns += residue.columns % 2;
  }
  return product;
}

static Value sum(Emitter &emit, Value a, Value b) { return arith::AddFOp::create(emit, a, b); }
static Value difference(Emitter &emit, Value a, Value b) { return arith::SubFOp::create(emit, a, b); }

// Applies `each` to the columns of a matrix, then to the rows of the result.
static Emitter::Values onBothAxes(ValueRange matrix, int64_t size,
                                  llvm::function_ref<Emitter::Values(ArrayRef<Value>)> each) {
  SmallVector<Emitter::Values> columns;
  for (int64_t j = 0; j < size; ++j) {
    Emitter::Values column;
    for (int64_t i = 0; i < size; ++i)
      column.push_back(matrix[i * size + j]);
    columns.push_back(each(column));
  }
  Emitter::Values made;
  for (size_t i = 0; i < columns.front().size(); ++i) {
    Emitter::Values row;
    for (const Emitter::Values &column : columns)
      row.push_back(column[i]);
    llvm::append_range(made, each(row));
  }
  return made;
}

Emitter::Values mtc::transformPixels(Emitter &emit, ValueRange pixels) {
  return onBothAxes(pixels, 4, [&](ArrayRef<Value> d) -> Emitter::Values {
    return {difference(emit, d[0], d[2]), sum(emit, d[1], d[2]), difference(emit, d[2], d[1]),
            difference(emit, d[1], d[3])};
  });
}

Emitter::Values mtc::transformTaps(Emitter &emit, ValueRange taps) {
  Value half = emit.splatConstant(emit.realAttr(0.5f));
  return onBothAxes(taps, 3, [&](ArrayRef<Value> g) -> Emitter::Values {
    Value outer = arith::MulFOp::create(emit, half, sum(emit, g[0], g[2])),
          inner = arith::MulFOp::create(emit, half, g[1]);
    return {g[0], sum(emit, outer, inner), difference(emit, outer, inner), g[2]};
  });
}

Emitter::Values mtc::transformSums(Emitter &emit, ValueRange sums) {
  return onBothAxes(sums, 4, [&](ArrayRef<Value> m) -> Emitter::Values {
    return {sum(emit, sum(emit, m[0], m[1]), m[2]), difference(emit, difference(emit, m[1], m[2]), m[3])};
  });
}

Emitter::Values mtc::transformPositions(Emitter &emit, ValueRange positions) {
  Value zero = emit.zeros(emit.vectorOf(emit.realType()));
  return onBothAxes(positions, 2, [&](ArrayRef<Value> y) -> Emitter::Values {
    return {y[0], sum(emit, y[0], y[1]), difference(emit, y[0], y[1]), difference(emit, zero, y[1])};
  });
}

Emitter::Values mtc::transformElements(Emitter &emit, ValueRange elements) {
  Value half = emit.splatConstant(emit.realAttr(0.5f));
  return onBothAxes(elements, 4, [&](ArrayRef<Value> u) -> Emitter::Values {
    Value mean = arith::MulFOp::create(emit, half, sum(emit, u[1], u[2]));
    return {sum(emit, u[0], mean), arith::MulFOp::create(emit, half, difference(emit, u[1], u[2])),
            sum(emit, mean, u[3])};
  });
}

void mtc::forTilesOfBlock(Emitter &emit, Value rows, int64_t columns,
                          llvm::function_ref<void(Value tile, Value row, Value column)> body) {
  int64_t across = columns / 2;
  emit.loop(emit.integer(0), emit.div(rows, emit.integer(2)), 1, [&](Value i) {
    emit.loop(emit.integer(0), emit.integer(across), 1,
              [&](Value j) { body(emit.add(emit.mul(i, across), j), emit.mul(i, 2), emit.mul(j, 2)); });
  });
}

void mtc::transformBlock(Emitter &emit, const TilePixels &pixels, Value rows, int64_t columns, Value from, Value to,
                         Value elements, int64_t elementStride, int64_t stride) {
  Type f32 = emit.realType();
  auto [first, pixel, line] = pixels;
  forTilesOfBlock(emit, rows, columns, [&](Value tile, Value row, Value column) {
    Value read = emit.address(first, f32, emit.add(emit.mul(row, line), emit.mul(column, pixel))),
          write = emit.address(elements, f32, emit.mul(tile, stride));
    emit.loop(from, to, lanes, [&](Value c) {
      Emitter::Values taken;
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4; ++j)
          taken.push_back(emit.loadLanes(f32, emit.address(read, f32, c, i * line + j * pixel)));
      for (auto [element, made] : llvm::enumerate(transformPixels(emit, taken)))
        emit.storeLanes(made, emit.address(write, f32, c, element * elementStride));
    });
  });
}
