// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as products of matrices whose left side is gathered from images as it is read. Channels are innermost,
// so adjacent positions of k are contiguous.
#ifndef COMPILER_CODEGEN_GPU_IMAGE_H
#define COMPILER_CODEGEN_GPU_IMAGE_H

#include "compiler/codegen/gpu/Product.h"
#include "dialects/mt/Window.h"

namespace mtc {

// A convolution or its input gradient: rows are pixels of the result's images, columns its channels in a group, and k
// is (tap row, tap column, channel of the source). With a stride s, an input gradient is divided into s residues along
// an axis: pixels p, p + s ... of the result, which only every s-th tap reads.
struct ImageProduct {
  mlir::mt::Convolution conv;
  bool forward;
  int64_t groups, columns, channels; // columns and channels: of the result and of the source, per group
  int64_t down, across;              // residues along each axis
  int64_t height, width;             // size of the result, or of its largest residue

  int64_t pixels() const { return height * width; }
  int64_t residues() const { return down * across; }
};
// Empty if groups are small, if there are both strides and dilation, or if an image has more than 2^31 elements.
std::optional<ImageProduct> imageProductOf(mlir::Operation *convolution);
// Whether a kernel gradient is computed as a matrix product: rows are (tap row, tap column, channel), columns filters,
// and k is (sample, output row, output column).
bool isKernelProduct(const mlir::mt::Convolution &conv);

ProductTile imageTile(mlir::plan::KernelOp op, const ImageProduct &product);
// Number of samples whose pixels share tiles.
int64_t imageSamples(const ProductTile &tile, int64_t pixels, int64_t shardRows);

// A block's part of an ImageProduct; values are i64 unless noted.
struct ImageBlock {
  const ImageProduct &product;
  mlir::Value sample, end;               // first sample of the block; end of the valid samples
  mlir::Value pixel;                     // first pixel of the tile, counted from the first sample's first pixel
  mlir::Value group, column;             // group of channels of the block; its first column in the group
  mlir::Value residueRow, residueColumn; // i32
};
// Sides and depth of the product, read from the operands of the convolution, which are arguments.
ProductSide gatheredSide(BlockKernel &kernel, const ImageBlock &block, mlir::Value images, int64_t depth);
ProductSide filterSide(BlockKernel &kernel, const ImageBlock &block, mlir::Value filters);
mlir::Value gatheredDepth(BlockKernel &kernel, const ImageBlock &block);
// [sample, row, column] of row `line` of the tile; `there` is true if it exists.
struct ImagePosition {
  mlir::Value sample, row, column, there;
};
ImagePosition imagePosition(BlockKernel &kernel, const ImageBlock &block, mlir::Value line);

// The pixel of the result that is pixel `pixel` of the block's residue of a sample; with several residues, and whether
// it exists.
std::pair<mlir::Value, mlir::Value> pixelOfResult(Emitter &emit, const ImageBlock &block, mlir::Value pixel);

// Left side of a kernel gradient: rows from `first` on are (tap row, tap column, channel in `group`). k counts the
// pixels of the gradient from the start of the batch; pixels before sample `from` and from `end` on count as zeros.
ProductSide windowSide(BlockKernel &kernel, const mlir::mt::Convolution &conv, mlir::Value images, mlir::Value first,
                       mlir::Value group, mlir::Value from, mlir::Value end);

// Convolutions that are not computed as matrix products: each thread computes one element of the result.
mlir::LogicalResult emitDirectConv(BlockKernel &kernel);
mlir::LogicalResult emitDirectConvWgrad(BlockKernel &kernel);

} // namespace mtc

#endif
