// SPDX-License-Identifier: Apache-2.0
//
// mt-unroll: replaces each mt.scan by the ops of all its steps. Inputs are reshaped to rows that hold all steps one
// after the other, so that a step's input is one slice, and stacked outputs are one concatenation of rows.
#include "compiler/Passes.h"
#include "dialects/mt/Types.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_UNROLL
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// Number of ops that a loop becomes; the steps of nested loops multiply. Saturates.
int64_t countOps(mt::ScanOp scan) {
  int64_t inOneStep = 0, all = 0;
  for (Operation &op : scan.getBody().front().without_terminator())
    if (auto inner = dyn_cast<mt::ScanOp>(op)) {
      if (__builtin_add_overflow(inOneStep, countOps(inner), &inOneStep))
        return INT64_MAX;
    } else {
      ++inOneStep;
    }
  return __builtin_mul_overflow(inOneStep, scan.countSteps(), &all) ? INT64_MAX : all;
}

class Unrolling {
public:
  explicit Unrolling(mt::ScanOp scan) : scan(scan), builder(scan), steps(scan.countSteps()) {}

  void run() {
    size_t inputs = scan.getInputs().size(), carried = scan.getCarries().size();
    SmallVector<Value> carries(scan.getCarries()), rows;
    for (Value input : scan.getInputs())
      rows.push_back(reshape(input, rowType(tensorOf(input))));
    Block &body = scan.getBody().front();
    SmallVector<SmallVector<Value>> outputs(scan.getNumResults() - carried);
    for (SmallVector<Value> &parts : outputs)
      parts.resize(steps);
    for (int64_t i = 0; i < steps; ++i) {
      int64_t step = scan.getReverse() ? steps - 1 - i : i;
      IRMapping values;
      for (auto [argument, row] : llvm::zip(body.getArguments(), rows))
        values.map(argument, part(row, tensorOf(argument), step));
      for (auto [argument, carry] : llvm::zip_equal(body.getArguments().drop_front(inputs), carries))
        values.map(argument, carry);
      for (Operation &op : body.without_terminator())
        renameStreams(builder.clone(op, values), step);
      SmallVector<Value> yielded =
          llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value v) { return values.lookupOrDefault(v); });
      carries.assign(yielded.begin(), yielded.begin() + carried);
      for (auto [parts, value] : llvm::zip_equal(outputs, ArrayRef(yielded).drop_front(carried)))
        parts[step] = reshape(value, rowType(tensorOf(value)));
    }
    for (ArrayRef<Value> parts : outputs)
      carries.push_back(stack(parts, scan.getResultTypes()[carries.size()]));
    scan->replaceAllUsesWith(carries);
    scan.erase();
  }

private:
  mt::ScanOp scan;
  OpBuilder builder;
  const int64_t steps;

  Value reshape(Value value, RankedTensorType type) {
    return value.getType() == type ? value : mt::ReshapeOp::create(builder, scan.getLoc(), type, value).getResult();
  }
  // The type reshaped to one axis, after the batch axis if there is one.
  static RankedTensorType rowType(RankedTensorType type) {
    int64_t size = mt::elementsPerRow(type);
    return mt::isSplit(type) ? type.clone({ShapedType::kDynamic, size}) : type.clone({size});
  }
  Value part(Value row, RankedTensorType type, int64_t step) {
    int64_t size = mt::elementsPerRow(type);
    return reshape(
        mt::SliceOp::create(builder, scan.getLoc(), row, ArrayRef<int64_t>{step * size}, ArrayRef<int64_t>{size}),
        type);
  }
  Value stack(ArrayRef<Value> parts, Type type) {
    int64_t axis = mt::ScanOp::stepAxis(tensorOf(parts[0]));
    Value row = parts.size() == 1 ? parts[0] : mt::ConcatOp::create(builder, scan.getLoc(), parts, axis).getResult();
    return reshape(row, cast<RankedTensorType>(type));
  }
  // Each step draws random numbers from a stream of its own.
  void renameStreams(Operation *copy, int64_t step) {
    copy->walk([&](Operation *op) {
      if (auto stream = op->getAttrOfType<StringAttr>("stream"))
        op->setAttr("stream", builder.getStringAttr(stream.getValue() + "/" + Twine(step)));
    });
  }
};

struct Unroll : impl::UnrollBase<Unroll> {
  using UnrollBase::UnrollBase;

  void runOnOperation() override {
    // An inner loop is unrolled in each copy of the body of the outer loop.
    for (mt::ScanOp scan = first(); scan; scan = first()) {
      if (int64_t ops = countOps(scan); ops > limit) {
        scan.emitOpError("expected at most ") << limit.getValue() << " ops in all steps of a loop, found " << ops
                                              << " in " << scan.countSteps() << " steps";
        return signalPassFailure();
      }
      Unrolling(scan).run();
    }
  }

  mt::ScanOp first() {
    mt::ScanOp result;
    getOperation()->walk<WalkOrder::PreOrder>([&](mt::ScanOp scan) {
      result = scan;
      return WalkResult::interrupt();
    });
    return result;
  }
};

} // namespace
} // namespace mtc
