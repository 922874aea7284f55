// SPDX-License-Identifier: Apache-2.0
//
// Loops with a known number of steps, as mt.scan: the ops of one step stand for those of all steps.
#ifndef FRONTEND_LOGICAL_LOOPS_H
#define FRONTEND_LOGICAL_LOOPS_H

#include "frontend/logical/Compute.h"

namespace mtc::logical {

// Moves the ops that no step of the loop changes in front of it, where `mayMove` agrees.
void hoistFromLoop(mlir::mt::ScanOp scan, llvm::function_ref<bool(mlir::Operation &)> mayMove);

// Builds an mt.scan. While the loop is open, the builder of `ops` inserts into the body. A loop that is not finished
// leaves nothing behind, so an importer may try a loop and make the ops of each step where the loop is refused.
class Loop {
public:
  Loop(Ops &ops, int64_t steps);
  ~Loop();
  Loop(const Loop &) = delete;
  Loop &operator=(const Loop &) = delete;

  // Whether the step with number i reads or writes element i along an axis, or element `steps - 1 - i`.
  enum class Order { Forward, Backward };

  // A value that goes from step to step, as a step finds it. Numbers of carries count from 0.
  Value carry(const Value &before);
  // The number of the carry that a value is, as a step finds it; none: it is something else.
  std::optional<size_t> numberOf(const Value &value);
  // The part that a step reads of a value whose first axis has an element for each step.
  Value part(const Value &stacked, Order order = Order::Forward);
  // One value of several that are made in front of the loop, one for each step.
  Value oneOf(llvm::ArrayRef<Value> steps);
  // Whether a tensor is made in front of the loop.
  bool isOutside(mlir::Value stored);
  // Calls the function with the builder in front of the loop.
  void outside(llvm::function_ref<void()> make);

  struct Output {
    Value value; // of one step
    Order order = Order::Forward;
  };
  // The carries after the last step, then each output of all steps along a new first axis. `after` has no value where
  // a step leaves the carry as it is and nothing reads it: then there is no result either.
  llvm::SmallVector<Value> finish(llvm::ArrayRef<Value> after, llvm::ArrayRef<Output> outputs);

private:
  struct Input {
    mlir::Value stacked;
    Order order;
  };

  mlir::Block &body() { return scan.getBody().front(); }
  mlir::Value addInput(mlir::Value stacked, Order order);
  mlir::Value yielded(const Value &value, mlir::Type expected);
  mlir::Value inOrder(mlir::Value stacked, Order order, Order ofLoop);
  void checkBody();
  void removeUnused(mlir::Operation *op);

  Ops &ops;
  int64_t steps;
  mlir::OpBuilder::InsertPoint behind; // where the builder was
  mlir::Operation *last;               // the last op in front of the loop when it was opened; null: none
  mlir::mt::ScanOp scan;               // holds the body until the operands of the loop are known
  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<mlir::Value> before; // the carries before the first step
  llvm::SmallVector<Shape> shapes;       // of the carries
};

} // namespace mtc::logical

#endif
