// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_GPU_SIZES_H
#define COMPILER_CODEGEN_GPU_SIZES_H

#include <cstdint>

namespace mtc {

// Elements of a tile of a map, and rows of a tile of rows of one element each.
constexpr int64_t mapTile = 1024, lineTile = 128;
// Threads of a block.
constexpr int64_t mapThreads = 256, lineThreads = 128, reduceThreads = 64, transposeThreads = 256, convThreads = 128;
constexpr int64_t leastRowThreads = 32, mostRowThreads = 256;
// Rows and columns of a block of a transposition.
constexpr int64_t transposeSide = 32;

} // namespace mtc

#endif
