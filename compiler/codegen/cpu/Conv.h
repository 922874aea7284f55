// SPDX-License-Identifier: Apache-2.0
//
// Emits a convolution: a kernel of kind conv, or a statement of a rows kernel. Conv.cpp iterates over blocks,
// ConvPack.cpp packs the matrix, and ConvWinograd.cpp has the parts that differ for Winograd's algorithm.
#ifndef COMPILER_CODEGEN_CPU_CONV_H
#define COMPILER_CODEGEN_CPU_CONV_H

#include "compiler/codegen/cpu/ConvProduct.h"
#include "compiler/codegen/cpu/Offsets.h"
#include <functional>

namespace mtc {

class ConvEmitter {
public:
  ConvEmitter(Kernel &kernel, mlir::Operation *op, Product product, bool transposed)
      : kernel(kernel), emit(kernel.emit), op(op), product(std::move(product)), transposed(transposed) {}
  // Emits a kernel of kind conv.
  mlir::LogicalResult run();

  // Emit a statement of a rows kernel; `prepare` packs the matrix before the first row. `pointer` returns the address
  // of a value, for the row's sample if the value is split. `wanted` are the values to store there: results of the
  // convolution, and of element-wise ops on it.
  using Pointers = std::function<mlir::Value(mlir::Value)>;
  mlir::LogicalResult prepare(Pointers pointer);
  mlir::LogicalResult runSample(Pointers pointer, llvm::ArrayRef<mlir::Value> wanted);

private:
  Kernel &kernel;
  Emitter &emit;
  mlir::Operation *op;
  Product product;
  bool transposed; // the matrix of a tap is the transposed kernel
  Pointers pointers;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> results; // values to store, with their addresses
  // `matrix` and `sums` exist only for a matrix that is packed as a whole
  mlir::Value source, weights, haloBuffer, matrix, sums;
  // for Winograd's algorithm: a packed panel; elements and sums of a block
  mlir::Value chainPanel, elements, elementSums;

  // A panel of columns of one group, and its packed matrix.
  struct Columns {
    mlir::Value group, first;
    Panel panel;
    mlir::Value packed, sums;
  };
  // Calls a function for each panel to apply to a block.
  using Panels = llvm::function_ref<void(llvm::function_ref<void(const Columns &)>)>;
  // Positions of a residue: rows [row, row + rows), columns [column, column + columns) of a sample.
  struct Positions {
    const Residue &residue;
    int64_t packedRow; // row of the residue's first tap in the packed matrix
    mlir::Value sample, row, rows;
    BlockColumn column;
    int64_t columns;
  };

  mlir::Value joinedElements(mlir::Value value, mlir::Value buffer);
  mlir::LogicalResult begin();
  int64_t vectors() const;
  bool joinsHalf() const;
  void forPanels(llvm::function_ref<void(mlir::Value first, Panel panel)> body);
  int64_t matrixFloats() const;
  void packAtOnce();
  void forPanelsAtOnce(llvm::function_ref<void(const Columns &)> body);
  int64_t depth() const;
  int64_t packedRows() const;
  void pack(const Columns &columns);
  void packChain(const Columns &columns);
  void packChainOfPairs(const Columns &columns, const Residue &residue, mlir::Value from, mlir::Value to);
  void packElements(const Columns &columns, mlir::Value from);
  int64_t elementFloats() const;
  void emitElements(const Columns &columns, const Positions &at);
  void packTransposed(const Columns &columns, const Residue &residue, mlir::Value to);
  llvm::SmallVector<int64_t> tapsOf(const Residue &residue, const Panel &panel);
  void emitTile(Panels panels, mlir::Value group, mlir::Value tile);
  void emitBlock(Panels panels, mlir::Value group, const Positions &at);
  mlir::Value positionsOf(mlir::Value group, const Positions &at);
  void emitPanel(const Columns &columns, const Positions &at, mlir::Value a);
  struct Steps {
    mlir::Value table, first, count; // `first` and `count` are in steps
    llvm::ArrayRef<int64_t> taps;
  };
  mlir::Value rowsBelow(const Residue &residue, mlir::Value row, int64_t bound);
  void emitTiles(const Columns &columns, const Positions &at, mlir::Value a, const Steps &steps);
  void emitEpilogue(const Columns &columns, const Positions &at);
  void emitVector(const Columns &columns, mlir::Value line, mlir::Value pixel, int64_t vector);
  mlir::Value loadElements(mlir::Value value, mlir::Value base, mlir::Value pixel, mlir::Value channel,
                           mlir::Value mask);
};

// bf16 or f16, or null for f32: Product::element for this source.
mlir::Type extended(mlir::Value source);
// The convolution, or its input gradient, as products.
Product productOf(mlir::Operation *op);

// Emits the kernel gradient of one sample, as a statement of a rows kernel.
void emitKernelGradient(Kernel &kernel, mlir::mt::Conv2DKernelGradientOp op, mlir::Value source, mlir::Value gradient,
                        mlir::Value result);

} // namespace mtc

#endif
