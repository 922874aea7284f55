// SPDX-License-Identifier: Apache-2.0
//
// The kernel gradient of a convolution as a product. ConvWgrad.cpp iterates over bundles, blocks and units, and
// ConvPairs.cpp has what differs for pairs of terms.
#ifndef COMPILER_CODEGEN_CPU_CONVWGRAD_H
#define COMPILER_CODEGEN_CPU_CONVWGRAD_H

#include "compiler/codegen/common/Tree.h"
#include "compiler/codegen/cpu/ConvUnits.h"
#include "compiler/codegen/cpu/Offsets.h"

namespace mtc {

// Units whose sums are in memory at the same time.
constexpr int64_t bundleUnits = 48;

class KernelGradientEmitter {
public:
  // Addresses of the operands and the result, of all samples or of one sample.
  struct Pointers {
    mlir::Value source, gradient, result;
  };
  KernelGradientEmitter(Kernel &kernel, mlir::mt::Conv2DKernelGradientOp op, const Pointers &pointers,
                        Terms terms = Terms::single);
  void run();
  void runSample();

private:
  Kernel &kernel;
  Emitter &emit;
  Product product;
  const Residue &residue;
  mlir::Type element; // of the gradient
  Terms terms;
  bool transposed, direct;
  int64_t height; // rows of the result per group
  std::vector<RowUnit> units;
  mlir::Value extendedGradient; // of a block
  mlir::Value source, gradient, result, haloBuffer, starts, patterns, firsts, tapLines, tapRows, tapEnds, tapColumns;
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes; // the different lists of offsets of units

  struct Part {
    mlir::Value group, column;
    Panel panel;
    mlir::Value from, to; // range of units
    mlir::Value row;      // first row
    mlir::Value sums;
    mlir::Value packed; // the gradient at the positions of a block; null: it is read in place
    mlir::Value start;  // first sample of the shard
    mlir::Value alone;  // whether a sample has no second one, for terms other than single
  };
  bool takesHalves() const;
  void forPanelsOf(mlir::Value column, llvm::function_ref<void(mlir::Value column, Panel panel)> body);
  void forBundles(mlir::Value begin, mlir::Value end, llvm::function_ref<void(const Part &)> body);
  void emitBundle(const Part &part, const Shards &shards);
  void emitSample(const Part &part, mlir::Value sample);
  void emitBlock(const Part &part, mlir::Value sample, mlir::Value row, mlir::Value rows, BlockColumn column,
                 int64_t columns);
  int64_t haloFloats() const;
  int64_t gradientFloats() const { return blockPositions * product.result.channels; }
  void fillPairs(const Part &part, mlir::Value a, mlir::Value channel, mlir::Value row, mlir::Value rows,
                 int64_t column, int64_t columns);
  mlir::Value pairTable(const Part &part, llvm::ArrayRef<int64_t> offsets, int64_t distance);
  void emitPairs(const Part &part, mlir::Value a, mlir::Value b, llvm::ArrayRef<int64_t> offsets, mlir::Value depth,
                 mlir::Value fresh);
  void packPairs(const Part &part, mlir::Value b, mlir::Value depth);
  // Data of a block whose units have one tap each: the rows of positions of one sample, and tables over the columns of
  // the taps.
  struct Inside {
    mlir::Value row, rows, starts, lengths;
  };
  TileOperands insideOf(const Inside &inside, mlir::Value unit, TileOperands operands);
  Inside emitInside(const Part &part, mlir::Value row, mlir::Value rows, BlockColumn column, int64_t columns,
                    TileOperands &operands);
  void emitUnits(const Part &part, mlir::Value a, const TileOperands &common, TileForm form,
                 const Inside *inside = nullptr);
  void store(const Part &part, mlir::Value count);
  void storeTransposed(const Part &part, mlir::Value count);
};

} // namespace mtc

#endif
