// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Kernel.h"
#include "compiler/codegen/common/Rounding.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mtc;

Value Kernel::batchSize() { return arith::SIToFPOp::create(emit, emit.realType(), globalRows()); }

static void expandOperands(Operation *op) {
  Value result = op->getResult(0);
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t count = innerCount(operand.get());
    if (count == 1 || count == innerCount(result))
      continue;
    auto type = tensorOf(result).clone(elementOf(operand.get()));
    operand.set(mt::BroadcastOp::create(builder, op->getLoc(), type, operand.get()));
  }
}

// Permutes the operand so that the reduced axes come last, unless they are the first axes.
static void reduceLastAxes(mt::ReduceOp op) {
  RankedTensorType type = tensorOf(op.getOperand());
  SmallVector<int64_t> order, reduced(op.getDims());
  llvm::sort(reduced);
  if (reduced.empty() || reduced == llvm::to_vector(llvm::seq<int64_t>(isSplit(op.getOperand()),
                                                                       isSplit(op.getOperand()) + reduced.size())))
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(reduced, dim))
      order.push_back(dim);
  int64_t kept = order.size();
  llvm::append_range(order, reduced);
  if (llvm::is_sorted(order))
    return;
  OpBuilder builder(op);
  SmallVector<int64_t> shape;
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  Value moved = mt::TransposeOp::create(builder, op.getLoc(), type.clone(shape), op.getOperand(), order);
  SmallVector<int64_t> last = llvm::to_vector(llvm::seq<int64_t>(kept, type.getRank()));
  Value narrow = mt::ReduceOp::create(builder, op.getLoc(), op.getType(), op.getKind(), moved, last);
  op.replaceAllUsesWith(narrow);
  op.erase();
}

static void normalise(plan::KernelOp op) {
  mt::KernelKind kind = op.getKind();
  if (kind != mt::KernelKind::rows && kind != mt::KernelKind::single)
    return;
  for (Operation &inner : llvm::make_early_inc_range(op.getBody().front().without_terminator())) {
    if (isa<mt::ElementwiseOpInterface>(inner))
      expandOperands(&inner);
    if (auto reduce = dyn_cast<mt::ReduceOp>(inner))
      reduceLastAxes(reduce);
  }
}

NormalModule mtc::normalised(ModuleOp module, llvm::function_ref<LineForm(plan::KernelOp)> formOf) {
  NormalModule normal;
  normal.module = module.clone();
  for (auto op : normal.module->getOps<plan::KernelOp>()) {
    becomeLine(op, normal.forms[op] = formOf(op));
    normalise(op);
  }
  return normal;
}

Value VectorBody::get(Value value) {
  if (Value computed = known.lookup(value))
    return computed;
  Value computed = source(value);
  Operation *op = value.getDefiningOp();
  Emitter &emit = kernel.emit;
  if (!computed && op) {
    if (auto elementwise = dyn_cast<mt::ElementwiseOpInterface>(op)) {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(get(operand));
      // An element-wise op with a result of 16 bits is a cast of f32.
      Type element = elementOf(value);
      computed = Emitter::isHalf(element) ? emitRounded(emit, element, operands.front())
                                          : elementwise.lowerElement(emit, operands);
    } else if (auto constant = dyn_cast<mt::ConstantOp>(op)) {
      auto values = cast<DenseElementsAttr>(constant.getValue());
      if (values.isSplat()) {
        auto splat = cast<TypedAttr>(values.getSplatValue<Attribute>());
        computed = scalar ? Value(arith::ConstantOp::create(emit, splat)) : emit.splatConstant(splat);
      }
    } else if (isa<mt::BatchSizeOp>(op)) {
      computed = kernel.batchSize();
      if (!scalar)
        computed = emit.splat(computed);
    } else if (op->hasTrait<mt::Repeats>()) {
      computed = get(op->getOperand(0));
    }
  }
  known[value] = computed;
  return computed;
}
