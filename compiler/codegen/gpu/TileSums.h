// SPDX-License-Identifier: Apache-2.0
//
// Sums of the pixels (or tokens) of a sample in the epilogue of the convolution or product that computes the pixels
// (docs/gpu-code.md, "Sums in epilogues"): the first tail of a kernel, if it has this form. A tile of the head adds its
// own pixels of each sample, and the last block of the samples adds the tiles' sums in order.
#ifndef COMPILER_CODEGEN_GPU_TILESUMS_H
#define COMPILER_CODEGEN_GPU_TILESUMS_H

#include "compiler/codegen/gpu/Elements.h"
#include "compiler/codegen/gpu/Kernels.h"

namespace mtc {

// The sums that the tiles of a head add for its tail. A *group* is the samples that share tiles; rows of a group are
// its pixels, per residue of a convolution (Image.h).
struct TileSums : TileShape {
  Tail tail;
  int64_t argument, yield; // of the tail, and of the head: the pixels
  // Whether the tail sums differences from the sample's first pixel, and their squares. A tile takes them from its own
  // first pixel of the sample.
  bool moments = false;
  llvm::SmallVector<mlir::mt::ReduceOp> sums; // other sums
  int64_t samples;                            // of a group
  int64_t tilesDown;                          // tiles of a group and a residue, one below the other
  int64_t slots;                              // largest number of samples in a tile

  int64_t numbers() const { return 2 * moments + static_cast<int64_t>(sums.size()); } // of a tile, sample and column
  // The sums of tile t of a group and a residue, and of sample s of the group, have position t + s among the sums of
  // the residue: from one to the next either the tile or the sample changes.
  int64_t positions() const { return tilesDown + samples - 1; }
  int64_t partialBytes(int64_t rows) const {
    return static_cast<int64_t>(sizeof(float)) * ceilDiv(rows, samples) * residues * positions() * numbers() * columns;
  }
};

// The sums of result `yield` of the head, which is argument `argument` of its first tail, if the tiles can add them.
// The rule depends on the plan alone: the samples of a group are of one shard, and have the same positions in their
// tiles on every device.
std::optional<TileSums> tileSumsOf(mlir::plan::KernelOp head, const Tail &tail, int64_t argument, int64_t yield,
                                   const GpuGrid &grid, int64_t shardRows);

// Where the rows of a block's tile are; values are i64.
struct TileRows {
  mlir::Value first;       // row of the group
  mlir::Value sample, end; // first sample of the group; end of the valid samples
  // For a row of a sample: the number of the pixel, and whether it exists (null: always).
  std::function<std::pair<mlir::Value, mlir::Value>(mlir::Value row)> pixel;
};

// Terms of the sums, of adjacent columns of a pixel of a sample.
class TileTerms : public BlockElements {
public:
  using Shared = Spread; // values that all pixels share
  // `known`: values that all samples share; null: they are loaded, and no others.
  TileTerms(BlockKernel &kernel, const TileSums &sums, mlir::Value sample, mlir::Value column, const Shared *known);
  const Shared &values() const { return shared; }
  Emitter::Values of(mlir::Value pixel, mlir::ValueRange image);

private:
  const TileSums &sums;
  mlir::Value column;
  Shared shared;
};

// Adds the rows of a tile whose results are in workgroup memory. A thread has adjacent columns, and every Q-th row.
class TileAdder {
public:
  TileAdder(BlockKernel &head, const TileRows &rows);
  // Adds rows [first, first + count) of the tile, which begin at `staged` with a stride of `stride` numbers.
  void add(mlir::Value staged, int64_t stride, int64_t first, int64_t count);
  // Stores the sums of the tile. `memory`: workgroup memory for the sums of all threads.
  void store(mlir::Value memory);

private:
  BlockKernel &head;
  Emitter &emit;
  const TileSums &sums;
  const TileRows &rows;
  BlockKernel kernel; // of the tail
  struct Slot {
    mlir::Value start, begin, end; // first row of the sample, and the part of it in the tile
    mlir::Value inGroup, sample;   // numbers of the sample: in the group, and on the device
    Emitter::Values shift;         // the first pixel in the tile
    Emitter::Values running;       // of the first column, then of the next
  };
  llvm::SmallVector<Slot> slots;
  int64_t across, apart;             // threads of a row, and Q
  mlir::Value column, within, inRow; // first column in the tile; number of the first row; first column of the pixel
  TileTerms::Shared shared;          // of all samples
};

// Adds the sums of the tiles of samples [first, end): the results of the tail for part `part` of `parts` of the
// columns.
void mergeTileSums(BlockKernel &head, BlockKernel &tail, mlir::Value first, mlir::Value end, mlir::Value part,
                   int64_t parts);

} // namespace mtc

#endif
