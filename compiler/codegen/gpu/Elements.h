// SPDX-License-Identifier: Apache-2.0
//
// Elements of body values: loaded if the value is in memory, else computed from elements of its operands at the index
// where they are needed.
#ifndef COMPILER_CODEGEN_GPU_ELEMENTS_H
#define COMPILER_CODEGEN_GPU_ELEMENTS_H

#include "compiler/codegen/gpu/Block.h"

namespace mtc {

// Cost of an operation's element if it is computed where it is needed.
enum class Reach {
  element, // reads one element of each operand
  window,  // reads some elements of an operand: a pool or its gradient
  line,    // reads any number of elements: sums, searches, products
};
Reach reachOf(mlir::Operation *op);

// True if an element of `value` can be computed again wherever it is read: every path from the arguments contains at
// most one op of Reach::window and none of Reach::line. A path begins at an argument, or at a value for which `kept`
// holds, which is in memory. If `products`, a matrix product counts as a window op.
bool isComputable(mlir::Value value, llvm::function_ref<bool(mlir::Value)> kept = nullptr, bool products = false);

// The gradient of a max pool that a kernel computes by cells, four channels of a cell per thread; null for other
// kernels. And the numbers of cells: [along H, along W, channels].
mlir::mt::WindowGradientOpInterface gradientByCells(mlir::plan::KernelOp op);
llvm::SmallVector<int64_t> cellsOf(const mlir::mt::Pooling &pool);

class BlockElements {
public:
  explicit BlockElements(BlockKernel &kernel) : kernel(kernel), emit(kernel.emit) {}

  // Sets the address of the elements of a body value, row major.
  void bind(mlir::Value value, mlir::Value pointer) { pointers[value] = pointer; }
  // Sets the index of the row in the batch, i64; null outside of rows.
  void setRow(mlir::Value globalRow) { row = globalRow; }
  // Binds the arguments to their addresses in row `local`, counted from the device's first row. If there are many
  // arguments, their addresses are computed where they are read, because registers would not hold them.
  void bindRow(mlir::Value local);

  // Element `index` of a value (row major, in a row of a split value), or of several values with rows of the same size.
  mlir::Value at(mlir::Value value, mlir::Value index) { return at(llvm::ArrayRef(value), index)[0]; }
  Emitter::Values at(llvm::ArrayRef<mlir::Value> values, mlir::Value index);
  // Stores up to `vectorWidth` elements, from `first` on, of these results of equal size, at `results`.
  void storeYields(llvm::ArrayRef<mlir::Value> yields, llvm::ArrayRef<mlir::Value> results, mlir::Value first,
                   int64_t vectorWidth);
  // Stores the elements of cell `number` of [cellsOf]. Results have the size of the gradient `op`.
  void storeCell(mlir::mt::WindowGradientOpInterface op, llvm::ArrayRef<mlir::Value> yields,
                 llvm::ArrayRef<mlir::Value> results, mlir::Value number);
  // Fails if an element could not be computed; the error has been emitted.
  mlir::LogicalResult status() const { return known; }

protected:
  BlockKernel &kernel;
  Emitter &emit;
  mlir::Value row;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers; // addresses of values in memory
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;  // values of one element that every thread has

  // Adjacent elements of values in a thread.
  using Spread = llvm::DenseMap<mlir::Value, Emitter::Values>;
  // Adjacent elements that a thread computes: `vectorWidth` elements from `first` on, of values whose size is a
  // multiple of that. Elements in memory are loaded at once, after `before`; results of windows are computed there too.
  struct Chunk {
    mlir::Value first;
    int64_t vectorWidth;
    mlir::Operation *before;
    llvm::DenseMap<mlir::Value, mlir::Value> loaded = llvm::DenseMap<mlir::Value, mlir::Value>();
    Spread elements = Spread(); // results of windows, and elements that were known before
  };
  Chunk chunkAt(mlir::Value first, int64_t vectorWidth) {
    return {first, vectorWidth, emit.integer(0).getDefiningOp()};
  }
  // Element `index` of a loop of `count` iterations. In a loop with a period, `inner` is the index within the period.
  // With a chunk, the element has the number `lane` in it.
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
  Emitter::Values adjacent(mlir::Value value, mlir::Value first, int64_t vectorWidth);
  // Emits the stores of adjacent elements (Block.h).
  void storeAdjacent(llvm::ArrayRef<BlockStore> stores, int64_t vectorWidth) {
    mtc::storeAdjacent(emit, stores, vectorWidth);
  }
  // Element-wise values at one index, each computed once.
  VectorBody bodyAt(Position position) {
    return VectorBody(kernel, /*scalar=*/true,
                      [this, position](mlir::Value value) { return sourceOf(position, value); });
  }
  mlir::Value sourceOf(Position position, mlir::Value value);
  mlir::Value elementOfIota(mlir::mt::IotaOp iota, mlir::Value index);
  // Element `index` of an operation that is not element-wise; null if the operation is unknown.
  mlir::Value moved(mlir::Operation *op, mlir::Value index);

  // Emits an error for a value that cannot be computed.
  void unknown(mlir::Value value);

private:
  mlir::LogicalResult known = mlir::success();
  mlir::Value lateRow; // row of arguments whose addresses are computed where they are read
  // Address of an argument in a row, or of the value; null if it is not in memory.
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
  // Results for `vectorWidth` adjacent channels from these coordinates on.
  Emitter::Values folded(mlir::mt::WindowOpInterface op, mlir::ValueRange at, int64_t vectorWidth);
  Emitter::Values windowGradient(mlir::mt::WindowGradientOpInterface op, mlir::Value index, mlir::ValueRange at,
                                 int64_t vectorWidth);
  Emitter::Values adjacent(mlir::Value value, mlir::ValueRange coordinates, int64_t vectorWidth) {
    return adjacent(value, flatten(emit, coordinates, innerShape(value)), vectorWidth);
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
