// SPDX-License-Identifier: Apache-2.0
//
// A convolution, or its input gradient, as products of static shape:
//
//     result[position, n] = sum over k of source[offset(position) + offset(k)] * matrix[k, n]
//     with k = (row of taps, channel, tap of the row)
//
// or, if each group has one channel and one filter (depthwise), element by element: source[offset(position) + offset(k)
// + n] * matrix[k, n], where k is a tap and n goes over all groups. A tap is one position of the convolution's kernel.
// The gradient of a convolution with strides is one product for each residue of the positions modulo the strides. The
// positions of a residue are divided into blocks, and a block into the tiles of Offsets.h.
//
// The terms of a product of bf16 operands (Terms.h) are pairs of channels: k = (row of taps, pair of channels, tap of
// the row), and a pair is stored where a float would be, or swapped channels are.
#ifndef COMPILER_CODEGEN_CPU_CONVPRODUCT_H
#define COMPILER_CODEGEN_CPU_CONVPRODUCT_H

#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/cpu/Terms.h"
#include "dialects/mt/Window.h"

namespace mtc {

// Position (i, j) of a residue reads the source at row i * rowStep + row and column j * columnStep + column; the source
// is 0 outside of the image.
struct Tap {
  int64_t row, column;
  int64_t matrix; // kh * KW + kw
};

struct Residue {
  int64_t rows, columns;                                  // number of positions
  int64_t rowStep, columnStep;                            // source pixels between adjacent positions
  int64_t firstRow, firstColumn, rowStride, columnStride; // pixels of the result that the positions compute
  llvm::SmallVector<Tap> taps; // row by row, with the same columns in each row, ascending; may be empty
  int64_t lowRow = 0, highRow = 0, lowColumn = 0, highColumn = 0; // smallest and largest offsets of the taps

  // Number of taps in a row.
  int64_t tapColumns() const {
    return llvm::count_if(taps, [&](const Tap &tap) { return tap.row == taps.front().row; });
  }
  int64_t tapRows() const { return taps.size() / tapColumns(); }
  // Number of source rows between two adjacent rows of taps.
  int64_t tapRowStep() const { return tapRows() > 1 ? (highRow - lowRow) / (tapRows() - 1) : 1; }
  // Size of the source area that `rows` x `columns` positions read.
  int64_t reachRows(int64_t rows) const { return (rows - 1) * rowStep + highRow - lowRow + 1; }
  int64_t reachColumns(int64_t columns) const { return (columns - 1) * columnStep + highColumn - lowColumn + 1; }
};

// Pixels of a source or a result, with the number of channels of all groups, and of one group.
struct Image {
  int64_t rows, columns, channels, groupChannels;
  int64_t pixels() const { return rows * columns; }
  int64_t size() const { return pixels() * channels; }
};

// Positions of a block: full rows of a residue, or a part of one row.
struct PixelBlock {
  int64_t rows, columns;
};

// Largest number of positions in a block, and for Winograd's algorithm; largest number of floats of a halo buffer for
// more than one row.
constexpr int64_t blockPositions = 128, winogradPositions = 256, haloBufferFloats = 1 << 16;

struct Product {
  Image source, result;
  int64_t groups;
  llvm::SmallVector<Residue> residues;
  bool depthwise = false;  // the groups are the channels of one group
  bool winograd = false;   // computed by tiles of 2 x 2 positions (Winograd.h)
  mlir::Type element = {}; // bf16 or f16 if the source has 16 bits and a halo buffer converts it; null: f32, or pairs
  Terms terms = Terms::single;
  Image elements = {}; // the source in elements, if `source` has pairs or swapped channels
  // Number of adjacent pixels of the result whose channels are the channels of one pixel here (joinPixels).
  int64_t joined = 1;
  // Channels that bound the size of a block, the same on every CPU; absent: the channels of the halo buffer.
  std::optional<int64_t> boundChannels = {};
  // Number of rows of the matrix per tap.
  int64_t tapDepth() const { return depthwise ? 1 : source.groupChannels; }
  // The source as it lies in memory, where it is read.
  const Image &memory() const { return element && terms != Terms::single ? elements : source; }
  // Whether a residue reads outside of the image, so that blocks copy their part of the source to a buffer with a halo
  // of zeros, or reads a source of 16 bits.
  bool needsHaloBuffer(const Residue &residue) const;
  // Distance in floats between adjacent pixels that a residue reads.
  int64_t pixelStride(const Residue &residue) const {
    return needsHaloBuffer(residue) ? source.groupChannels : source.channels;
  }
  // Distance in pixels between adjacent rows that a residue reads.
  int64_t rowStride(const Residue &residue) const {
    return needsHaloBuffer(residue) ? residue.reachColumns(blockOf(residue).columns) : source.columns;
  }
  PixelBlock blockOf(const Residue &residue) const;
  // Upper bound of the number of positions of a block.
  int64_t mostPositions() const { return winograd ? winogradPositions : blockPositions; }
  // Number of terms of a tap that are adjacent in the chain.
  int64_t adjacentTerms() const { return terms == Terms::swapped ? 2 : 1; }
  // Every k in the order of the FMA chain: a tap and a channel.
  llvm::SmallVector<std::pair<Tap, int64_t>> chain(const Residue &residue) const;
  // Number of blocks of rows, of the residue that has most.
  int64_t rowBlocks() const;
};

// If all taps have the same column, treats an image as one long row.
mlir::mt::Convolution flattened(const mlir::mt::Convolution &convolution);
Product forwardProduct(const mlir::mt::Convolution &convolution);
Product gradientProduct(const mlir::mt::Convolution &convolution);
// In a gradient with this stride, `pixels` adjacent pixels of a row of the result may be computed from the same
// elements. Then the residues of a row become one, whose pixels are fewer and have more channels. Otherwise, returns
// the product as it is.
Product joinPixels(Product product, int64_t pixels);
// The same product of operands that are packed as these terms. The blocks stay as they are.
Product withTerms(Product product, Terms terms);

// First column of a block: a value of the generated code, and, if the residue needs a halo buffer, also a constant.
struct BlockColumn {
  mlir::Value value;
  int64_t known;
};
// Calls `body` for the blocks of a row of positions. Without halo buffers, equal blocks are a loop.
void forColumnBlocks(Emitter &emit, const Product &product, const Residue &residue,
                     llvm::function_ref<void(BlockColumn column, int64_t columns)> body);

// The second sample of a pair (Terms.h): `distance` elements after the first one, 0 if `alone` (i1) holds and it is
// missing.
struct SecondSample {
  mlir::Value distance, alone;
};

// Copies the part of the source that `rows` x `columns` positions of a residue read, for the channels of one group
// (`firstChannel` is counted in memory), from a sample's `source` to `haloBuffer`. `row` (i64) and `column` are the
// first position. With `second`, the elements of both samples are stored as pairs.
void fillHaloBuffer(Emitter &emit, const Product &product, const Residue &residue, mlir::Value source,
                    mlir::Value firstChannel, mlir::Value row, int64_t column, mlir::Value rows, int64_t columns,
                    mlir::Value haloBuffer, const SecondSample *second = nullptr);

} // namespace mtc

#endif
