// SPDX-License-Identifier: Apache-2.0
//
// The kernel gradient of a convolution of bf16 operands. Its terms (Terms.h) are a position in two samples of a shard:
// a block is one of both samples, whose pixels and gradients are stored as pairs. Swapped terms have a halo buffer for
// each of the two samples.
#include "compiler/codegen/cpu/ConvWgrad.h"

using namespace mlir;
using namespace mtc;

// Floats of the halo buffer of one sample.
int64_t KernelGradientEmitter::haloFloats() const {
  PixelBlock size = product.blockOf(residue);
  return residue.reachRows(size.rows) * residue.reachColumns(size.columns) * product.source.groupChannels;
}

// Stores the pixels of both samples in the halo buffer: as pairs, or the second sample's pixels after the first
// sample's.
void KernelGradientEmitter::fillPairs(const Part &part, Value a, Value channel, Value row, Value rows, int64_t column,
                                      int64_t columns) {
  int64_t distance = product.source.size();
  if (terms == Terms::pairs) {
    Value apart = arith::SelectOp::create(emit, part.alone, emit.integer(0), emit.integer(distance));
    SecondSample second{apart, part.alone};
    return fillHaloBuffer(emit, product, residue, a, channel, row, column, rows, columns, haloBuffer, &second);
  }
  fillHaloBuffer(emit, product, residue, a, channel, row, column, rows, columns, haloBuffer);
  Value none = arith::ConstantOp::create(emit, emit.getBoolAttr(false));
  emit.when(emit.equal(part.alone, none), [&] {
    fillHaloBuffer(emit, product, residue, emit.address(a, product.element, distance), channel, row, column, rows,
                   columns, emit.address(haloBuffer, emit.realType(), haloFloats()));
  });
}

// A table of offsets over the terms of positions. If terms are swapped, the offsets in the second sample are larger by
// `distance` floats.
Value KernelGradientEmitter::pairTable(const Part &part, ArrayRef<int64_t> offsets, int64_t distance) {
  Value single = emitTable(emit, offsets);
  if (terms == Terms::pairs)
    return single;
  SmallVector<int64_t> both;
  for (int64_t offset : offsets)
    llvm::append_values(both, offset + distance, offset);
  return arith::SelectOp::create(emit, part.alone, single, emitTable(emit, both));
}

// Packs the gradients of both samples at `depth` positions from `b` on, for one panel of filters.
void KernelGradientEmitter::packPairs(const Part &part, Value b, Value depth) {
  Type f32 = emit.realType(), i16 = emit.getI16Type();
  int64_t filters = product.result.channels, width = part.panel.width(), units = unitsOf(terms, 2);
  Value mask = part.panel.last < lanes ? emit.maskBelow(part.panel.last) : Value();
  Value apart = arith::SelectOp::create(emit, part.alone, emit.integer(0), emit.integer(product.result.size()));
  auto pack = [&] {
    emit.loop(emit.integer(0), depth, 1, [&](Value position) {
      Value from = emit.address(b, i16, emit.mul(position, filters)), next = emit.address(from, i16, apart),
            to = emit.address(part.packed, f32, emit.mul(position, units * width));
      for (int64_t vector = 0; vector < part.panel.vectors; ++vector) {
        auto load = [&](Value start) {
          return emit.loadLanes(i16, emit.address(start, i16, vector * lanes),
                                vector + 1 == part.panel.vectors ? mask : Value());
        };
        Value second = arith::SelectOp::create(emit, part.alone, missingTerms(emit, TermSide::right), load(next));
        storePairs(emit, terms, load(from), second, emit.address(to, f32, vector * lanes), width);
      }
    });
  };
  if (terms == Terms::pairs)
    return pack();
  emit.when(part.alone, [&] { emitPack(emit, part.panel, b, filters, depth, part.packed, element); }, pack);
}

// Adds the positions of a block of two samples, whose pixels are in the halo buffer at `a`, and gradients at `b`.
void KernelGradientEmitter::emitPairs(const Part &part, Value a, Value b, ArrayRef<int64_t> offsets, Value depth,
                                      Value fresh) {
  Type f32 = emit.realType();
  int64_t filters = product.result.channels;
  Value units = depth;
  if (terms == Terms::swapped)
    units = arith::SelectOp::create(emit, part.alone, depth, emit.mul(depth, 2));
  Value table = pairTable(part, offsets, haloFloats());
  TileForm form{/*masked=*/transposed, /*lanewise=*/false, /*scattered=*/transposed, {0}, terms};
  TileOperands operands{a, table, part.packed, emit.integer(part.panel.width()), units, {}, fresh};
  if (!transposed) {
    packPairs(part, emit.address(b, element, emit.add(emit.mul(part.group, product.result.groupChannels), part.column)),
              depth);
  } else {
    // The positions of a block are contiguous. Swapped terms of the first sample are stored after the second sample's.
    Value samples = arith::SelectOp::create(emit, part.alone, emit.integer(1), emit.integer(2));
    packRows(emit, terms, TermSide::right, b, product.result.size(), samples, emit.mul(depth, filters),
             extendedGradient, gradientFloats());
    int64_t first = terms == Terms::swapped ? gradientFloats() : 0;
    SmallVector<int64_t> positions;
    for (size_t position = 0; position < offsets.size(); ++position)
      positions.push_back(first + position * filters);
    Value strides = pairTable(part, positions, -first);
    operands = {extendedGradient, strides, emit.address(a, f32, part.column), table, units, {}, fresh};
    a = extendedGradient;
  }
  emitChains(emit, terms, [&] { emitUnits(part, a, operands, form); });
}
