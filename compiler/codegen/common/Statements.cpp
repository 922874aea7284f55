// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/common/Statements.h"
#include "dialects/mt/KernelKinds.h"

using namespace mlir;
using namespace mtc;

Value mtc::resolve(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!op->hasTrait<mt::Repeats>() || innerCount(op->getOperand(0)) != innerCount(value))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static bool isAlias(Operation *op) { return resolve(op->getResult(0)) != op->getResult(0); }

static bool isPointwise(Operation *op) {
  if (op->hasTrait<mt::Repeats>())
    return innerCount(op->getOperand(0)) == 1;
  return isa<mt::ElementwiseOpInterface>(op) || op->hasTrait<mt::Generates>();
}
static bool isFullReduce(Operation *op) { return isa<mt::ReduceOp>(op) && innerCount(op->getResult(0)) == 1; }

int64_t mtc::leadingPeriod(Operation *op) {
  auto reduce = dyn_cast<mt::ReduceOp>(op);
  if (!reduce || isFullReduce(op))
    return 0;
  SmallVector<int64_t> dims(reduce.getDims());
  llvm::sort(dims);
  int64_t first = isSplit(reduce.getOperand());
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim != first + static_cast<int64_t>(i))
      return 0;
  return innerCount(reduce.getResult());
}

// The number of elements of the operand, if the op repeats it as a whole; else 0.
static int64_t repeats(Operation *op) {
  auto broadcast = dyn_cast_or_null<mt::BroadcastOp>(op);
  if (!broadcast)
    return 0;
  int64_t count = innerCount(broadcast.getOperand());
  ArrayRef<int64_t> from = innerShape(broadcast.getOperand()), to = innerShape(broadcast.getResult());
  while (!from.empty() && from.front() == 1)
    from = from.drop_front();
  return count > 1 && to.size() >= from.size() && to.take_back(from.size()) == from ? count : 0;
}

// The value needs no memory if only loops with this period read it: no user has operands or a result of another period.
int64_t mtc::periodOf(Value value) {
  int64_t period = repeats(value.getDefiningOp());
  if (!period)
    return 0;
  SmallVector<Value> values{value};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (user->getNumResults() == 1 && isAlias(user)) {
        values.push_back(user->getResult(0));
        continue;
      }
      bool loops = isPointwise(user) || (isFullReduce(user) && period % lanes == 0) || leadingPeriod(user) == period;
      if (!loops)
        return 0;
      for (Value operand : user->getOperands())
        if (int64_t other = repeats(resolve(operand).getDefiningOp()); other && other != period)
          return 0;
    }
  return period;
}

// The period that a fused operation needs; 0: any period.
static int64_t neededPeriod(Operation *op) {
  if (int64_t period = leadingPeriod(op))
    return period;
  for (Value operand : op->getOperands())
    if (int64_t period = periodOf(resolve(operand)))
      return period;
  return 0;
}

static bool joins(const RowStatement &statement, Operation *op, int64_t count, int64_t period) {
  if (!statement.loop || statement.count != count || (period && statement.period && period != statement.period))
    return false;
  // The sum of all elements reads them in vectors of 16.
  if (std::max(period, statement.period) % lanes == 0)
    return true;
  return !isFullReduce(op) && llvm::none_of(statement.operations, isFullReduce);
}

// Whether the op is an epilogue of a convolution's statement: an element-wise op whose other operands are scalars, or
// have one element per channel.
static bool isEpilogue(const RowStatement &statement, Operation *op) {
  if (statement.loop || !isa<mt::Conv2DOp>(statement.operations.front()) || !isa<mt::ElementwiseOpInterface>(op))
    return false;
  Value image = statement.operations.front()->getResult(0);
  if (innerShape(op->getResult(0)) != innerShape(image))
    return false;
  bool inside = false;
  for (Value operand : op->getOperands()) {
    if (Operation *from = operand.getDefiningOp(); from && llvm::is_contained(statement.operations, from)) {
      inside = true;
      continue;
    }
    for (Operation *from = operand.getDefiningOp(); from && from->hasTrait<mt::Repeats>();
         from = operand.getDefiningOp())
      operand = from->getOperand(0);
    int64_t count = innerCount(operand);
    bool channels = count > 1 && count == innerShape(image).back() && innerShape(operand).back() == count;
    bool known = isa<BlockArgument>(operand) || isa<mt::ConstantOp>(operand.getDefiningOp());
    if (!known || isSplit(operand) || !(count == 1 || channels))
      return false;
  }
  return inside;
}

std::vector<RowStatement> mtc::splitStatements(ArrayRef<Operation *> operations) {
  std::vector<RowStatement> statements;
  // The statement that computes a value, and whether the value is available only after the statement.
  DenseMap<Value, std::pair<size_t, bool>> definedBy;
  for (Operation *op : operations) {
    if (isa<mt::ConstantOp>(op) || isAlias(op))
      continue;
    if (periodOf(op->getResult(0))) {
      if (auto it = definedBy.find(resolve(op->getOperand(0))); it != definedBy.end())
        definedBy[op->getResult(0)] = {it->second.first, true};
      continue;
    }
    if (auto statement =
            llvm::find_if(statements, [&](const RowStatement &statement) { return isEpilogue(statement, op); });
        statement != statements.end()) {
      statement->operations.push_back(op);
      definedBy[op->getResult(0)] = {statement - statements.begin(), true};
      continue;
    }
    bool fused = isPointwise(op) || isFullReduce(op) || leadingPeriod(op);
    int64_t count = innerCount(isa<mt::ReduceOp>(op) ? op->getOperand(0) : op->getResult(0));
    int64_t period = fused ? neededPeriod(op) : 0;
    size_t first = 0;
    for (Value operand : op->getOperands()) {
      auto it = definedBy.find(resolve(operand));
      if (it == definedBy.end())
        continue;
      auto [statement, after] = it->second;
      bool joined = fused && !after && joins(statements[statement], op, count, period);
      first = std::max(first, joined ? statement : statement + 1);
    }
    size_t at = first;
    while (at < statements.size() && !(fused && joins(statements[at], op, count, period)))
      ++at;
    if (at == statements.size())
      statements.push_back({fused, count, 0, {}});
    statements[at].period = std::max(statements[at].period, period);
    statements[at].operations.push_back(op);
    definedBy[op->getResult(0)] = {at, !isPointwise(op)};
  }
  return statements;
}

bool mtc::isReadOutside(const RowStatement &statement, Value value) {
  SmallVector<Value> uses{value};
  for (size_t i = 0; i < uses.size(); ++i)
    for (Operation *user : uses[i].getUsers()) {
      if (user->getNumResults() && resolve(user->getResult(0)) == value)
        uses.push_back(user->getResult(0));
      else if (!llvm::is_contained(statement.operations, user))
        return true;
    }
  return false;
}

// Whether a statement after that of `result` reads an operand that the result may overwrite.
static bool isReadLater(Kernel &kernel, ArrayRef<RowStatement> statements, size_t at, Operation *op, unsigned result) {
  for (BlockArgument argument : kernel.body().getArguments()) {
    if (!mt::mayOverwrite(kernel.kind, kernel.body(), argument.getArgNumber(), result))
      continue;
    FailureOr<SmallVector<Operation *>> readers = mt::elementReaders(argument, op);
    for (const RowStatement &later : statements.drop_front(at + 1))
      if (failed(readers) ||
          llvm::any_of(later.operations, [&](Operation *reader) { return llvm::is_contained(*readers, reader); }))
        return true;
  }
  return false;
}

llvm::DenseMap<Value, int64_t> mtc::directResults(Kernel &kernel, ArrayRef<RowStatement> statements) {
  llvm::DenseMap<Value, int64_t> direct;
  for (auto [at, statement] : llvm::enumerate(statements))
    for (Operation *op : statement.operations)
      for (auto [i, yield] : llvm::enumerate(kernel.yields()))
        if (resolve(yield) == op->getResult(0) && !isReadLater(kernel, statements, at, op, i))
          direct.try_emplace(op->getResult(0), i);
  return direct;
}

SmallVector<Operation *> mtc::operationsOf(Kernel &kernel, bool split) {
  SmallVector<Operation *> operations;
  for (Operation &op : kernel.body().without_terminator())
    if (isSplit(op.getResult(0)) == split)
      operations.push_back(&op);
  return operations;
}

Value mtc::constantPointer(Emitter &emit, mt::ConstantOp constant) {
  auto values = cast<DenseElementsAttr>(constant.getValue());
  if (values.isSplat())
    values = DenseElementsAttr::get(values.getType(),
                                    SmallVector<Attribute>(values.getNumElements(), values.getSplatValue<Attribute>()));
  return emit.global(values);
}

Value mtc::constantScalar(Emitter &emit, mt::ConstantOp constant) {
  auto values = cast<DenseElementsAttr>(constant.getValue());
  return arith::ConstantOp::create(emit, cast<TypedAttr>(*values.getValues<Attribute>().begin()));
}
