// SPDX-License-Identifier: Apache-2.0
//
// A kernel on its way to a gpu.func: what one thread of one block does, in scalars. A block computes one tile. A file
// for each kind writes the body, as on the CPU; docs/gpu-code.md says how tiles and threads are cut.
#ifndef COMPILER_CODEGEN_GPU_BLOCK_H
#define COMPILER_CODEGEN_GPU_BLOCK_H

#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/gpu/GpuTarget.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mtc {

// How a kernel's tiles are counted on a GPU (GpuGrid of runtime/abi/plan.fbs).
struct GpuGrid {
  int64_t threads = 0, rowsPerTile = 0, innerTiles = 1, elementsPerTile = 0, sharedBytes = 0;
  int64_t partialBytes = 0; // of partial sums in device memory, of a segment
};

// What a thread stores once it has loaded all that it reads, so that adjacent elements become one access.
struct BlockStore {
  mlir::Type element; // in memory
  mlir::Value value, address;
};
// What each of `together` adjacent elements stores, in one access for each result: that of the first element of them
// all, then that of the next.
void storeTogether(Emitter &emit, llvm::ArrayRef<BlockStore> stores, int64_t together);
// How products are computed. `reduced` and `tensor` have the same grid and workgroup memory: one plan fits both.
enum class Precision {
  f32,     // FMAs
  reduced, // FMAs, although the module has a lower precision: the architecture has no tensor cores
  tensor,  // tensor cores: operands rounded to TF32 (bf16 and f16 are subsets of it), sums in f32
};

struct BlockKernel : Kernel {
  BlockKernel(const Kernel &kernel, const GpuGrid &grid) : Kernel(kernel), gpu(grid) {}

  GpuGrid gpu;
  Precision precision = Precision::f32;
  // Whether a warpgroup (four warps) may compute products together, by wgmma: the architecture has it.
  bool warpgroups = false;
  // Blocks that a multiprocessor should have room for in its registers; 0: whatever the assembler makes of it.
  int64_t residentBlocks = 0;
  // Threads that work together: the block's, or with `warp`, its number in the block, those of a warp, of which each
  // has work of its own. `thread` is the number among them.
  mlir::Value warp;
  int64_t together() const { return warp ? warpThreads : gpu.threads; }
  mlir::Value thread, tile, segment;       // i64
  mlir::Value elements;                    // of the segment, i64
  mlir::Value memory;                      // workgroup memory, a pointer
  mlir::SmallVector<mlir::Value> pointers; // pointers to device memory: operands, then results

  // Pointer number `index` of the segment's buffers; `isNumber`: it may be of one number, which lies at a multiple of
  // its own size alone.
  mlir::Value pointer(mlir::Value index, bool isNumber);
  mlir::Value argument(int64_t index) { return pointers[index]; }
  // Whether a kernel of rows has too many arguments for that: their pointers, null here, are loaded where one is read.
  bool hasManyArguments();
  mlir::Value result(int64_t index) { return pointers[body().getNumArguments() + index]; }
  // The same, loaded here: no register waits for it through all that comes before.
  mlir::Value resultLoadedHere(int64_t index);

  // Device memory of the segment: partial sums, and below them MT_GPU_COUNTERS counters (runtime/abi/gpu_kernel.h).
  mlir::Value partials();
  mlir::Value counters();

  // From here on each warp has work of its own.
  void splitByWarp();

  // Workgroup memory of such threads for so many elements, 16-byte aligned. Counted in gpu.sharedBytes.
  mlir::Value allocateShared(mlir::Type element, int64_t count);
  // Where all threads that work together meet.
  void barrier();
  void warpBarrier(); // where the threads of a warp do
  // What thread `thread ^ mask` of the warp has: an f32 or an i32. All threads of the warp together.
  mlir::Value shuffle(mlir::Value value, int64_t mask);
  // For which threads of the warp the condition holds: bits of an i32. All threads of the warp together.
  mlir::Value ballot(mlir::Value condition);
  // Elements from + thread, from + thread + threads, ... below `to`.
  void forThreads(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value index)> each);
  void forThreads(int64_t count, llvm::function_ref<void(mlir::Value index)> each);
  Emitter::Values forThreads(int64_t count, mlir::ValueRange carried, Emitter::Body each);
  void firstThread(llvm::function_ref<void()> body);
};

// How samples are cut into lines, of which each is a block's: those of kernels of rows whose values of a sample are too
// many for workgroup memory.
LineForm gpuLineForm(mlir::plan::KernelOp op);
// Whether a kernel of rows, or one without rows, is computed element by element.
bool isElements(mlir::plan::KernelOp op);
// Whether a kernel of rows, normalised, computes a row, or a line, with each warp of a block: short ones of which each
// is loops over elements.
bool isWarpRows(mlir::plan::KernelOp op);
// Columns of a kernel of rows, normalised, that is one loop over lines of so many elements with sums of columns: a
// block computes some columns of a row. 0: any other.
int64_t columnsOf(mlir::plan::KernelOp op);
// How many of them a block computes, and the grid of such blocks.
int64_t columnsTogether(int64_t columns);
GpuGrid columnGrid(mlir::plan::KernelOp op, int64_t columns);

// The tile of a product: threads times `perRow` x `perColumn` elements each, `depth` positions of k at a time in
// workgroup memory.
struct ProductTile {
  int64_t rows, columns, depth, perRow, perColumn;
  int64_t threads() const { return rows * columns / (perRow * perColumn); }
};
ProductTile matmulTile(mlir::plan::KernelOp op);
// Of sums over the batch of results of this shape, `count` of them; long ones have work for `blocksPerTile` blocks.
ProductTile treeTile(int64_t rows, int64_t columns, int64_t count, bool isLong, int64_t blocksPerTile);
// Tiles of a result [rows, columns].
inline int64_t tilesOf(const ProductTile &tile, int64_t rows, int64_t columns) {
  return ceilDiv(rows, tile.rows) * ceilDiv(columns, tile.columns);
}

// if (condition) value of `body` else `otherwise`.
mlir::Value choose(Emitter &emit, mlir::Type type, mlir::Value condition, llvm::function_ref<mlir::Value()> body,
                   llvm::function_ref<mlir::Value()> otherwise);
mlir::Value choose(Emitter &emit, mlir::Value condition, llvm::function_ref<mlir::Value()> body, mlir::Value otherwise);
mlir::Value both(Emitter &emit, mlir::Value a, mlir::Value b);
// Row-major coordinates of element `index` of a tensor.
Emitter::Values coordinates(Emitter &emit, mlir::Value index, llvm::ArrayRef<int64_t> shape);
// The other way round.
mlir::Value flatten(Emitter &emit, mlir::ValueRange coordinates, llvm::ArrayRef<int64_t> shape);

// An operand's element at (row, column) of a product's result, broadcast as the operand's shape says; null for what is
// neither an argument nor a constant of different numbers. The `source` of a VectorBody.
mlir::Value epilogueOperand(BlockKernel &kernel, mlir::Value value, mlir::ValueRange coordinates);
// Computes the yields at adjacent elements, given the product's; `coordinates` and `index` are the first one's. What is
// to be stored, for storeTogether.
llvm::SmallVector<BlockStore> epilogueStores(BlockKernel &kernel, mlir::Value product, mlir::ValueRange numbers,
                                             mlir::ValueRange coordinates, mlir::Value index);
// Adjacent elements of a result with rows of so many that a thread stores at once.
inline int64_t storedTogether(int64_t columns) { return columns % 4 == 0 ? 4 : 1; }

} // namespace mtc

#endif
