// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the passes that recognize operations in formulas: they match values, and replace the values that matched.
#ifndef COMPILER_RECOGNIZE_MATCH_H
#define COMPILER_RECOGNIZE_MATCH_H

#include "dialects/mt/MtDialect.h"

#include <optional>

namespace mtc {

// A mask hides a key by a score of at most this number: its e^score is 0 relative to that of any other score.
constexpr double hiddenScore = -1e4;

// The operand of a chain of reshapes, or the value.
mlir::Value withoutReshapes(mlir::Value value);

// The number that all elements of a constant are, through reshapes and broadcasts.
std::optional<double> numberOf(mlir::Value value);

// A value that is reduced over axes.
struct Reduced {
  mlir::Value operand;
  llvm::SmallVector<int64_t> dims;

  bool isOverLastAxis() const;
  // Whether a value has the shape of the operand with the size 1 along the axes, so that it broadcasts to the operand.
  bool broadcasts(mlir::Value value) const;
};
// The reduction that computes a value, through reshapes.
std::optional<Reduced> reducedBy(mlir::Value value, mlir::mt::Reduction kind);
// The mean over axes that a value is: a sum that is divided by the number of the elements, through reshapes.
std::optional<Reduced> meanOf(mlir::Value value);

// Factors of a product, through negations, and through quotients by numbers. `number` is the product of the numbers
// among them.
struct Factors {
  llvm::SmallVector<mlir::Value> values;
  double number = 1;
};
Factors factorsOf(mlir::Value product);

// Make a transpose or a reshape of a value. Where the value is a transpose or a reshape itself, one op does both.
mlir::Value transposed(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value,
                       llvm::ArrayRef<int64_t> permutation);
mlir::Value reshaped(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value,
                     llvm::ArrayRef<int64_t> shape);

// Replaces a result and erases what only the replaced operation read; declarations of the model stay.
void replaceMatched(mlir::Operation *op, mlir::Value replacement);

// Calls `match` for each operation of a kind in models, first to last.
template <typename Op> void forEach(mlir::ModuleOp module, llvm::function_ref<void(Op)> match) {
  llvm::SmallVector<Op> ops;
  module.walk([&](Op op) {
    if (op->template getParentOfType<mlir::mt::ModelOp>())
      ops.push_back(op);
  });
  // A match erases only operations before the operation that it replaces.
  for (Op op : ops)
    match(op);
}

} // namespace mtc

#endif
