// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_CODEGEN_GPU_SIZES_H
#define COMPILER_CODEGEN_GPU_SIZES_H

#include <cstdint>

namespace mtc {

// Elements of a tile of an elementwise kernel, and of rows that are computed element by element; adjacent elements that
// a thread computes.
constexpr int64_t mapTile = 1024, elementTile = 1024, threadElements = 4;
// Threads of a block.
constexpr int64_t mapThreads = 256, reduceThreads = 64, transposeThreads = 256, convThreads = 128;
constexpr int64_t minRowThreads = 32, maxRowThreads = 256;
// Columns and threads of a block that sums columns of a row, and lines of the row that a thread then adds at least.
constexpr int64_t columnWidth = 32, minColumnThreads = 256, maxColumnThreads = 1024, minColumnLines = 32;
// Bytes of values of a row in workgroup memory; where it would be more, those are computed again that can be.
constexpr int64_t maxKeptBytes = 16 << 10;
// What sums of a row take of it beside the values.
constexpr int64_t maxFoldedBytes = 8 << 10;
// Rows and columns of a block of a transposition.
constexpr int64_t transposeSide = 32;

} // namespace mtc

#endif
