// SPDX-License-Identifier: Apache-2.0
//
// Winograd's algorithm F(2 x 2, 3 x 3) for convolutions with 3 x 3 taps and strides of 1, and their gradients to the
// images (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, section 4.1):
//
//     Y = A^T [sum over channels of (G g G^T) * (B^T d B)] A
//
// for each tile Y of 2 x 2 positions: d are the 4 x 4 pixels that it reads and g the 3 x 3 taps. The products of one of
// the 16 elements are a matrix product over the channels: 16 multiplications for a tile, where the sum of the taps
// takes 36. The channels are added in ascending order by FMAs, and the transforms in the order of their functions here,
// so the bits do not depend on the CPU.
#ifndef COMPILER_CODEGEN_CPU_WINOGRAD_H
#define COMPILER_CODEGEN_CPU_WINOGRAD_H

#include "compiler/codegen/cpu/ConvProduct.h"

namespace mtc {

constexpr int64_t winogradElements = 16; // of a tile

// Whether a product is computed so. It depends on its shape alone.
bool isWinograd(const Product &product);
// The same of the kernel's gradient, of a gradient of this element type.
bool isWinogradGradient(const Product &product, mlir::Type gradient);
// The same product over whole tiles: a residue may have one row and one column of positions that the result lacks.
Product overTiles(Product product);

// Sixteen lanes of each of 4 x 4 pixels, row by row, to B^T d B.
Emitter::Values transformPixels(Emitter &emit, mlir::ValueRange pixels);
// Of each of 3 x 3 taps to G g G^T.
Emitter::Values transformTaps(Emitter &emit, mlir::ValueRange taps);
// Of the 16 elements to A^T m A, the 2 x 2 positions.
Emitter::Values transformSums(Emitter &emit, mlir::ValueRange sums);
// The gradients of the last two: of the positions to A y A^T, and of the elements to G^T u G, the taps.
Emitter::Values transformPositions(Emitter &emit, mlir::ValueRange positions);
Emitter::Values transformElements(Emitter &emit, mlir::ValueRange elements);

// Where a block of tiles reads: the first pixel, and floats from a pixel to the next one and from row to row.
struct TilePixels {
  mlir::Value first;
  int64_t pixel, line;
};
// Transforms the pixels of channels [from, to), whole vectors, of a block of `rows` x `columns` positions: channel c of
// an element lies at `elements` + element * apart + tile * stride + c.
void transformBlock(Emitter &emit, const TilePixels &pixels, mlir::Value rows, int64_t columns, mlir::Value from,
                    mlir::Value to, mlir::Value elements, int64_t apart, int64_t stride);
// Calls `body` for the tiles of a block: their number, first row and column.
void forTilesOfBlock(Emitter &emit, mlir::Value rows, int64_t columns,
                     llvm::function_ref<void(mlir::Value tile, mlir::Value row, mlir::Value column)> body);

} // namespace mtc

#endif
