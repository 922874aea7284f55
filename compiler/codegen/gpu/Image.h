// SPDX-License-Identifier: Apache-2.0
//
// Convolutions as products of matrices whose left side is gathered from images as it is read. Channels are innermost,
// so adjacent positions of k lie together.
#ifndef COMPILER_CODEGEN_GPU_IMAGE_H
#define COMPILER_CODEGEN_GPU_IMAGE_H

#include "compiler/codegen/gpu/Product.h"
#include "dialects/mt/Window.h"

namespace mtc {

// A convolution or its input gradient: rows are pixels of the result's images, columns its channels in a group, and k
// is (tap row, tap column, channel of what is read). With strides s an input gradient comes in s residues along an
// axis: pixels p, p + s ... of the result, which are reached by every s-th tap alone.
struct ImageProduct {
  mlir::mt::Convolution conv;
  bool forward;
  int64_t groups, columns, channels; // of the result and of what is read, in a group
  int64_t down, across;              // residues
  int64_t height, width;             // of the result, or of its largest residue

  int64_t pixels() const { return height * width; }
  int64_t residues() const { return down * across; }
};
// Nothing where groups are small, strides meet dilation, or an image has more than 2^31 elements.
std::optional<ImageProduct> imageProductOf(mlir::Operation *convolution);
// Whether a kernel gradient is such a product: rows are (tap row, tap column, channel), columns filters, k is (sample,
// output row, output column).
bool isKernelProduct(const mlir::mt::Convolution &conv);

ProductTile imageTile(mlir::plan::KernelOp op, const ImageProduct &product);
// Samples whose pixels are cut into tiles together.
int64_t imageSamples(const ProductTile &tile, int64_t pixels);

// What a block has of an ImageProduct; i64 where nothing else is said.
struct ImageBlock {
  const ImageProduct &product;
  mlir::Value sample, end;               // the first of its samples; where the valid ones end
  mlir::Value pixel;                     // the tile's first, counted from the first sample's
  mlir::Value group, column;             // its group of channels, and its first column in that
  mlir::Value residueRow, residueColumn; // i32
};
// The sides and k: read from the operands of the convolution, which are arguments.
ProductSide gatheredSide(BlockKernel &kernel, const ImageBlock &block, mlir::Value images, int64_t depth);
ProductSide filterSide(BlockKernel &kernel, const ImageBlock &block, mlir::Value filters);
mlir::Value gatheredDepth(BlockKernel &kernel, const ImageBlock &block);
// [sample, row, column] of the tile's row `line`; `there` says whether it is.
struct ImagePosition {
  mlir::Value sample, row, column, there;
};
ImagePosition imagePosition(BlockKernel &kernel, const ImageBlock &block, mlir::Value line);

// Left side of a kernel gradient: lines from `first` on are (tap row, tap column, channel in `group`); k counts pixels
// of the gradient from the batch's first, from those of sample `from` on and below `end`.
ProductSide windowSide(BlockKernel &kernel, const mlir::mt::Convolution &conv, mlir::Value images, mlir::Value first,
                       mlir::Value group, mlir::Value from, mlir::Value end);

// What is no such product: a thread has one element of the result.
mlir::LogicalResult emitDirectConv(BlockKernel &kernel);
mlir::LogicalResult emitDirectConvWgrad(BlockKernel &kernel);

} // namespace mtc

#endif
