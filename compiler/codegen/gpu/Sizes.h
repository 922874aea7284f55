// SPDX-License-Identifier: Apache-2.0
//
// Sizes of blocks and tiles, except for products (Tiles.cpp, SplitK.cpp). Numbers without a source are choices that
// have not been tuned by measurement.
#ifndef COMPILER_CODEGEN_GPU_SIZES_H
#define COMPILER_CODEGEN_GPU_SIZES_H

#include "compiler/codegen/gpu/GpuTarget.h"

namespace mtc {

// Adjacent elements that a thread computes: one memory access of float32.
constexpr int64_t elementsPerThread = maxAccessBytes / 4;
// Threads of a block. Several blocks fit on a multiprocessor of any architecture.
constexpr int64_t elementwiseThreads = 8 * warpThreads, transposeThreads = 8 * warpThreads;
constexpr int64_t convThreads = 4 * warpThreads;
// Elements of a tile of an elementwise kernel, and of rows that are computed element by element.
constexpr int64_t elementwiseTile = elementwiseThreads * elementsPerThread, elementTile = elementwiseTile;
// Largest number of arguments whose addresses a thread keeps in registers.
constexpr size_t maxBoundArguments = 40;
// Largest number of taps of the windows that overlap a cell: a thread has four channels of each tap in registers.
constexpr int64_t maxCellTaps = 25;
// Threads of a block for a row. The bits of sums within rows depend on them, because the threads are reduced.
constexpr int64_t minRowThreads = warpThreads, maxRowThreads = 8 * warpThreads;
// Rows (or lines) of a block with one row per warp, and the largest number of elements of a row that a warp computes.
constexpr int64_t rowWarps = 4, maxWarpElements = 1024;
// Columns of a row are summed by blocks if their number is a multiple of `columnWidth`. A block has this many columns,
// or `maxColumnWidth` if that divides the number.
constexpr int64_t columnWidth = 32, maxColumnWidth = 64;
// Threads of a block of columns, and smallest number of lines per thread. The bits depend on them. Two of the largest
// blocks fit with 64 registers per thread.
constexpr int64_t minColumnThreads = 8 * warpThreads, maxColumnThreads = 16 * warpThreads, minColumnLines = 32;
// Bytes that a thread of a block of columns has in flight, up to a number of pixels: a multiprocessor needs 20 to 40
// KiB in flight, and has at least 512 of these threads.
constexpr int64_t bytesInFlight = 64, maxPixelsAtOnce = 8;
// Largest size of the values of a row in workgroup memory, so that four blocks fit on the multiprocessor with the
// least. Beyond that, values that can be computed again are not stored.
constexpr int64_t maxKeptBytes = minSharedBytes() / 4;
// Workgroup memory for the sums of a row: two for each thread of the largest block.
constexpr int64_t maxFoldedBytes = 2 * maxBlockThreads * 4;
// Bytes of a product's tile that pass through workgroup memory at a time, so that two blocks fit.
constexpr int64_t maxStagedBytes = minSharedBytes() / 2;
// With tensor cores: bytes of successive k of a row in a panel, for wgmma the width of its widest swizzle; largest
// number of panels in workgroup memory or in flight.
constexpr int64_t panelRowBytes = 64, warpgroupRowBytes = 128, maxStages = 4;
// Threads of tensor core products, and of cells of images, on a multiprocessor: 128 of its 65536 registers for each.
constexpr int64_t residentThreads = 512;
// Largest number of runs of adjacent results for which a thread of a product loads operands at once: a load from device
// memory takes longer than the computation of one run. The second number is how many of its 128 registers may then hold
// operands: with more, ptxas spills.
constexpr int64_t resultsAtOnce = 4, maxFinishRegisters = 44;
// Workgroup memory that blocks with wgmma share, of the 228 KiB of sm_90; the system takes 1 KiB more per block.
constexpr int64_t warpgroupSharedBytes = 224 << 10;
// Columns of a block of a sum over the batch, adjacent ones in a warp, and its warps.
constexpr int64_t reduceColumns = warpThreads, reduceWarps = 16;
// Rows of a slice of a sum over the batch, and largest number of slices of all shards, whose sums are in workgroup
// memory. The bits depend on these two, and not on the number of rows that a thread loads at once.
constexpr int64_t reduceSliceRows = 32, maxReduceSlices = 128, rowsAtOnce = 16;
// Rows and columns of a block of a transposition: a warp reads and writes adjacent elements.
constexpr int64_t transposeSide = warpThreads;

} // namespace mtc

#endif
