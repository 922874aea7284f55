// SPDX-License-Identifier: Apache-2.0
//
// The writer of a kernel of kind conv: Conv.cpp walks the blocks, ConvPack.cpp packs the matrix.
#ifndef COMPILER_CODEGEN_CONV_H
#define COMPILER_CODEGEN_CONV_H

#include "compiler/codegen/Offsets.h"
#include "compiler/codegen/Plane.h"

namespace mtc {

class ConvEmitter {
public:
  ConvEmitter(Kernel &kernel, mlir::Operation *op, Product product, bool turned)
      : kernel(kernel), emit(kernel.emit), op(op), product(std::move(product)), turned(turned) {}
  mlir::LogicalResult run();

private:
  Kernel &kernel;
  Emitter &emit;
  mlir::Operation *op;
  Product product;
  bool turned; // the matrix of a tap is the kernel's transposed
  llvm::SmallVector<mlir::Value> arguments, results;
  mlir::Value source, weights, patch;
  mlir::LogicalResult status = mlir::success();

  // A panel of columns of one group, and its packed matrix.
  struct Columns {
    mlir::Value group, first;
    Panel panel;
    mlir::Value packed, sums;
  };
  // Calls a function for the panels that pass a block.
  using Panels = llvm::function_ref<void(llvm::function_ref<void(const Columns &)>)>;
  // Positions of a plane: rows [row, row + rows), columns [column, column + columns) of a sample.
  struct Positions {
    const Plane &plane;
    int64_t packedRow; // of the plane's first tap
    mlir::Value sample, row, rows;
    BlockColumn column;
    int64_t columns;
  };

  int64_t depth() const;
  int64_t packedRows() const;
  void pack(const Columns &columns);
  void packTurned(const Columns &columns, const Plane &plane, mlir::Value to);
  llvm::SmallVector<int64_t> tapsOf(const Plane &plane, const Panel &panel);
  void emitTile(Panels panels, mlir::Value group, mlir::Value tile);
  void emitBlock(Panels panels, mlir::Value group, const Positions &at);
  mlir::Value positionsOf(mlir::Value group, const Positions &at);
  void emitPanel(const Columns &columns, const Positions &at, mlir::Value a);
  struct Steps {
    mlir::Value table, first, count; // `first` and `count` in steps
    llvm::ArrayRef<int64_t> taps;
  };
  mlir::Value rowsBelow(const Plane &plane, mlir::Value row, int64_t bound);
  void emitTiles(const Columns &columns, const Positions &at, mlir::Value a, const Steps &steps);
  void emitEpilogue(const Columns &columns, const Positions &at);
  void emitVector(const Columns &columns, mlir::Value line, mlir::Value pixel, int64_t vector);
  mlir::Value loadElements(mlir::Value value, mlir::Value base, mlir::Value pixel, mlir::Value channel,
                           mlir::Value mask);
};

} // namespace mtc

#endif
