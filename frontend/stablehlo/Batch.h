// SPDX-License-Identifier: Apache-2.0
//
// Which axes are the batch in a file whose shapes are all numbers, as TensorFlow writes it. It follows from the
// arguments that have a sample for each index of their first axis.
#ifndef FRONTEND_STABLEHLO_BATCH_H
#define FRONTEND_STABLEHLO_BATCH_H

#include "frontend/logical/Values.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mtc::stablehlo {

// Replaces calls by what they call, so that every value belongs to one call. `functions` are the functions by name.
llvm::LogicalResult inlineCalls(mlir::Operation *entry, const std::map<std::string, mlir::Operation *> &functions);

// The values of a function that have the batch.
class BatchAxes {
public:
  // `starts`: the arguments whose first axis has `samples` elements, the batch.
  BatchAxes(mlir::Block &body, llvm::ArrayRef<mlir::Value> starts, int64_t samples);

  bool any() const { return samples > 0; }
  bool has(mlir::Value value, size_t axis) const {
    auto found = axes.find(value);
    return found != axes.end() && found->second.count(axis);
  }
  // The sizes of a value of the file, whose shape has numbers alone.
  logical::Shape shapeOf(mlir::Value value) const;

  BatchAxes() = default;

private:
  struct Node {
    mlir::Value value;
    size_t axis;
  };

  void visit(mlir::Block &block);
  void relate(mlir::Operation &op);
  void connect(mlir::Value a, size_t i, mlir::Value b, size_t j);
  void connectBatches(mlir::Value part, mlir::Value whole, size_t axis);
  void connectAll(mlir::Value a, mlir::Value b);
  void connectBlock(mlir::ValueRange outside, mlir::ValueRange inside);
  void relateElements(mlir::Operation &op);
  void relateBroadcast(mlir::Operation &op);
  void relateProduct(mlir::Operation &op);
  void relateConvolution(mlir::Operation &op);
  void relateReduction(mlir::Operation &op);
  void relateWindows(mlir::Operation &op, mlir::Value operand);
  void relateReducedWindows(mlir::Operation &op);
  void relateScattered(mlir::Operation &op);
  void relateParts(mlir::Operation &op);
  void relateSlices(mlir::Operation &op, llvm::StringRef text, mlir::Value slices, llvm::StringRef offsets,
                    llvm::StringRef gone, llvm::StringRef batching, llvm::StringRef idBatching);
  void relateGather(mlir::Operation &op);
  void relateScatter(mlir::Operation &op);
  void relateRegions(mlir::Operation &op);
  // Through a reshape, from one side to the other.
  void follow(mlir::Value from, size_t axis, mlir::Value to);
  void mark(mlir::Value value, size_t axis);

  int64_t samples = 0;
  llvm::DenseMap<mlir::Value, llvm::SmallDenseSet<size_t, 2>> axes;
  llvm::DenseMap<std::pair<mlir::Value, size_t>, llvm::SmallVector<Node, 4>> edges;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> reshapes; // values of as many elements
  std::vector<Node> left;
};

} // namespace mtc::stablehlo

#endif
