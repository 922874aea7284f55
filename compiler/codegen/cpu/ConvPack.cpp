// SPDX-License-Identifier: Apache-2.0
//
// Packs the matrix of a convolution, or of its input gradient, panel by panel in the order of the FMA chain.
#include "compiler/codegen/cpu/Conv.h"
#include "compiler/codegen/cpu/Winograd.h"

using namespace mlir;
using namespace mtc;

// Number of rows of the packed matrix: taps of all residues times channels, or elements of a Winograd tile times
// channels.
int64_t ConvEmitter::depth() const {
  if (product.winograd)
    return winogradElements * product.tapDepth();
  int64_t taps = 0;
  for (const Residue &residue : product.residues)
    taps += residue.taps.size();
  return taps * product.tapDepth();
}

// Number of rows of the packed matrix, including rows after its end that packing writes.
int64_t ConvEmitter::packedRows() const {
  int64_t along = 1;
  for (const Residue &residue : product.residues)
    along = std::max(along, residue.taps.empty() ? 1 : residue.tapColumns());
  return depth() + (transposed && !product.depthwise && product.tapDepth() % lanes ? lanes * along : 0);
}

void ConvEmitter::pack(const Columns &columns) {
  if (!product.winograd)
    return packChain(columns);
  Columns chain = columns;
  chain.packed = chainPanel;
  packChain(chain);
  packElements(columns, chainPanel);
}

// Packs the rows of the matrix in the order of the chain.
void ConvEmitter::packChain(const Columns &columns) {
  Type f32 = emit.realType(), element = elementOf(op->getOperand(1));
  int64_t outer = product.result.groupChannels, width = columns.panel.width(), packedRow = 0;
  for (const Residue &residue : product.residues) {
    Value to = emit.address(columns.packed, f32, packedRow * width);
    packedRow += residue.taps.size() * product.tapDepth();
    if (transposed && !product.depthwise) {
      packTransposed(columns, residue, to);
      continue;
    }
    Value from = emit.address(emit.address(weights, element, emit.mul(columns.group, outer)), element, columns.first);
    int64_t stride = product.result.channels;
    if (product.terms != Terms::single) {
      packChainOfPairs(columns, residue, from, to);
      continue;
    }
    SmallVector<int64_t> rows;
    for (auto [tap, channel] : product.chain(residue))
      rows.push_back(tap.matrix * product.tapDepth() + channel);
    if (rows == llvm::to_vector(llvm::seq<int64_t>(rows.size()))) {
      emitPack(emit, columns.panel, from, stride, emit.integer(rows.size()), to, element);
      continue;
    }
    Value table = emitTable(emit, rows);
    emit.loop(emit.integer(0), emit.integer(rows.size()), 1, [&](Value k) {
      emitPack(emit, columns.panel, emit.address(from, element, emit.mul(loadTable(emit, table, k), stride)), stride,
               emit.integer(1), emit.address(to, f32, emit.mul(k, width)), element);
    });
  }
}

// Packs the rows of the matrix at `from` for pairs of channels.
void ConvEmitter::packChainOfPairs(const Columns &columns, const Residue &residue, Value from, Value to) {
  Type f32 = emit.realType(), element = elementOf(op->getOperand(1));
  int64_t stride = product.result.channels, channels = product.elements.groupChannels, perPair = 2;
  int64_t units = unitsOf(product.terms, perPair), width = columns.panel.width();
  SmallVector<int64_t> rows, counts; // first row and number of rows of each pair
  for (auto [i, term] : llvm::enumerate(product.chain(residue))) {
    int64_t first = term.second / units * perPair;
    if (static_cast<int64_t>(i) % units)
      continue;
    rows.push_back(term.first.matrix * channels + first);
    counts.push_back(std::min(perPair, channels - first));
  }
  int64_t pairs = rows.size();
  auto inOrder = [&] {
    for (int64_t pair = 0; pair < pairs; ++pair)
      if (rows[pair] != pair * perPair)
        return false;
    return channels % perPair == 0;
  };
  if (inOrder())
    return emitPack(emit, columns.panel, from, stride, emit.integer(pairs * perPair), to, element, product.terms);
  Value firsts = emitTable(emit, rows), sizes = emitTable(emit, counts);
  emit.loop(emit.integer(0), emit.integer(pairs), 1, [&](Value pair) {
    Value row = emit.address(from, element, emit.mul(loadTable(emit, firsts, pair), stride));
    emitPack(emit, columns.panel, row, stride, loadTable(emit, sizes, pair),
             emit.address(to, f32, emit.mul(pair, units * width)), element, product.terms);
  });
}

// Packs the transposed matrices of a residue's taps. Values that a tap writes beyond its depth are overwritten by later
// taps, or are after the end of the matrix.
void ConvEmitter::packTransposed(const Columns &columns, const Residue &residue, Value to) {
  Type f32 = emit.realType(), element = elementOf(op->getOperand(1));
  const Image &image = product.terms == Terms::single ? product.source : product.elements;
  int64_t depth = product.source.groupChannels, outer = product.result.groupChannels / product.joined,
          width = columns.panel.width();
  int64_t filters = image.channels, taps = residue.taps.size(), along = taps ? residue.tapColumns() : 1;
  SmallVector<int64_t> matrices, firstRows;
  for (auto [i, tap] : llvm::enumerate(residue.taps)) {
    matrices.push_back(tap.matrix);
    int64_t index = i;
    firstRows.push_back(index / along * along * depth + index % along * product.adjacentTerms());
  }
  Value table = emitTable(emit, matrices), rows = emitTable(emit, firstRows);
  emit.loop(emit.integer(0), emit.integer(taps), 1, [&](Value tap) {
    Value matrix = emit.add(emit.mul(loadTable(emit, table, tap), outer), columns.first);
    Value from = emit.address(emit.address(weights, element, emit.mul(matrix, filters)), element,
                              emit.mul(columns.group, image.groupChannels));
    Value address = emit.address(to, f32, emit.mul(loadTable(emit, rows, tap), width));
    emitPackTransposed(emit, columns.panel, from, filters, emit.integer(image.groupChannels), address, along, element,
                       product.terms);
  });
}
