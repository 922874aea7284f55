// SPDX-License-Identifier: Apache-2.0
//
// Winograd's algorithm F(2 x 2, 3 x 3) for convolutions with 3 x 3 taps and strides of 1, and for their input gradients
// (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4.1):
//
//     Y = A^T [sum over channels of (G g G^T) * (B^T d B)] A
//
// for each tile Y of 2 x 2 positions, where d are the 4 x 4 pixels that it reads and g the 3 x 3 taps. The products of
// each of the 16 elements are a matrix product over the channels: 16 multiplications per tile instead of the 36 of the
// direct sum. Channels are added in ascending order by FMAs, and the transforms are computed in the order of the
// functions below, so the bits do not depend on the CPU.
#ifndef COMPILER_CODEGEN_CPU_WINOGRAD_H
#define COMPILER_CODEGEN_CPU_WINOGRAD_H

#include "compiler/codegen/cpu/ConvProduct.h"

namespace mtc {

constexpr int64_t winogradElements = 16; // elements of a tile

// Whether a product is computed by Winograd's algorithm. Depends on its shape alone.
bool isWinograd(const Product &product);
// The same for a kernel gradient, computed from a gradient of this element type.
bool isWinogradGradient(const Product &product, mlir::Type gradient);
// The product over full tiles: a residue may get one more row and one more column of positions than the result.
Product overTiles(Product product);

// B^T d B for 16 channels of each of 4 x 4 pixels, row by row.
Emitter::Values transformPixels(Emitter &emit, mlir::ValueRange pixels);
// G g G^T for 3 x 3 taps.
Emitter::Values transformTaps(Emitter &emit, mlir::ValueRange taps);
// A^T m A, the 2 x 2 positions, for the 16 elements.
Emitter::Values transformSums(Emitter &emit, mlir::ValueRange sums);
// Gradients of the last two functions: A y A^T for positions, and G^T u G, the taps, for elements.
Emitter::Values transformPositions(Emitter &emit, mlir::ValueRange positions);
Emitter::Values transformElements(Emitter &emit, mlir::ValueRange elements);

// Address of the first pixel that a block of tiles reads, and the strides of pixels and rows in floats.
struct TilePixels {
  mlir::Value first;
  int64_t pixel, line;
};
// Transforms the pixels of channels [from, to), full vectors, of a block of `rows` x `columns` positions: channel c of
// an element is stored at `elements` + element * elementStride + tile * stride + c.
void transformBlock(Emitter &emit, const TilePixels &pixels, mlir::Value rows, int64_t columns, mlir::Value from,
                    mlir::Value to, mlir::Value elements, int64_t elementStride, int64_t stride);
// Calls `body` for the tiles of a block, with their number, first row and first column.
void forTilesOfBlock(Emitter &emit, mlir::Value rows, int64_t columns,
                     llvm::function_ref<void(mlir::Value tile, mlir::Value row, mlir::Value column)> body);

} // namespace mtc

#endif
