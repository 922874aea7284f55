// SPDX-License-Identifier: Apache-2.0
//
// A kernel during emission as a gpu.func: code for one thread of one block, in scalars. A block computes one tile. One
// file per kind emits the body, as on the CPU. docs/gpu-code.md describes tiles and threads.
#ifndef COMPILER_CODEGEN_GPU_BLOCK_H
#define COMPILER_CODEGEN_GPU_BLOCK_H

#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/gpu/GpuTarget.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace mtc {

// Grid of a kernel on a GPU (GpuGrid of runtime/abi/plan.fbs).
struct GpuGrid {
  int64_t threads = 0, rowsPerTile = 0, innerTiles = 1, elementsPerTile = 0, sharedBytes = 0;
  int64_t partialBytes = 0; // device memory for the partial sums of a segment
};

// A store that a thread executes after all of its loads, so that accesses to adjacent elements can be merged.
struct BlockStore {
  mlir::Type element; // in memory
  mlir::Value value, address;
};
// Emits the stores of `vectorWidth` adjacent elements, one access per result. `stores` has the stores of the first
// element for all results, then the stores of the next element, and so on.
void storeAdjacent(Emitter &emit, llvm::ArrayRef<BlockStore> stores, int64_t vectorWidth);
// How products are computed. `reduced` and `tensor` have the same grid and workgroup memory, so that one plan fits
// both.
enum class Precision {
  f32,     // FMAs
  reduced, // FMAs although the plan has a lower precision, because the architecture has no tensor cores
  tensor,  // tensor cores: operands are rounded to TF32 (bf16 and f16 are subsets of it), sums are f32
};

struct TileSums;

struct BlockKernel : Kernel {
  BlockKernel(const Kernel &kernel, const GpuGrid &grid) : Kernel(kernel), gpu(grid) {}

  GpuGrid gpu;
  Precision precision = Precision::f32;
  // Whether warpgroups (four warps) compute products by wgmma, which the architecture must have.
  bool warpgroups = false;
  // Sums of the results of a product, for the first tail; null: none.
  const TileSums *sums = nullptr;
  // Number of blocks for which the registers of a multiprocessor should suffice; 0: the assembler decides.
  int64_t residentBlocks = 0;
  // Number of the warp, if each warp works by itself (splitByWarp); else null. The threads that cooperate are the
  // threads of the warp, or else of the block. groupThreads() is their number, and `thread` the index among them.
  mlir::Value warp;
  int64_t groupThreads() const { return warp ? warpThreads : gpu.threads; }
  mlir::Value thread, tile, segment;       // i64
  mlir::Value elements;                    // elements of the segment, i64
  mlir::Value memory;                      // workgroup memory, a pointer
  mlir::SmallVector<mlir::Value> pointers; // pointers to device memory: operands, then results

  // Pointer with index `index` of the segment's buffers. `isNumber`: the buffer may hold a single number, which is
  // aligned only to its own size.
  mlir::Value pointer(mlir::Value index, bool isNumber);
  mlir::Value pointerKnownHere(mlir::Value index, bool isNumber); // as pointer(), and requireHere
  // Load `pointers`. The pointers of operands are known from here on, which is before the parameters tell whether the
  // tile exists: a block waits for both at once. Sums over the batch load the pointers of their tile instead. `count`:
  // of a kernel that is not a plan.kernel.
  void bindPointers();
  void bindOwnPointers(int64_t count);
  mlir::Value argument(int64_t index) { return pointers[index]; }
  // Whether a rows kernel has too many arguments to keep their pointers in registers. The pointers are then null here,
  // and loaded where an argument is read.
  bool hasManyArguments();
  mlir::Value result(int64_t index) { return pointers[body().getNumArguments() + index]; }
  // Loads the pointer of a result at this point, so that it occupies no register before.
  mlir::Value resultLoadedHere(int64_t index);

  // Device memory of the segment: partial sums, and before them MT_GPU_COUNTERS counters (runtime/abi/gpu_kernel.h).
  mlir::Value partials();
  mlir::Value counters();

  // From this point on each warp works by itself.
  void splitByWarp();

  // Allocates workgroup memory for the cooperating threads, aligned to 16 bytes, and adds its size to gpu.sharedBytes.
  mlir::Value allocateShared(mlir::Type element, int64_t count);
  // Barrier of the cooperating threads.
  void barrier();
  void warpBarrier(); // barrier of the threads of a warp
  // The value (f32 or i32) of thread `thread ^ mask` of the warp. All threads of the warp must execute it.
  mlir::Value shuffle(mlir::Value value, int64_t mask);
  // For which threads of the warp the condition is true, as bits of an i32. All threads of the warp must execute it.
  mlir::Value ballot(mlir::Value condition);
  // Loops over the elements from + thread, from + thread + threads, ... below `to`.
  void forThreads(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value index)> each);
  void forThreads(int64_t count, llvm::function_ref<void(mlir::Value index)> each);
  Emitter::Values forThreads(int64_t count, mlir::ValueRange carried, Emitter::Body each);
  void firstThread(llvm::function_ref<void()> body);
};

// Makes values known at this point: LLVM would load them after the next branch, where they are used.
void requireHere(Emitter &emit, mlir::ValueRange pointers);
// Number of pointers of a segment of the kernel, without its tails.
int64_t buffersOf(mlir::plan::KernelOp op);
// Division of samples into lines, one per block, for rows kernels whose values of a sample do not fit into workgroup
// memory.
LineForm gpuLineForm(mlir::plan::KernelOp op);
// Whether a kernel of kind rows or single is computed element by element.
bool isElements(mlir::plan::KernelOp op);
// Whether each warp of a block computes one row (or line) of a canonical rows kernel. Only for short rows whose
// statements are loops over elements.
bool isWarpRows(mlir::plan::KernelOp op);
// Number of columns, if a canonical rows kernel is a single loop over lines with sums of columns, so that a block
// computes some columns of a row; else 0.
int64_t columnsOf(mlir::plan::KernelOp op);
// Whether the op takes the first pixel of a sample in memory, or converts it. Threads of a kernel with columnsOf do so
// where they need it.
bool isFirstPixel(mlir::Operation *op);
// Number of columns of a block, and the grid of blocks of columns.
int64_t columnsPerBlock(int64_t columns);
GpuGrid columnGrid(mlir::plan::KernelOp op, int64_t columns);

// Tile of a product. Each thread has `perRow` x `perColumn` elements. `depth`: positions of k in workgroup memory at a
// time.
struct ProductTile {
  int64_t rows, columns, depth, perRow, perColumn;
  int64_t threads() const { return rows * columns / (perRow * perColumn); }
};
ProductTile matmulTile(mlir::plan::KernelOp op);
// Tile of `count` sums over the batch of this shape; `blocksPerTile` blocks share a tile of a long sum.
ProductTile treeTile(int64_t rows, int64_t columns, int64_t count, bool isLong, int64_t blocksPerTile);
// Number of tiles of a result [rows, columns].
inline int64_t tilesOf(const ProductTile &tile, int64_t rows, int64_t columns) {
  return ceilDiv(rows, tile.rows) * ceilDiv(columns, tile.columns);
}

// The value of `body` if the condition is true, else of `otherwise`.
mlir::Value choose(Emitter &emit, mlir::Type type, mlir::Value condition, llvm::function_ref<mlir::Value()> body,
                   llvm::function_ref<mlir::Value()> otherwise);
mlir::Value choose(Emitter &emit, mlir::Value condition, llvm::function_ref<mlir::Value()> body, mlir::Value otherwise);
mlir::Value both(Emitter &emit, mlir::Value a, mlir::Value b);
// Row-major coordinates of element `index` of a tensor.
Emitter::Values coordinates(Emitter &emit, mlir::Value index, llvm::ArrayRef<int64_t> shape);
// Inverse of coordinates.
mlir::Value flatten(Emitter &emit, mlir::ValueRange coordinates, llvm::ArrayRef<int64_t> shape);

// The element of an operand at (row, column) of a product's result, broadcast according to the operand's shape; null
// for a value that is neither an argument nor a constant with different elements. The `source` of a VectorBody.
mlir::Value epilogueOperand(BlockKernel &kernel, mlir::Value value, mlir::ValueRange coordinates);
// Computes the yields at adjacent elements from elements of the product. `coordinates` and `index` belong to the first
// element. Returns the stores, for storeAdjacent.
llvm::SmallVector<BlockStore> epilogueStores(BlockKernel &kernel, mlir::Value product, mlir::ValueRange numbers,
                                             mlir::ValueRange coordinates, mlir::Value index);
// Number of adjacent elements that a thread stores at once, for a result with rows of `columns` elements.
inline int64_t storedWidth(int64_t columns) { return columns % 4 == 0 ? 4 : 1; }

} // namespace mtc

#endif
