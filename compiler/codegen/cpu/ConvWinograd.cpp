// SPDX-License-Identifier: Apache-2.0
//
// The parts of a convolution, or its input gradient, that differ for Winograd's algorithm: the packed matrix of a panel
// has one matrix per element of a tile, and blocks are transformed before and after the products.
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Winograd.h"

using namespace mlir;
using namespace mtc;

// Transforms the matrix of a panel at `from`, in the order of the chain, to one matrix per element of a tile.
void ConvEmitter::packElements(const Columns &columns, Value from) {
  Type f32 = emit.realType();
  int64_t channels = product.source.groupChannels, width = columns.panel.width();
  emit.loop(emit.integer(0), emit.integer(channels), 1, [&](Value c) {
    for (int64_t vector = 0; vector < columns.panel.vectors; ++vector) {
      Value first = emit.address(from, f32, emit.mul(c, 3 * width), vector * lanes);
      Emitter::Values taps;
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t column = 0; column < 3; ++column)
          taps.push_back(emit.loadLanes(f32, emit.address(first, f32, (row * 3 * channels + column) * width)));
      Value to = emit.address(columns.packed, f32, emit.mul(c, width), vector * lanes);
      for (auto [element, made] : llvm::enumerate(transformTaps(emit, taps)))
        emit.storeLanes(made, emit.address(to, f32, element * channels * width));
    }
  });
}

// Distance in floats between the pixels of two elements of a block. One extra vector keeps the elements of a tile out
// of the same set of the L1 cache.
int64_t ConvEmitter::elementFloats() const {
  PixelBlock block = product.blockOf(product.residues.front());
  return block.rows * block.columns / 4 * product.source.groupChannels + lanes;
}

// Emits the products of a block's elements and a panel, then the sums of its positions.
void ConvEmitter::emitElements(const Columns &columns, const Positions &at) {
  Type f32 = emit.realType();
  int64_t channels = product.source.groupChannels, width = columns.panel.width(),
          most = winogradPositions / 4 * vectors() * lanes;
  Value tiles = emit.mul(emit.div(at.rows, emit.integer(2)), at.columns / 2);
  emit.loop(emit.integer(0), emit.integer(winogradElements), 1, [&](Value element) {
    Value a = emit.address(elements, f32, emit.mul(element, elementFloats())),
          b = emit.address(columns.packed, f32, emit.mul(element, channels * width)),
          to = emit.address(elementSums, f32, emit.mul(element, most));
    for (int64_t k = 0; k < channels; k += columns.panel.depth()) {
      int64_t depth = std::min(columns.panel.depth(), channels - k);
      emitProduct(emit, Layout::rows, columns.panel, emit.address(a, f32, k), emit.integer(channels),
                  emit.address(b, f32, k * width), emit.integer(depth), to, tiles, k ? Sums::there : Sums::fresh);
    }
  });
  forTilesOfBlock(emit, at.rows, at.columns, [&](Value tile, Value row, Value column) {
    Value from = emit.address(elementSums, f32, emit.mul(tile, width)),
          to = emit.address(columns.sums, f32, emit.mul(emit.add(emit.mul(row, at.columns), column), width));
    for (int64_t vector = 0; vector < columns.panel.vectors; ++vector) {
      Emitter::Values sums;
      for (int64_t element = 0; element < winogradElements; ++element)
        sums.push_back(emit.loadLanes(f32, emit.address(from, f32, element * most + vector * lanes)));
      for (auto [position, made] : llvm::enumerate(transformSums(emit, sums)))
        emit.storeLanes(made,
                        emit.address(to, f32, (position / 2 * at.columns + position % 2) * width + vector * lanes));
    }
  });
}
