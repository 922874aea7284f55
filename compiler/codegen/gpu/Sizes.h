// SPDX-License-Identifier: Apache-2.0
//
// Sizes of blocks and tiles, beside those of products (Tiles.cpp, SplitK.cpp). Where no source is named they are
// choices that have not been tuned by measurement.
#ifndef COMPILER_CODEGEN_GPU_SIZES_H
#define COMPILER_CODEGEN_GPU_SIZES_H

#include "compiler/codegen/gpu/GpuTarget.h"

namespace mtc {

// Adjacent elements that a thread computes: one access to memory of float32.
constexpr int64_t elementsPerThread = maxAccessBytes / 4;
// Threads of a block. Several blocks fit on a multiprocessor of any architecture.
constexpr int64_t elementwiseThreads = 8 * warpThreads, transposeThreads = 8 * warpThreads;
constexpr int64_t convThreads = 4 * warpThreads;
// Elements of a tile of an elementwise kernel, and of rows that are computed element by element.
constexpr int64_t elementwiseTile = elementwiseThreads * elementsPerThread, elementTile = elementwiseTile;
// Arguments of a kernel whose addresses a thread has in registers all the time.
constexpr size_t maxBoundArguments = 40;
// Taps that the windows of a cell have together at most: a thread has four channels of them in its registers.
constexpr int64_t maxCellTaps = 25;
// Threads of the block of a row. Bits of sums inside rows depend on them: the threads are folded.
constexpr int64_t minRowThreads = warpThreads, maxRowThreads = 8 * warpThreads;
// Rows, or lines of them, of a block that computes one with each warp, and elements that such a row has at most.
constexpr int64_t rowWarps = 4, maxWarpElements = 1024;
// Columns of a row are summed by blocks if they are a multiple of `columnWidth`; a block has so many of them, or, if it
// divides them, `maxColumnWidth`.
constexpr int64_t columnWidth = 32, maxColumnWidth = 64;
// Its threads, and lines of the row that a thread then adds at least. Bits depend on them, as above. Two of the largest
// blocks fit with 64 registers a thread.
constexpr int64_t minColumnThreads = 8 * warpThreads, maxColumnThreads = 16 * warpThreads, minColumnLines = 32;
// Bytes that a thread there has on their way at once, if they are not of more pixels: a multiprocessor needs 20 to 40
// KiB, and has at least 512 such threads.
constexpr int64_t bytesInFlight = 64, maxPixelsAtOnce = 8;
// Bytes of values of a row in workgroup memory, so that four blocks fit on the multiprocessor that has least of it;
// where it would be more, those are computed again that can be.
constexpr int64_t maxKeptBytes = leastSharedBytes() / 4;
// What sums of a row may take of it beside the values: two for each thread of the largest block.
constexpr int64_t maxFoldedBytes = 2 * maxBlockThreads * 4;
// Bytes of a product's tile that pass through workgroup memory at once, so that two blocks fit.
constexpr int64_t maxStagedBytes = leastSharedBytes() / 2;
// With tensor cores: bytes of successive k of a line that a panel holds, with wgmma as many as its widest swizzle, and
// the most panels that are in workgroup memory or on their way there.
constexpr int64_t panelRowBytes = 64, warpgroupRowBytes = 128, maxStages = 4;
// Threads of such products, and of cells of images, on a multiprocessor: 128 of its 65536 registers for each.
constexpr int64_t residentThreads = 512;
// Runs of adjacent results that a thread of a product reads for at once at most: a read from device memory takes longer
// than all that is computed for one. Numbers that it then holds, of its 128 registers: with more, ptxas spills.
constexpr int64_t resultsAtOnce = 4, maxFinishRegisters = 44;
// Workgroup memory that their blocks share with wgmma, of the 228 KiB of sm_90, of which each block takes 1 KiB more.
constexpr int64_t warpgroupSharedBytes = 224 << 10;
// Columns of a block of a sum over the batch, adjacent ones a warp's, and its warps.
constexpr int64_t reduceColumns = warpThreads, reduceWarps = 16;
// Rows of a slice of such a sum, and slices of all shards at most: their sums lie in workgroup memory. Bits depend on
// them, and not on how many rows a thread loads before it adds the first.
constexpr int64_t reduceSliceRows = 32, maxReduceSlices = 128, rowsAtOnce = 16;
// Rows and columns of a block of a transposition: a warp reads or writes adjacent elements both ways.
constexpr int64_t transposeSide = warpThreads;

} // namespace mtc

#endif
