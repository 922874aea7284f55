// SPDX-License-Identifier: Apache-2.0
//
// A convolution, or its gradient to the images, as products of static shape:
//
//     result[position, n] = sum over k of source[offset(position) + offset(k)] * matrix[k, n]        k = (row of taps,
//     channel, tap of the row)
//
// or, where each group has one channel and one filter (depthwise), of lanes: source[offset(position) + offset(k) + n] *
// matrix[k, n] with k = tap and all groups together. A tap is one position of the convolution's kernel. The gradient of
// a convolution with strides is one product for each residue of the positions modulo the strides. The positions of a
// residue are divided into blocks, and a block into the tiles of Offsets.h.
#ifndef COMPILER_CODEGEN_CPU_CONVPRODUCT_H
#define COMPILER_CODEGEN_CPU_CONVPRODUCT_H

#include "compiler/codegen/common/Kernel.h"
#include "dialects/mt/Window.h"

namespace mtc {

// A position (i, j) of a residue reads the source at row i * rowStep + row, column j * columnStep + column; outside it
// there are zeros.
struct Tap {
  int64_t row, column;
  int64_t matrix; // kh * KW + kw
};

struct Residue {
  int64_t rows, columns;                                  // positions
  int64_t rowStep, columnStep;                            // source pixels between adjacent positions
  int64_t firstRow, firstColumn, rowStride, columnStride; // where the positions lie in the result
  llvm::SmallVector<Tap> taps; // row by row, of each row the same columns, ascending; may be none
  int64_t lowRow = 0, highRow = 0, lowColumn = 0, highColumn = 0; // least and largest of the taps

  // Taps of a row.
  int64_t tapColumns() const {
    return llvm::count_if(taps, [&](const Tap &tap) { return tap.row == taps.front().row; });
  }
  int64_t tapRows() const { return taps.size() / tapColumns(); }
  // Source rows from a row of taps to the next one.
  int64_t tapRowStep() const { return tapRows() > 1 ? (highRow - lowRow) / (tapRows() - 1) : 1; }
  // Source pixels that `rows` x `columns` positions reach over.
  int64_t reachRows(int64_t rows) const { return (rows - 1) * rowStep + highRow - lowRow + 1; }
  int64_t reachColumns(int64_t columns) const { return (columns - 1) * columnStep + highColumn - lowColumn + 1; }
};

// Pixels of a source or a result; channels of all groups, and of one.
struct Image {
  int64_t rows, columns, channels, groupChannels;
  int64_t pixels() const { return rows * columns; }
  int64_t size() const { return pixels() * channels; }
};

// Positions of a block: whole rows of a residue, or a part of one row.
struct PixelBlock {
  int64_t rows, columns;
};

// Largest number of positions in a block, also by Winograd's algorithm, and the floats of a halo buffer that more than
// one row may take.
constexpr int64_t blockPositions = 128, winogradPositions = 256, haloBufferFloats = 1 << 16;

struct Product {
  Image source, result;
  int64_t groups;
  llvm::SmallVector<Residue> residues;
  bool depthwise = false;  // groups are the channels of one
  bool winograd = false;   // computed by tiles of 2 x 2 positions (Winograd.h)
  mlir::Type element = {}; // bf16 or f16 of a source that a halo buffer extends; null: f32
  // Rows of the matrix that a tap has.
  int64_t tapDepth() const { return depthwise ? 1 : source.groupChannels; }
  // Whether a residue reads outside of its source, so that blocks copy what they read into a buffer with a halo of
  // zeros; or reads a source of 16 bits.
  bool needsHaloBuffer(const Residue &residue) const;
  // Floats from a pixel to the next one of what a residue reads.
  int64_t pixelStride(const Residue &residue) const {
    return needsHaloBuffer(residue) ? source.groupChannels : source.channels;
  }
  // Pixels from a row to the next one of what a residue reads.
  int64_t rowStride(const Residue &residue) const {
    return needsHaloBuffer(residue) ? residue.reachColumns(blockOf(residue).columns) : source.columns;
  }
  PixelBlock blockOf(const Residue &residue) const;
  // No block has more positions.
  int64_t mostPositions() const { return winograd ? winogradPositions : blockPositions; }
  // Every k in order of the chain: a tap and a channel.
  llvm::SmallVector<std::pair<Tap, int64_t>> chain(const Residue &residue) const;
  // Blocks of rows of the residue that has most of them.
  int64_t rowBlocks() const;
};

// Where no tap is left or right of another, an image is one long row.
mlir::mt::Convolution flattened(const mlir::mt::Convolution &convolution);
Product forwardProduct(const mlir::mt::Convolution &convolution);
Product gradientProduct(const mlir::mt::Convolution &convolution);

// Where a block starts in its row: a value of the code, and where the residue needs a halo buffer also a constant.
struct BlockColumn {
  mlir::Value value;
  int64_t known;
};
// Calls `body` for the blocks of a row of positions. Without halo buffers equal blocks are a loop.
void forColumnBlocks(Emitter &emit, const Product &product, const Residue &residue,
                     llvm::function_ref<void(BlockColumn column, int64_t columns)> body);

// Copies what `rows` x `columns` positions of a residue read, one group's channels, from a sample's `source` to
// `haloBuffer`. `row` (i64) and `column` are the first position.
void fillHaloBuffer(Emitter &emit, const Product &product, const Residue &residue, mlir::Value source,
                    mlir::Value firstChannel, mlir::Value row, int64_t column, mlir::Value rows, int64_t columns,
                    mlir::Value haloBuffer);

} // namespace mtc

#endif
