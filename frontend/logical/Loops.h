// SPDX-License-Identifier: Apache-2.0
//
// Loops with a known number of steps, as mt.scan: the ops of one step stand for those of all steps.
#ifndef FRONTEND_LOGICAL_LOOPS_H
#define FRONTEND_LOGICAL_LOOPS_H

#include "frontend/logical/Compute.h"
#include "frontend/logical/Known.h"

#include <map>
#include <memory>

namespace mtc::logical {

// Moves the ops that no step of the loop changes in front of it, where `mayMove` agrees.
void hoistFromLoop(mlir::mt::ScanOp scan, llvm::function_ref<bool(mlir::Operation &)> mayMove);

class Loop;

// Numbers that are known in each step of a loop that is built, but not the same in all: a counter, and what follows
// from it.
struct StepNumbers {
  const Loop *loop;
  std::vector<std::shared_ptr<const Known>> ofStep;
};

// What is known in all steps of a loop: one array, or an array of each step.
struct KnownInSteps {
  std::shared_ptr<const Known> same;
  std::shared_ptr<const StepNumbers> steps;
};

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
  // The same of numbers of the steps, which must be those of this loop.
  Value part(const std::shared_ptr<const StepNumbers> &numbers);
  KnownInSteps known(std::vector<std::shared_ptr<const Known>> ofStep) const;
  // The step's value of several that are made in front of the loop, one for each step.
  Value oneOf(llvm::ArrayRef<Value> steps);
  int64_t countSteps() const { return steps; }
  // Whether a tensor is made in front of the loop. What follows from such tensors within a few ops is moved there.
  bool isOutside(mlir::Value stored, int depth = 0);
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
  // Numbers of the steps that are inputs of the loop, and the parts of a step.
  std::map<const StepNumbers *, std::pair<std::shared_ptr<const StepNumbers>, Value>> parts;
  llvm::SmallVector<mlir::Value> before; // the carries before the first step
  llvm::SmallVector<Shape> shapes;       // of the carries
};

// Makes an op of an importer some operands of which are numbers of the steps. Of what is known, and for slices of what
// no step changes, the results of all steps are made in front of the loop. Elsewhere the numbers become inputs of the
// loop. `make(operands, results)` makes the op of operands without such numbers; false: it is refused.
template <typename Operand, typename Make>
bool makeOfSteps(Ops &ops, Loop &loop, std::vector<Operand> operands, bool isSlice, Make make,
                 std::vector<Operand> &results) {
  auto isKnown = [](const Operand &operand) { return operand.known || operand.steps; };
  auto isInFront = [&](const Operand &operand) {
    return isKnown(operand) || !operand.isThere() || (operand.value && loop.isOutside(operand.value.stored));
  };
  for (const Operand &operand : operands)
    if (operand.steps && operand.steps->loop != &loop)
      throw Refused("numbers of the steps of another loop");
  bool inFront = llvm::all_of(operands, isInFront) && (isSlice || llvm::none_of(operands, [&](const Operand &operand) {
                                                         return operand.isThere() && !isKnown(operand);
                                                       }));
  std::vector<std::vector<Operand>> made;
  bool done = true;
  loop.outside([&] {
    while (done && inFront && std::ssize(made) < loop.countSteps()) {
      std::vector<Operand> here = operands;
      for (Operand &operand : here)
        if (operand.steps) {
          operand.known = operand.steps->ofStep[made.size()];
          operand.steps = nullptr;
        }
      done = make(std::move(here), made.emplace_back());
      inFront = isSlice || llvm::all_of(made.back(), isKnown); // one op in the body is less
    }
  });
  if (done && !inFront) {
    for (Operand &operand : operands)
      if (operand.steps) {
        operand.value = loop.part(operand.steps);
        operand.steps = nullptr;
      }
    return make(std::move(operands), results);
  }
  for (size_t i = 0; done && i < made[0].size(); ++i) {
    Operand result = made[0][i];
    std::vector<std::shared_ptr<const Known>> known;
    llvm::SmallVector<Value> values;
    for (const std::vector<Operand> &each : made) {
      if (!each.at(i).known && !each[i].value)
        throw Refused("a result of a step that is no array");
      if (each[i].known)
        known.push_back(each[i].known);
    }
    KnownInSteps all;
    if (known.size() == made.size()) {
      all = loop.known(std::move(known));
    } else {
      loop.outside([&] {
        for (const std::vector<Operand> &each : made)
          values.push_back(each[i].lift(ops));
      });
      result = result.withValue(loop.oneOf(values));
    }
    result.known = all.same;
    result.steps = all.steps;
    results.push_back(std::move(result));
  }
  return done;
}

} // namespace mtc::logical

#endif
