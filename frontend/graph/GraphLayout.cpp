// SPDX-License-Identifier: Apache-2.0
#include "frontend/graph/GraphLayout.h"

#include "frontend/graph/Lower.h"
#include "frontend/logical/Loops.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;

namespace mtc {
namespace lower {

Shape shapeOf(graph::ValueType type) {
  Shape shape;
  for (int64_t size : type.getSizes())
    shape.push_back(size < 0 ? Size(-size, true) : Size(size));
  return shape;
}
Shape Call::shape() const { return shapeOf(type()); }
Size Call::lastSize() const { return shape().back(); }

} // namespace lower

namespace {

using lower::Refused;
using lower::Shape;
using lower::Size;

bool isOfGraph(Operation &op) { return isa_and_present<graph::GraphDialect>(op.getDialect()); }

const lower::Entry *findEntry(Operation &op) {
  static constexpr llvm::ArrayRef<lower::Entry> (*families[])() = {
      lower::elementwiseOps, lower::partOps, lower::productOps, lower::reductionOps, lower::linearOps};
  for (auto family : families)
    for (const lower::Entry &entry : family())
      if (op.getName().getStringRef() == entry.name)
        return &entry;
  return nullptr;
}

// Numbers whose sums and products of a few fit into 64 bits.
void checkNumbers(Operation &op) {
  constexpr int64_t most = int64_t{1} << 31;
  for (NamedAttribute attribute : op.getAttrDictionary())
    if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute.getValue()))
      for (int64_t number : numbers.asArrayRef())
        if (number <= -most || number >= most)
          throw Refused("expected numbers below 2^31, found " + std::to_string(number));
}

// The tensor of a value: the batch first, the rest in logical order, in another shape of as many elements.
mlir::Value tensorOf(logical::Ops &ops, const logical::Value &value, RankedTensorType type) {
  if (value.element() != type.getElementType())
    throw Refused("expected a tensor of the value's element type");
  mlir::Value stored = logical::canonical(ops, value).stored;
  auto from = cast<RankedTensorType>(stored.getType());
  auto count = [](RankedTensorType tensor) {
    int64_t elements = 1;
    for (int64_t size : tensor.getShape())
      elements = logical::multiply(elements, ShapedType::isDynamic(size) ? 1 : size);
    return elements;
  };
  if (mt::isSplit(from) != mt::isSplit(type) || count(from) != count(type))
    throw Refused("expected a tensor of as many elements as " + logical::describe(value.shape()) + " has");
  return ops.reshapeStored(stored, type.getShape());
}

// Replaces the ops of one model.
class Lowering {
public:
  explicit Lowering(mt::ModelOp model) : model(model), builder(model.getContext()) {}

  LogicalResult run() {
    Block &body = model.getBody().front();
    SmallVector<Operation *> ops;
    collect(body, ops);
    for (Operation *op : ops)
      lowerOp(*op);
    if (failed)
      return failure();
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    clean(body);
    return success();
  }

private:
  // In the order of the text. The body of an mt.update and of an mt.scan may read values of graph that are made before.
  void collect(Block &body, SmallVectorImpl<Operation *> &ops) {
    for (Operation &op : body) {
      if (isOfGraph(op))
        ops.push_back(&op);
      else
        given.insert(&op);
      if (isa<mt::UpdateOp, mt::ScanOp>(op))
        collect(op.getRegion(0).front(), ops);
    }
  }

  void lowerOp(Operation &op) {
    if (auto metric = dyn_cast<graph::MetricOp>(op)) {
      builder.setInsertionPoint(&op);
      failed |= mlir::failed(lower::lowerMetric(builder, metric));
      return;
    }
    SmallVector<logical::Value> operands;
    for (mlir::Value operand : op.getOperands()) {
      if (!isa<graph::ValueType>(operand.getType()))
        continue;
      auto found = values.find(operand);
      if (found == values.end()) // of an op that is refused
        return;
      operands.push_back(found->second);
    }
    builder.setInsertionPoint(&op);
    logical::Ops ops{builder, op.getLoc(), &budget};
    try {
      checkNumbers(op);
      if (auto tensor = dyn_cast<graph::TensorOp>(op)) {
        tensor.replaceAllUsesWith(tensorOf(ops, operands[0], tensor.getType()));
        return;
      }
      lower::Call call{ops, op, std::move(operands)};
      logical::Value made = isa<graph::LogicalOp>(op) ? ops.value(op.getOperand(0)) : findEntry(op)->lower(call);
      if (!(made.shape() == call.shape()))
        throw Refused("expected a result of " + logical::describe(made.shape()) + ", found " +
                      logical::describe(call.shape()));
      if (made.element() != call.type().getElement())
        throw Refused("expected a result of the operand's element type");
      values[op.getResult(0)] = made;
    } catch (const Refused &refused) {
      op.emitError() << refused.what();
      failed = true;
    } catch (const lower::Reported &) {
      failed = true;
    }
  }

  // The model's own ops of mt but constants stay, used or not: batch normalization changes its moving averages.
  bool mayGo(Operation &op) const { return isa<mt::ConstantOp>(op) || (isPure(&op) && !given.contains(&op)); }

  void removeDead(Block &body) const {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (mayGo(op) && op.use_empty())
        op.erase();
  }

  struct Equal : llvm::DenseMapInfo<Operation *> {
    static unsigned getHashValue(const Operation *op) {
      return OperationEquivalence::computeHash(const_cast<Operation *>(op), OperationEquivalence::directHashValue,
                                               OperationEquivalence::ignoreHashValue,
                                               OperationEquivalence::IgnoreLocations);
    }
    static bool isEqual(const Operation *a, const Operation *b) {
      if (a == b || a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() || b == getTombstoneKey())
        return a == b;
      return OperationEquivalence::isEquivalentTo(const_cast<Operation *>(a), const_cast<Operation *>(b),
                                                  OperationEquivalence::IgnoreLocations);
    }
  };

  // Ops that compute the same as an op before them.
  void removeEqual(Block &body) const {
    llvm::DenseSet<Operation *, Equal> known;
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (!mayGo(op))
        continue;
      auto [first, isNew] = known.insert(&op);
      if (isNew)
        continue;
      op.replaceAllUsesWith(*first);
      op.erase();
    }
  }

  // The bodies of the ops in the block come first: they read what the block makes.
  void clean(Block &body) const {
    for (Operation &op : body) {
      if (isa<mt::UpdateOp, mt::ScanOp>(op))
        clean(op.getRegion(0).front());
      if (auto scan = dyn_cast<mt::ScanOp>(op))
        logical::hoistFromLoop(scan, [&](Operation &op) { return mayGo(op); });
    }
    removeDead(body);
    removeEqual(body);
  }

  mt::ModelOp model;
  OpBuilder builder;
  llvm::DenseMap<mlir::Value, logical::Value> values;
  llvm::DenseSet<Operation *> given; // the ops of mt in the model's text
  int64_t budget = logical::Ops::maxBudget;
  bool failed = false;
};

LogicalResult checkVersion(ModuleOp module) {
  auto found = module->getAttrOfType<IntegerAttr>("graph.version");
  if (found && found.getType().isInteger(32) && found.getInt() == graph::version)
    return success();
  InFlightDiagnostic error = module.emitError("expected text of graph version ") << graph::version << ", found ";
  if (found)
    error << found;
  else
    error << "none";
  return error << "; it is written and read by one version of MTC";
}

struct GraphLayout : PassWrapper<GraphLayout, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GraphLayout)
  StringRef getArgument() const final { return "graph-layout"; }
  StringRef getDescription() const final { return "Decide how values are stored: ops of graph become ops of mt"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<graph::GraphDialect, mt::MtDialect>();
  }
  void runOnOperation() final {
    if (failed(lowerGraph(getOperation())))
      signalPassFailure();
  }
};

} // namespace

bool hasGraph(ModuleOp module) {
  return module->hasAttr("graph.version") ||
         module.walk([](Operation *op) { return isOfGraph(*op) ? WalkResult::interrupt() : WalkResult::advance(); })
             .wasInterrupted();
}

LogicalResult lowerGraph(ModuleOp module) {
  if (!hasGraph(module))
    return success();
  if (failed(checkVersion(module)))
    return failure();
  bool lowered = true;
  for (auto model : module.getOps<mt::ModelOp>())
    lowered &= succeeded(Lowering(model).run());
  if (!lowered)
    return failure();
  module->removeAttr("graph.version");
  WalkResult left = module.walk([](Operation *op) {
    return isOfGraph(*op) ? op->emitError("expected ops of graph in the body of an mt.model, of its mt.update or of "
                                          "an mt.scan, found one elsewhere")
                          : WalkResult(WalkResult::advance());
  });
  return failure(left.wasInterrupted());
}

void registerGraphLayout() { PassRegistration<GraphLayout>(); }

} // namespace mtc
