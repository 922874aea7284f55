// SPDX-License-Identifier: Apache-2.0
//
// mt-view-variables: variables are read and assigned in the shape in which the program computes with them. A layer of
// Keras' attention stores its kernel as [width, heads, channels] and multiplies by [width, heads * channels]. Both are
// the same bytes, but a reshape of a variable would be a kernel that copies it, and so would one of its gradient.
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_VIEWVARIABLES
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

mt::ReadOp readAs(OpBuilder &builder, mt::ReadOp read, Type type) {
  builder.setInsertionPoint(read);
  return mt::ReadOp::create(builder, read.getLoc(), type, read.getName());
}

// The value that an assignment computes element by element from variables, gradients and scalars, in the shape of the
// gradients.
class Update {
public:
  explicit Update(mt::AssignOp assign) : assign(assign), type(tensorOf(assign.getValue())) {}

  // Whether each reshape among what the value is computed from has an operand of one shape.
  bool collect() {
    if (assign.getApply() || type.getRank() == 0 || !collect(assign.getValue()))
      return false;
    return static_cast<bool>(view);
  }

  void rewrite(llvm::DenseMap<std::pair<Value, Type>, Value> &made) {
    assign.getValueMutable().assign(viewed(assign.getValue(), made));
  }

private:
  bool collect(Value value) {
    if (!seen.insert(value).second || tensorOf(value).getRank() == 0)
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || tensorOf(value).getShape() != type.getShape())
      return false;
    if (isa<mt::ReadOp>(op))
      return true;
    if (auto reshape = dyn_cast<mt::ReshapeOp>(op)) {
      ArrayRef<int64_t> shape = tensorOf(reshape.getOperand()).getShape();
      if (view && view->getShape() != shape)
        return false;
      view = tensorOf(reshape.getOperand());
      return true;
    }
    return isa<mt::ElementwiseOpInterface>(op) && op->getNumResults() == 1 &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand); });
  }

  // The same elements in the shape of the view.
  Value viewed(Value value, llvm::DenseMap<std::pair<Value, Type>, Value> &made) {
    if (tensorOf(value).getRank() == 0)
      return value;
    RankedTensorType target = view->clone(tensorOf(value).getElementType());
    Value &found = made[{value, target}];
    if (found)
      return found;
    Operation *op = value.getDefiningOp();
    OpBuilder builder(op);
    if (auto read = dyn_cast<mt::ReadOp>(op))
      return found = readAs(builder, read, target);
    if (auto reshape = dyn_cast<mt::ReshapeOp>(op))
      return found = reshape.getOperand();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(viewed(operand, made));
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    clone->getResult(0).setType(target);
    return made[{value, target}] = clone->getResult(0); // `found` may have moved
  }

  mt::AssignOp assign;
  RankedTensorType type;
  std::optional<RankedTensorType> view;
  llvm::DenseSet<Value> seen;
};

// Reads a variable in the shape of each reshape of it.
void viewReads(mt::ProgramOp program) {
  for (auto read : llvm::make_early_inc_range(program.getBody().front().getOps<mt::ReadOp>())) {
    OpBuilder builder(read);
    llvm::DenseMap<Type, Value> made;
    for (Operation *user : llvm::make_early_inc_range(read->getUsers())) {
      auto reshape = dyn_cast<mt::ReshapeOp>(user);
      if (!reshape)
        continue;
      Value &view = made[reshape.getType()];
      if (!view)
        view = readAs(builder, read, reshape.getType());
      reshape.replaceAllUsesWith(view);
      reshape.erase();
    }
  }
}

struct ViewVariables : impl::ViewVariablesBase<ViewVariables> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      viewReads(program);
      llvm::DenseMap<std::pair<Value, Type>, Value> made;
      for (auto assign : program.getBody().front().getOps<mt::AssignOp>())
        if (Update update(assign); update.collect())
          update.rewrite(made);
      eraseUnused(program.getBody().front());
    }
  }
};

} // namespace
} // namespace mtc
