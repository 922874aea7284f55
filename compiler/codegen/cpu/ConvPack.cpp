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
  Type f32 = emit.getF32Type(), element = elementOf(op->getOperand(1));
  int64_t outer = product.result.groupChannels, width = columns.panel.width(), packedRow = 0;
  for (const Residue &residue : product.residues) {
    Value to = emit.address(columns.packed, f32, packedRow * width);
    packedRow += residue.taps.size() * product.tapDepth();
    if (transposed && !product.depthwise) {
      packTransposed(columns, residue, to);
      continue;
    }
    SmallVector<int64_t> rows;
    for (auto [tap, channel] : product.chain(residue))
      rows.push_back(tap.matrix * product.tapDepth() + channel);
    Value from = emit.address(emit.address(weights, element, emit.mul(columns.group, outer)), element, columns.first);
    int64_t stride = product.result.channels;
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

// Packs the transposed matrices of a residue's taps. Values that a tap writes beyond its depth are overwritten by later
// taps, or are after the end of the matrix.
void ConvEmitter::packTransposed(const Columns &columns, const Residue &residue, Value to) {
  Type f32 = emit.getF32Type(), element = elementOf(op->getOperand(1));
  int64_t inner = product.source.groupChannels, outer = product.result.groupChannels, width = columns.panel.width();
  int64_t filters = product.source.channels, taps = residue.taps.size(), along = taps ? residue.tapColumns() : 1;
  SmallVector<int64_t> matrices, firstRows;
  for (auto [i, tap] : llvm::enumerate(residue.taps)) {
    matrices.push_back(tap.matrix);
    firstRows.push_back(static_cast<int64_t>(i) / along * along * inner + static_cast<int64_t>(i) % along);
  }
  Value table = emitTable(emit, matrices), rows = emitTable(emit, firstRows);
  emit.loop(emit.integer(0), emit.integer(taps), 1, [&](Value tap) {
    Value matrix = emit.add(emit.mul(loadTable(emit, table, tap), outer), columns.first);
    Value from = emit.address(emit.address(weights, element, emit.mul(matrix, filters)), element,
                              emit.mul(columns.group, inner));
    Value address = emit.address(to, f32, emit.mul(loadTable(emit, rows, tap), width));
    emitPackTransposed(emit, columns.panel, from, filters, emit.integer(inner), address, along, element);
  });
}
