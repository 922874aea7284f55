// SPDX-License-Identifier: Apache-2.0
//
// Elements of body values: read where a value lies in memory, else computed from elements of its operands at the index
// where they are wanted.
#ifndef COMPILER_CODEGEN_GPU_ELEMENTS_H
#define COMPILER_CODEGEN_GPU_ELEMENTS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// What an operation costs where its elements are computed as they are wanted.
enum class Reach {
  element, // an element of each operand
  window,  // some of an operand's: a pool's, or its gradient's
  line,    // any number: sums, searches, products
};
Reach reachOf(mlir::Operation *op);

// True if an element of `value` can be computed again wherever it is read: every path from the arguments contains at
// most one op of Reach::window and none of Reach::line. A path begins at an argument, or at a value for which `kept`
// holds: that one is in memory. If `products`, a matrix product counts as a window op.
bool isComputable(mlir::Value value, llvm::function_ref<bool(mlir::Value)> kept = nullptr, bool products = false);

// The gradient of a max pool that a kernel of elements computes by cells, of which a thread takes four channels; null
// for other kernels. And how many cells there are: [along H, along W, channels].
mlir::mt::WindowGradientOpInterface gradientByCells(mlir::plan::KernelOp op);
llvm::SmallVector<int64_t> cellsOf(const mlir::mt::Pooling &pool);

class BlockElements {
public:
  explicit BlockElements(BlockKernel &kernel) : kernel(kernel), emit(kernel.emit) {}

  // Elements of a body value lie at `pointer`, row major.
  void bind(mlir::Value value, mlir::Value pointer) { pointers[value] = pointer; }
  // The row's index in the batch, i64; null outside rows.
  void setRow(mlir::Value globalRow) { row = globalRow; }
  // Binds arguments of a row to where they lie; `local` counts from the device's first row. Addresses of many arguments
  // are found where they are read: in registers they would not fit.
  void bindRow(mlir::Value local);

  // Element `index` (row major, of a row of what is split) of a value; of several with rows of one size.
  mlir::Value at(mlir::Value value, mlir::Value index) { return at(llvm::ArrayRef(value), index)[0]; }
  Emitter::Values at(llvm::ArrayRef<mlir::Value> values, mlir::Value index);
  // Stores the elements from `first` on of these results of one size, at most `together`, at `results`.
  void storeYields(llvm::ArrayRef<mlir::Value> yields, llvm::ArrayRef<mlir::Value> results, mlir::Value first,
                   int64_t together);
  // The same of the cell that has element `number` of [cellsOf]; results have the size of the gradient `op`.
  void storeCell(mlir::mt::WindowGradientOpInterface op, llvm::ArrayRef<mlir::Value> yields,
                 llvm::ArrayRef<mlir::Value> results, mlir::Value number);
  // Whether all that was asked for could be computed; what could not has been reported.
  mlir::LogicalResult status() const { return known; }

protected:
  BlockKernel &kernel;
  Emitter &emit;
  mlir::Value row;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers; // values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;  // values of one element that every thread knows

  // Adjacent elements of values that a thread knows.
  using Spread = llvm::DenseMap<mlir::Value, Emitter::Values>;
  // Adjacent elements that a thread computes, from `first` on: `together` of them, of values of a multiple of so many.
  // What lies in memory is loaded once, at once, behind `before`; what windows give is computed there.
  struct Chunk {
    mlir::Value first;
    int64_t together;
    mlir::Operation *before;
    llvm::DenseMap<mlir::Value, mlir::Value> loaded = llvm::DenseMap<mlir::Value, mlir::Value>();
    Spread elements = Spread(); // of windows, and what was known before
  };
  Chunk chunkAt(mlir::Value first, int64_t together) { return {first, together, emit.integer(0).getDefiningOp()}; }
  // Element `index` of a loop of `count`; in a loop with a period `inner` is its index in it. With a chunk it is the
  // element number `lane` of that.
  struct Position {
    mlir::Value index;
    int64_t count;
    mlir::Value inner = {};
    int64_t period = 0;
    Chunk *chunk = nullptr;
    int64_t lane = 0;
  };
  Emitter::Values at(llvm::ArrayRef<mlir::Value> values, Position position);
  // Elements from `first` on, loaded at once.
  Emitter::Values adjacent(mlir::Value value, mlir::Value first, int64_t together);
  // Stores what is to be stored of each of `together` adjacent elements, all of the first one, then all of the next.
  void storeTogether(llvm::ArrayRef<BlockStore> stores, int64_t together) {
    mtc::storeTogether(emit, stores, together);
  }
  // Element-wise values at one index, each computed once.
  VectorBody bodyAt(Position position) {
    return VectorBody(kernel, /*scalar=*/true,
                      [this, position](mlir::Value value) { return sourceOf(position, value); });
  }
  mlir::Value sourceOf(Position position, mlir::Value value);
  mlir::Value elementOfIota(mlir::mt::IotaOp iota, mlir::Value index);
  // Element `index` of what is no element-wise operation; null for what is not known.
  mlir::Value moved(mlir::Operation *op, mlir::Value index);

  // Reports a value that cannot be computed.
  void unknown(mlir::Value value);

private:
  mlir::LogicalResult known = mlir::success();
  mlir::Value lateRow; // of arguments whose addresses are found late
  // Where an argument lies in a row, or the value; null for what is not in memory.
  mlir::Value addressIn(mlir::BlockArgument argument, mlir::Value base, mlir::Value local);
  mlir::Value memoryOf(mlir::Value root);
  bool isInMemory(mlir::Value root) const {
    return pointers.contains(root) || (lateRow && llvm::isa<mlir::BlockArgument>(root));
  }
  mlir::Value loadedOf(const Position &position, mlir::Value root);
  mlir::Value copied(mlir::mt::MoveOpInterface op, mlir::ValueRange at);
  mlir::Value stacked(llvm::ArrayRef<mlir::mt::Move> boxes, size_t axis, mlir::ValueRange at);
  mlir::Value reduced(mlir::mt::ReduceOp op, mlir::Value index);
  mlir::Value searched(mlir::mt::ArgmaxOp op, mlir::Value index);
  mlir::Value product(mlir::mt::MatmulOp op, mlir::Value index);
  // Of `together` adjacent channels, the first of which these coordinates name.
  Emitter::Values folded(mlir::mt::WindowOpInterface op, mlir::ValueRange at, int64_t together);
  Emitter::Values windowGradient(mlir::mt::WindowGradientOpInterface op, mlir::Value index, mlir::ValueRange at,
                                 int64_t together);
  Emitter::Values adjacent(mlir::Value value, mlir::ValueRange coordinates, int64_t together) {
    return adjacent(value, flatten(emit, coordinates, innerShape(value)), together);
  }
  void storeYields(llvm::ArrayRef<mlir::Value> yields, llvm::ArrayRef<mlir::Value> results, Chunk &chunk);
  mlir::Value inWindow(const Position &position, mlir::Operation *op);
  mlir::Value kernelGradient(mlir::mt::Conv2DKernelGradientOp op, mlir::ValueRange at);
  mlir::Value lookedUp(mlir::mt::LookupOpInterface op, mlir::Value index);
  // The element of `value` at these coordinates.
  mlir::Value atCoordinates(mlir::Value value, mlir::ValueRange coordinates) {
    return at(value, flatten(emit, coordinates, innerShape(value)));
  }
};

} // namespace mtc

#endif
