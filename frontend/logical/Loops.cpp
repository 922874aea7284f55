// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Loops.h"

using namespace mlir;

namespace mtc::logical {
namespace {

// The tensor of a value in the one layout that a loop has: the batch first, then all axes but those of size 1.
mlir::Value tensorOf(Ops &ops, const Value &value) {
  Shape shape = value.shape();
  if (llvm::count_if(shape, [](const Size &size) { return size.batch; }) > 1)
    throw Refused("a loop over values that have the batch as two axes");
  SmallVector<int64_t> sizes;
  for (const Size &size : shape)
    if (size.batch)
      sizes.insert(sizes.begin(), storedSize(size));
    else if (size.times != 1)
      sizes.push_back(size.times);
  return ops.reshapeStored(canonical(ops, value).stored, sizes);
}

// The value whose tensor that is.
Value valueOf(mlir::Value tensor, ArrayRef<Size> shape) {
  Value value{tensor, {}};
  bool split = llvm::any_of(shape, [](const Size &size) { return size.batch; });
  int next = split;
  for (const Size &size : shape)
    value.axes.push_back({Axis{size, size.batch ? 0 : size.times == 1 ? -1 : next++}});
  return value;
}

// Steps of a value that are slices of one tensor, one behind the other.
struct Slices {
  mlir::Value source;
  SmallVector<int64_t> starts, sizes; // of all steps together
  size_t axis = 0;
  Loop::Order order = Loop::Order::Forward;
};

mt::SliceOp sliceOf(mlir::Value stored) {
  if (auto reshape = stored.getDefiningOp<mt::ReshapeOp>())
    stored = reshape.getOperand();
  auto slice = stored.getDefiningOp<mt::SliceOp>();
  return slice && slice.getStrides().empty() ? slice : mt::SliceOp();
}

std::optional<Slices> slicesOf(ArrayRef<Value> values) {
  mt::SliceOp first = sliceOf(values[0].stored), second = sliceOf(values[1].stored);
  if (!first || !second)
    return std::nullopt;
  Slices slices{first.getOperand(), SmallVector<int64_t>(first.getStarts()), SmallVector<int64_t>(first.getSizes())};
  while (slices.axis < slices.starts.size() && second.getStarts()[slices.axis] == slices.starts[slices.axis])
    ++slices.axis;
  if (slices.axis == slices.starts.size())
    return std::nullopt;
  int64_t step = second.getStarts()[slices.axis] - slices.starts[slices.axis], size = slices.sizes[slices.axis];
  if (step != size && step != -size)
    return std::nullopt;
  SmallVector<int64_t> starts = slices.starts;
  for (const Value &value : values) {
    mt::SliceOp slice = sliceOf(value.stored);
    if (!slice || slice.getOperand() != slices.source || slice.getStarts() != ArrayRef(starts) ||
        slice.getSizes() != ArrayRef(slices.sizes))
      return std::nullopt;
    starts[slices.axis] += step;
  }
  if (step < 0) {
    slices.starts[slices.axis] = starts[slices.axis] - step;
    slices.order = Loop::Order::Backward;
  }
  slices.sizes[slices.axis] = multiply(size, std::ssize(values));
  return slices;
}

// All steps of a tensor of this type, along the axis of steps.
mlir::Value stackedSlices(Ops &ops, const Slices &slices, int64_t steps) {
  auto type = cast<RankedTensorType>(slices.source.getType());
  bool split = mt::isSplit(type);
  SmallVector<int64_t> shape(slices.sizes);
  if (split)
    shape.insert(shape.begin(), ShapedType::kDynamic);
  mlir::Value value = slices.source;
  if (type.getShape() != ArrayRef(shape))
    value = mt::SliceOp::create(ops.builder, ops.location, type.clone(shape), value, slices.starts, slices.sizes,
                                ArrayRef<int64_t>());
  size_t axis = slices.axis + split;
  shape[axis] /= steps;
  shape.insert(shape.begin() + static_cast<int64_t>(axis), steps);
  return tensorOf(ops, moveAxis(ops.value(ops.reshapeStored(value, shape)), axis, 0));
}

bool isSplit(mlir::Value value) { return mt::isSplit(cast<RankedTensorType>(value.getType())); }

} // namespace

void hoistFromLoop(mt::ScanOp scan, llvm::function_ref<bool(Operation &)> mayMove) {
  auto isOutside = [&](mlir::Value value) { return !scan.getBody().isAncestor(value.getParentRegion()); };
  for (Operation &op : llvm::make_early_inc_range(scan.getBody().front()))
    if (mayMove(op) && !op.hasAttr("stream") && llvm::all_of(op.getOperands(), isOutside))
      op.moveBefore(scan);
}

Loop::Loop(Ops &ops, int64_t steps) : ops(ops), steps(steps), behind(ops.builder.saveInsertionPoint()) {
  if (steps < 2)
    throw Refused("a loop of fewer than two steps");
  Block::iterator at = behind.getPoint();
  last = at == behind.getBlock()->begin() ? nullptr : &*std::prev(at);
  scan = mt::ScanOp::create(ops.builder, ops.location, TypeRange(), ValueRange(), ValueRange(),
                            ops.builder.getI64IntegerAttr(steps), UnitAttr());
  ops.builder.setInsertionPointToEnd(&scan.getBody().emplaceBlock());
}

Loop::~Loop() {
  if (!scan)
    return;
  ops.builder.restoreInsertionPoint(behind);
  Operation *before = scan->getPrevNode();
  scan.erase();
  removeUnused(before);
}

// Erases the ops that were made in front of the loop, back from `op`, and that nothing uses.
void Loop::removeUnused(Operation *op) {
  while (op && op != last) {
    Operation *next = op->getPrevNode();
    if (op->use_empty() && isPure(op))
      op->erase();
    op = next;
  }
}

void Loop::outside(llvm::function_ref<void()> make) {
  OpBuilder::InsertionGuard guard(ops.builder);
  ops.builder.setInsertionPoint(scan);
  make();
}

bool Loop::isOutside(mlir::Value stored, int depth) {
  if (!scan.getBody().isAncestor(stored.getParentRegion()))
    return true;
  constexpr int maxDepth = 32;
  Operation *op = stored.getDefiningOp();
  if (!op || depth > maxDepth || op->getNumRegions() != 0 || op->hasAttr("stream") || !isPure(op) ||
      !llvm::all_of(op->getOperands(), [&](mlir::Value operand) { return isOutside(operand, depth + 1); }))
    return false;
  op->moveBefore(scan);
  return true;
}

Value Loop::carry(const Value &value) {
  mlir::Value tensor;
  outside([&] { tensor = tensorOf(ops, value); });
  before.push_back(tensor);
  shapes.push_back(value.shape());
  return valueOf(body().addArgument(tensor.getType(), ops.location), shapes.back());
}

std::optional<size_t> Loop::numberOf(const Value &value) {
  auto argument = dyn_cast<BlockArgument>(value.stored);
  if (!argument || argument.getOwner()->getParentOp() != scan.getOperation() || argument.getArgNumber() < inputs.size())
    return std::nullopt;
  size_t number = argument.getArgNumber() - inputs.size();
  Value whole = valueOf(value.stored, shapes[number]);
  auto isSame = [](const Axis &a, const Axis &b) { return a.size == b.size && a.place == b.place; };
  return value.shape() == shapes[number] && llvm::equal(value.flat(), whole.flat(), isSame) ? std::optional(number)
                                                                                            : std::nullopt;
}

mlir::Value Loop::addInput(mlir::Value stacked, Order order) {
  inputs.push_back({stacked, order});
  return body().insertArgument(static_cast<unsigned>(inputs.size() - 1),
                               mt::ScanOp::partOf(cast<RankedTensorType>(stacked.getType())), ops.location);
}

Value Loop::part(const Value &stacked, Order order) {
  Shape shape = stacked.shape();
  if (shape.empty() || shape[0] != Size(steps))
    throw Refused("expected " + std::to_string(steps) + " steps along the first axis, found " + describe(shape));
  mlir::Value tensor;
  outside([&] { tensor = tensorOf(ops, stacked); });
  return valueOf(addInput(tensor, order), ArrayRef(shape).drop_front());
}

static bool isSame(const Known &a, const Known &b) {
  return a.type == b.type && a.shape == b.shape && a.numbers == b.numbers && a.timesBatch == b.timesBatch &&
         a.width == b.width;
}

KnownInSteps Loop::known(std::vector<std::shared_ptr<const Known>> ofStep) const {
  if (llvm::all_of(ofStep, [&](const auto &known) { return isSame(*known, *ofStep[0]); }))
    return {ofStep[0], nullptr};
  return {nullptr, std::make_shared<const StepNumbers>(StepNumbers{this, std::move(ofStep)})};
}

Value Loop::part(const std::shared_ptr<const StepNumbers> &numbers) {
  if (numbers->loop != this)
    throw Refused("numbers of the steps of another loop");
  auto &[kept, value] = parts[numbers.get()];
  if (value)
    return value;
  const Known &first = *numbers->ofStep[0];
  Indices shape(first.shape);
  shape.insert(shape.begin(), steps);
  Known all = Known::zeros(shape, first.type);
  all.width = first.width;
  all.numbers.clear();
  for (const auto &known : numbers->ofStep) {
    if (known->hasBatch() || known->type != first.type || known->shape != first.shape)
      throw Refused("numbers of steps that have several shapes, or the number of samples");
    llvm::append_range(all.numbers, known->numbers);
  }
  Value stacked;
  outside([&] { stacked = all.lift(ops); });
  kept = numbers;
  return value = part(stacked);
}

Value Loop::oneOf(ArrayRef<Value> values) {
  checkCount(values.size(), static_cast<size_t>(steps));
  auto isLikeFirst = [&](const Value &value) {
    return value.stored.getType() == values[0].stored.getType() &&
           llvm::equal(value.flat(), values[0].flat(), [](const Axis &a, const Axis &b) { return a.place == b.place; });
  };
  std::optional<Slices> slices = llvm::all_of(values, isLikeFirst) ? slicesOf(values) : std::nullopt;
  if (!slices) {
    Value stacked;
    outside([&] {
      SmallVector<Value> lines;
      for (const Value &value : values)
        lines.push_back(expandDims(value, {0}));
      stacked = concat(ops, lines, 0);
    });
    return part(stacked);
  }
  mlir::Value tensor;
  outside([&] { tensor = stackedSlices(ops, *slices, steps); });
  Value value = values[0];
  value.stored = ops.reshapeStored(addInput(tensor, slices->order), value.type().getShape());
  return value;
}

mlir::Value Loop::inOrder(mlir::Value stacked, Order order, Order ofLoop) {
  if (order == ofLoop)
    return stacked;
  return whole(ops, reverse(ops, ops.value(stacked), {isSplit(stacked)}));
}

// What mt.scan should not have in a step: images, which have an order in memory of their own, and sums over the
// samples, which are looked for among the ops outside of loops.
void Loop::checkBody() {
  llvm::DenseSet<mlir::Value> changing(body().args_begin(), body().args_end());
  for (Operation &op : body()) {
    SmallVector<mlir::Value> operands(op.getOperands());
    op.walk([&](Operation *inner) { llvm::append_range(operands, inner->getOperands()); });
    if (llvm::none_of(operands, [&](mlir::Value operand) { return changing.contains(operand); }))
      continue;
    changing.insert(op.result_begin(), op.result_end());
    if (isa<mt::WindowOpInterface, mt::WindowGradientOpInterface, mt::ConvolutionOpInterface>(op))
      throw Refused("images in the steps of a loop");
    if (op.getNumResults() != 0 && llvm::any_of(op.getOperands(), isSplit) && llvm::none_of(op.getResults(), isSplit))
      throw Refused("a sum over the samples in the steps of a loop");
  }
}

SmallVector<Value> Loop::finish(ArrayRef<Value> after, ArrayRef<Output> outputs) {
  checkCount(after.size(), before.size());
  SmallVector<mlir::Value> yielded, carries;
  SmallVector<Shape> results;
  for (size_t i = after.size(); i-- > 0;)
    if (!after[i]) {
      auto number = static_cast<unsigned>(inputs.size() + i);
      if (!body().getArgument(number).use_empty())
        throw Refused("a step that reads what the loop writes");
      body().eraseArgument(number);
    }
  for (auto [value, start, shape] : llvm::zip_equal(after, before, shapes)) {
    if (!value)
      continue;
    yielded.push_back(tensorOf(ops, value));
    if (yielded.back().getType() != start.getType() || value.shape() != shape)
      throw Refused("a step that changes the shape of a value from " + describe(shape) + " to " +
                    describe(value.shape()));
    carries.push_back(start);
    results.push_back(shape);
  }
  auto isBackward = [](const auto &stacked) { return stacked.order == Order::Backward; };
  Order order =
      llvm::any_of(inputs, isBackward) || llvm::any_of(outputs, isBackward) ? Order::Backward : Order::Forward;
  for (const Output &output : outputs) {
    yielded.push_back(tensorOf(ops, output.value));
    results.push_back(output.value.shape());
    results.back().insert(results.back().begin(), Size(steps));
  }
  if (yielded.empty())
    throw Refused("a loop that computes nothing");
  checkBody();
  mt::YieldOp::create(ops.builder, ops.location, yielded);
  ops.builder.setInsertionPoint(scan);
  SmallVector<mlir::Value> operands;
  for (const Input &input : inputs)
    operands.push_back(inOrder(input.stacked, input.order, order));
  auto made =
      mt::ScanOp::create(ops.builder, ops.location, mt::ScanOp::resultTypes(body(), carries.size(), steps), operands,
                         carries, operands.empty() ? ops.builder.getI64IntegerAttr(steps) : IntegerAttr(),
                         order == Order::Backward ? ops.builder.getUnitAttr() : UnitAttr());
  made.getBody().takeBody(scan.getBody());
  scan.erase();
  scan = {};
  ops.builder.restoreInsertionPoint(behind);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(made.getBody().front())))
    if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  hoistFromLoop(made, [](Operation &op) { return isPure(&op) && op.getNumRegions() == 0; });
  removeUnused(made->getPrevNode());
  SmallVector<Value> values;
  for (auto [index, result, shape] : llvm::enumerate(made.getResults(), results)) {
    mlir::Value tensor = result;
    if (index >= carries.size())
      tensor = inOrder(tensor, outputs[index - carries.size()].order, order);
    values.push_back(valueOf(tensor, shape));
  }
  return values;
}

} // namespace mtc::logical
