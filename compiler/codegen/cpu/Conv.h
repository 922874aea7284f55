// SPDX-License-Identifier: Apache-2.0
//
// The writer of a convolution, a kernel of kind conv or a statement of a rows kernel: Conv.cpp walks the blocks,
// ConvPack.cpp packs the matrix, ConvWinograd.cpp has what is different where tiles of positions are computed.
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
  // The kernel of kind conv.
  mlir::LogicalResult run();

  // The same as a statement of a rows kernel: the matrix is packed before the first row. `pointer` says where a value
  // lies, of the row's sample if it is split; `wanted` are the values, of the convolution and of element-wise ops on
  // it, to be stored there.
  using Pointers = std::function<mlir::Value(mlir::Value)>;
  mlir::LogicalResult prepare(Pointers pointer);
  mlir::LogicalResult runSample(Pointers pointer, llvm::ArrayRef<mlir::Value> wanted);

private:
  Kernel &kernel;
  Emitter &emit;
  mlir::Operation *op;
  Product product;
  bool transposed; // the matrix of a tap is the kernel's transposed
  Pointers pointers;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> results; // wanted values, and where
  mlir::Value source, weights, haloBuffer, matrix, sums;          // the last two of a matrix that is packed at once
  mlir::Value chainPanel, elements, elementSums;                  // of Winograd's algorithm: a packed panel; of a block

  // A panel of columns of one group, and its packed matrix.
  struct Columns {
    mlir::Value group, first;
    Panel panel;
    mlir::Value packed, sums;
  };
  // Calls a function for the panels that pass a block.
  using Panels = llvm::function_ref<void(llvm::function_ref<void(const Columns &)>)>;
  // Positions of a residue: rows [row, row + rows), columns [column, column + columns) of a sample.
  struct Positions {
    const Residue &residue;
    int64_t packedRow; // of the residue's first tap
    mlir::Value sample, row, rows;
    BlockColumn column;
    int64_t columns;
  };

  mlir::LogicalResult begin();
  int64_t vectors() const;
  int64_t matrixFloats() const;
  void packAtOnce();
  void forPanelsAtOnce(llvm::function_ref<void(const Columns &)> body);
  int64_t depth() const;
  int64_t packedRows() const;
  void pack(const Columns &columns);
  void packChain(const Columns &columns);
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
    mlir::Value table, first, count; // `first` and `count` in steps
    llvm::ArrayRef<int64_t> taps;
  };
  mlir::Value rowsBelow(const Residue &residue, mlir::Value row, int64_t bound);
  void emitTiles(const Columns &columns, const Positions &at, mlir::Value a, const Steps &steps);
  void emitEpilogue(const Columns &columns, const Positions &at);
  void emitVector(const Columns &columns, mlir::Value line, mlir::Value pixel, int64_t vector);
  mlir::Value loadElements(mlir::Value value, mlir::Value base, mlir::Value pixel, mlir::Value channel,
                           mlir::Value mask);
};

// bf16 or f16, null for f32: Product::element of a source.
mlir::Type extended(mlir::Value source);
// The convolution, or gradient to the images, as products.
Product productOf(mlir::Operation *op);

// The kernel's gradient of one sample, as a statement of a rows kernel.
void emitKernelGradient(Kernel &kernel, mlir::mt::Conv2DKernelGradientOp op, mlir::Value source, mlir::Value gradient,
                        mlir::Value result);

} // namespace mtc

#endif
