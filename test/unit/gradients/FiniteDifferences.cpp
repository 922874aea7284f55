// SPDX-License-Identifier: Apache-2.0
//
// Every registered op with a gradient agrees with central differences, and so does the gradient of this gradient. No
// list of ops: each is built with all operand types, result types (where it does not infer its own) and attributes of a
// pool that its verifier accepts, on values from 0.1 to 0.9 (where every function is defined) and from -2 to 2 (where
// it is finite).
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Gradient.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace mlir;
using mt::EvalContext;
using mt::Tensor;

namespace {

constexpr EvalContext context = {/*rows=*/5, /*firstRow=*/0, /*samples=*/5, /*seed=*/1};

class FiniteDifferences : public testing::Test {
protected:
  FiniteDifferences() : mlir(MLIRContext::Threading::DISABLED), builder(&mlir) {
    mlir.loadDialect<mt::MtDialect>();
    mlir.getDiagEngine().registerHandler([this](Diagnostic &error) {
      errors += error.str();
      return success();
    });
    auto tensor = [&](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
    Type f32 = builder.getF32Type(), i32 = builder.getI32Type(), i1 = builder.getI1Type();
    constexpr int64_t rows = ShapedType::kDynamic;
    types = {tensor({rows, 3}, f32), tensor({3}, f32),          tensor({}, f32),           tensor({rows}, f32),
             tensor({rows, 1}, f32), tensor({2, 3}, f32),       tensor({3, 2}, f32),       tensor({2, 2}, f32),
             tensor({3, 3}, f32),    tensor({rows, 2, 3}, f32), tensor({rows, 3, 2}, f32), tensor({rows, 2}, f32),
             tensor({rows}, i32),    tensor({rows, 3}, i1),     tensor({}, i32),           tensor({rows, 3}, i32)};
    // Images, kernels for all their channels and for groups of one, outputs.
    llvm::append_range(types, ArrayRef<Type>{tensor({rows, 4, 3, 2}, f32), tensor({2, 2, 2, 2}, f32),
                                             tensor({2, 2, 1, 2}, f32), tensor({rows, 3, 2, 2}, f32),
                                             tensor({rows, 2, 2, 2}, f32), tensor({rows, 1, 1, 2}, f32)});
    auto numbers = [&](ArrayRef<int64_t> list) { return builder.getDenseI64ArrayAttr(list); };
    named = {{"window", {Attribute(), numbers({2, 2}), numbers({3, 2}), builder.getI64IntegerAttr(2)}},
             {"strides", {Attribute(), numbers({2, 1}), numbers({3, 2}), numbers({2})}},
             {"padding", {Attribute(), numbers({0, 1, 1, 0})}},
             {"dilation", {Attribute(), numbers({2, 1})}},
             {"groups", {Attribute(), builder.getI64IntegerAttr(2)}},
             {"low", {numbers({1}), numbers({0, 1}), numbers({2, 0, 1})}},
             {"high", {numbers({2}), numbers({1, 0}), numbers({0, 1, 1})}},
             {"interior", {Attribute(), numbers({2}), numbers({1, 2})}},
             {"value", {Attribute(), builder.getF32FloatAttr(0.5)}},
             {"starts", {numbers({0}), numbers({1}), numbers({0, 1}), numbers({1, 0, 1})}},
             {"sizes", {numbers({1}), numbers({2}), numbers({2, 1}), numbers({2, 1, 1})}},
             {"dim", {builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(2)}}};
    named.insert({{"heads", {builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(2)}},
                  {"key_heads", {Attribute(), builder.getI64IntegerAttr(1)}},
                  {"operandSegmentSizes", {builder.getDenseI32ArrayAttr({1, 1, 1, 0, 0, 0})}}});
    // Of any other attribute: each that it may be.
    attributes = {Attribute(),
                  builder.getUnitAttr(),
                  builder.getDenseI64ArrayAttr({0}),
                  builder.getDenseI64ArrayAttr({1}),
                  builder.getDenseI64ArrayAttr({1, 0}),
                  builder.getDenseI64ArrayAttr({0, 2, 1}),
                  builder.getDenseI64ArrayAttr({1, 2}),
                  builder.getF32FloatAttr(0.25f),
                  builder.getStringAttr("stream")};
    for (mt::Reduction kind : {mt::Reduction::sum, mt::Reduction::max, mt::Reduction::min})
      attributes.push_back(mt::ReductionAttr::get(&mlir, kind));
  }

  // An op of these parts in a block whose arguments are its operands, then dL/dresult; null where its verifier objects.
  OwningOpRef<ModuleOp> build(RegisteredOperationName name, const NamedAttrList &choice, ArrayRef<Type> operands,
                              Type result) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
    auto program = mt::ProgramOp::create(builder, builder.getUnknownLoc(), "program");
    module->push_back(program);
    Block &block = program.getBody().emplaceBlock();
    for (Type type : operands)
      block.addArgument(type, builder.getUnknownLoc());
    errors.clear();
    OperationState state(builder.getUnknownLoc(), name);
    state.addOperands(block.getArguments());
    state.addTypes(result);
    state.addAttributes(choice.getAttrs());
    Operation *op = Operation::create(state);
    block.push_back(op);
    // A candidate of the wrong kind was not taken.
    for (NamedAttribute attribute : choice)
      if (op->getAttr(attribute.getName()) != attribute.getValue())
        return {};
    if (operands.empty() || (failed(verify(op)) && !giveInferredType(op)))
      return {};
    block.addArgument(op->getResult(0).getType(), builder.getUnknownLoc());
    return module;
  }

  // True where the op was wrong in nothing but its result's type, which it now has.
  bool giveInferredType(Operation *op) {
    auto inferred = dyn_cast<InferTypeOpInterface>(op);
    SmallVector<Type> types;
    bool typeAlone =
        StringRef(errors).contains("inferred type") || StringRef(errors).contains("requires the same type");
    if (!inferred || !typeAlone ||
        failed(inferred.inferReturnTypes(&mlir, {}, op->getOperands(), op->getAttrDictionary(),
                                         op->getPropertiesStorage(), op->getRegions(), types)))
      return false;
    op->getResult(0).setType(types[0]);
    return succeeded(verify(op));
  }

  // Every choice of attributes that an op takes.
  std::vector<NamedAttrList> attributeChoices(RegisteredOperationName name) {
    std::vector<NamedAttrList> choices(1);
    bool attends = name.getStringRef() == mt::AttentionOp::getOperationName();
    for (StringAttr attribute : name.getAttributeNames()) {
      // What is dropped and how scores are scaled says nothing new.
      if (attends && llvm::is_contained({"stream", "rate", "scale"}, attribute.getValue()))
        continue;
      std::vector<NamedAttrList> longer;
      for (const NamedAttrList &choice : choices)
        for (Attribute candidate : candidatesFor(attribute)) {
          longer.push_back(choice);
          if (!candidate)
            continue;
          longer.back().append(attribute, candidate);
          if (!takes(name, longer.back()))
            longer.pop_back();
        }
      choices = std::move(longer);
    }
    return choices;
  }

  ArrayRef<Attribute> candidatesFor(StringRef attribute) {
    auto found = named.find(attribute);
    return found == named.end() ? ArrayRef<Attribute>(attributes) : ArrayRef<Attribute>(found->second);
  }

  bool takes(RegisteredOperationName name, const NamedAttrList &choice) {
    OperationState state(builder.getUnknownLoc(), name);
    state.addTypes(types[0]);
    state.addAttributes(choice.getAttrs());
    Operation *op = Operation::create(state);
    bool taken = llvm::all_of(
        choice, [&](NamedAttribute attribute) { return op->getAttr(attribute.getName()) == attribute.getValue(); });
    op->destroy();
    return taken;
  }

  void forEachInstance(RegisteredOperationName name, llvm::function_ref<void(Operation *)> use) {
    for (const NamedAttrList &choice : attributeChoices(name)) {
      SmallVector<Type> operands;
      tryOperands(name, choice, operands, use);
    }
  }

  void tryOperands(RegisteredOperationName name, const NamedAttrList &choice, SmallVectorImpl<Type> &operands,
                   llvm::function_ref<void(Operation *)> use) {
    bool infers = name.hasInterface<InferTypeOpInterface>();
    for (Type result : infers ? ArrayRef<Type>(types).take_front() : ArrayRef<Type>(types))
      if (OwningOpRef<ModuleOp> module = build(name, choice, operands, result))
        use(&(*module->getOps<mt::ProgramOp>().begin()).getBody().front().front());
    // Three operands begin with a condition; every other op has one or two, and then some like the second.
    bool condition = !operands.empty() && cast<RankedTensorType>(operands[0]).getElementType().isInteger(1);
    if (operands.size() == (condition ? 3 : 5))
      return;
    if (operands.size() >= 2 && !condition) {
      // Keys and values like the queries.
      bool attends = name.getStringRef() == mt::AttentionOp::getOperationName() && operands[0] == operands[1];
      if (operands[1] != types[1] && !attends)
        return;
      operands.push_back(operands[1]);
      tryOperands(name, choice, operands, use);
      operands.pop_back();
      return;
    }
    for (Type type : types) {
      operands.push_back(type);
      tryOperands(name, choice, operands, use);
      operands.pop_back();
    }
  }

  // Integers are labels of `classes`.
  Tensor random(Type type, double low, double high, int64_t classes) {
    auto tensor = cast<RankedTensorType>(type);
    Tensor value(mt::concreteShape(tensor, context.rows));
    for (double &x : value.data)
      x = isa<FloatType>(tensor.getElementType()) ? std::uniform_real_distribution<double>(low, high)(engine)
                                                  : double(engine() % classes);
    return value;
  }

  std::string errors; // of the op being built
  std::mt19937 engine{1};
  MLIRContext mlir;
  OpBuilder builder;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  std::map<StringRef, SmallVector<Attribute>> named; // by the attribute's name
};

using Values = DenseMap<Value, Tensor>;

// Runs ops on the values of their block's arguments, without the rounding of scalars that steps have.
bool run(ArrayRef<Operation *> ops, Values &values) {
  for (Operation *op : ops) {
    SmallVector<Tensor> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(values.lookup(operand));
    if (failed(cast<mt::InterpretOpInterface>(op).interpret(context, operands, results)))
      return false;
    for (auto [result, tensor] : llvm::zip_equal(op->getResults(), results))
      values[result] = tensor;
  }
  return true;
}
SmallVector<Operation *> opsOf(Block &block) {
  return llvm::map_to_vector(block, [](Operation &op) { return &op; });
}

double dot(const Tensor &a, const Tensor &b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip_equal(a.data, b.data))
    sum += x * y;
  return sum;
}

// L = sum(y * dy) for the op alone.
double lossOf(Operation *op, const Values &values, const Tensor &dy) {
  SmallVector<Tensor> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(values.lookup(operand));
  if (failed(cast<mt::InterpretOpInterface>(op).interpret(context, operands, results)))
    return NAN;
  return dot(results[0], dy);
}

std::string text(Operation *op) {
  std::string printed;
  llvm::raw_string_ostream(printed) << *op;
  return printed;
}

// Near a pole the differences themselves are coarse.
double toleranceAt(double numeric) {
  double size = std::max(1.0, std::fabs(numeric));
  return (size > 1e3 ? 1e-3 : 2e-5) * size;
}

// Compares at one point; false where the op has no value there.
bool compareAt(Operation *op, ArrayRef<Value> gradients, Values values) {
  Block &block = *op->getBlock();
  Value seed = block.getArgument(block.getNumArguments() - 1);
  Tensor dy = values[seed];
  if (!std::isfinite(lossOf(op, values, dy)))
    return false;
  EXPECT_TRUE(run(opsOf(block), values)) << text(op);
  for (auto [i, gradient] : llvm::enumerate(gradients)) {
    Value operand = op->getOperand(i);
    if (!isa<FloatType>(cast<RankedTensorType>(operand.getType()).getElementType())) {
      EXPECT_FALSE(gradient) << "a gradient of integers in " << text(op);
      continue;
    }
    if (gradient)
      EXPECT_EQ(gradient.getType(), operand.getType()) << text(op);
    Tensor analytic = gradient ? values[gradient] : Tensor(values[operand].shape, 0.0);
    for (int64_t element = 0; element < analytic.size(); ++element) {
      auto difference = [&](double h) {
        Values moved = values;
        moved[operand].data[element] += h;
        double above = lossOf(op, moved, dy);
        moved[operand].data[element] -= 2 * h;
        return (above - lossOf(op, moved, dy)) / (2 * h);
      };
      // Richardson's extrapolation: without the term of h^2, which is large near a pole.
      double numeric = (4 * difference(2e-6) - difference(4e-6)) / 3;
      EXPECT_NEAR(analytic.data[element], numeric, toleranceAt(numeric))
          << "operand " << i << " element " << element << " of " << text(op);
    }
  }
  return true;
}

// The gradients of an op, and L2, the sum of all their elements times constant weights, with the gradients of L2.
class SecondGradients {
public:
  SecondGradients(OpBuilder &builder, Operation *op, ArrayRef<Value> gradients) : block(*op->getBlock()) {
    first = opsOf(block);
    points.assign(block.args_begin(), block.args_end());
    DenseSet<Value> active;
    for (Value point : points)
      if (isa<FloatType>(cast<RankedTensorType>(point.getType()).getElementType()))
        active.insert(point);
    mt::addDependents(first, active);
    for (Value gradient : gradients)
      if (gradient && active.contains(gradient) && !second.contains(gradient))
        weights.push_back({gradient, second[gradient] = block.addArgument(gradient.getType(), op->getLoc())});
    EXPECT_TRUE(succeeded(mt::backpropagate(builder, first, active, second))) << text(op);
    for (Operation *each = first.back()->getNextNode(); each; each = each->getNextNode())
      then.push_back(each);
  }

  // Compares at one point; false where L2 has no value there.
  bool compareAt(Values values, llvm::function_ref<Tensor(Type)> random) {
    for (auto [gradient, weight] : weights)
      values[weight] = random(weight.getType());
    if (!std::isfinite(lossOf(values)) || !run(first, values) || !run(then, values))
      return false;
    double terms = 0; // of L2: differences of it are as coarse as the largest of them
    for (auto [gradient, weight] : weights)
      for (auto [x, y] : llvm::zip_equal(values[gradient].data, values[weight].data))
        terms += std::fabs(x * y);
    for (Value point : points) {
      Value gradient = second.lookup(point);
      int64_t step = std::max<int64_t>(1, values[point].size() / 12); // some elements of a large argument
      for (int64_t element = 0; gradient && element < values[point].size(); element += step) {
        auto difference = [&](double h) {
          Values moved = values;
          moved[point].data[element] += h;
          double above = lossOf(moved);
          moved[point].data[element] -= 2 * h;
          return (above - lossOf(moved)) / (2 * h);
        };
        double numeric = (4 * difference(1e-5) - difference(2e-5)) / 3;
        EXPECT_NEAR(values[gradient].data[element], numeric, 5 * toleranceAt(numeric) + 1e-9 * terms)
            << "argument " << cast<BlockArgument>(point).getArgNumber() << " element " << element << " of "
            << text(first[0]);
      }
    }
    return true;
  }

private:
  Block &block;
  SmallVector<Operation *> first, then; // the op and its gradients; the gradients of L2
  SmallVector<Value> points;
  SmallVector<std::pair<Value, Value>> weights;
  DenseMap<Value, Value> second;

  double lossOf(const Values &at) {
    Values values = at;
    if (!run(first, values))
      return NAN;
    double sum = 0;
    for (auto [gradient, weight] : weights)
      sum += dot(values[gradient], values[weight]);
    return sum;
  }
};

TEST_F(FiniteDifferences, AgreeWithEveryGradient) {
  int64_t ops = 0;
  for (RegisteredOperationName name : mlir.getRegisteredOperations()) {
    // The result of mt.argument is its operand. mt.attention_gradient reads what an mt.attention gave, with which the
    // second gradients of that test it.
    if (!name.hasInterface<mt::GradientOpInterface>() ||
        llvm::is_contained({mt::ArgumentOp::getOperationName(), mt::AttentionGradientOp::getOperationName()},
                           name.getStringRef()))
      continue;
    ++ops;
    int64_t points = 0;
    std::set<std::string> seen;
    forEachInstance(name, [&](Operation *op) {
      if (!isa<FloatType>(cast<RankedTensorType>(op->getResult(0).getType()).getElementType()) ||
          !seen.insert(text(op)).second)
        return;
      OpBuilder atEnd = OpBuilder::atBlockEnd(op->getBlock());
      Block &block = *op->getBlock();
      auto first = cast<RankedTensorType>(op->getOperand(0).getType());
      Type element = first.getElementType();
      int64_t classes = element.isInteger(1)    ? 2
                        : element.isInteger(32) ? 4
                        : first.getRank() < 2   ? 1
                                                : first.getShape().back();
      SmallVector<Value> gradients;
      cast<mt::GradientOpInterface>(op).buildGradient(atEnd, {block.getArgument(block.getNumArguments() - 1)},
                                                      gradients);
      ASSERT_EQ(gradients.size(), op->getNumOperands()) << text(op);
      std::vector<Values> places;
      for (auto [low, high] : {std::pair(0.1, 0.9), std::pair(-2.0, 2.0)}) {
        Values &values = places.emplace_back();
        for (Value argument : block.getArguments())
          values[argument] = random(argument.getType(), low, high, classes);
        points += compareAt(op, gradients, values);
      }
      SecondGradients second(atEnd, op, gradients);
      std::mt19937 before = engine;
      auto weights = [&](Type type) { return random(type, -1, 1, 1); };
      if (!second.compareAt(places[1], weights))
        second.compareAt(places[0], weights);
      engine = before;
    });
    EXPECT_GE(points, 4) << "too few instances of " << name.getStringRef().str();
    RecordProperty(name.getStringRef().str().substr(3), std::to_string(points));
  }
  // Element-wise ops alone are more than that: none was overlooked because an interface was not found.
  EXPECT_GE(ops, 35);
}

// Cross-entropies of three classes, in blocks of two and of one. (The targets of a loss by blocks have no gradient.)
TEST_F(FiniteDifferences, AgreeByBlocksOfClasses) {
  for (StringRef op :
       {mt::SparseCategoricalCrossentropyOp::getOperationName(), mt::CategoricalCrossentropyOp::getOperationName()}) {
    int64_t points = 0;
    forEachInstance(*RegisteredOperationName::lookup(op, &mlir), [&](Operation *op) {
      auto logits = cast<RankedTensorType>(op->getOperand(0).getType());
      if (!op->getAttr("from_logits") || !mt::isSplit(logits) || logits.getShape().back() != 3)
        return;
      mt::setBlocks(op, {0, 2});
      Block &block = *op->getBlock();
      OpBuilder atEnd = OpBuilder::atBlockEnd(&block);
      SmallVector<Value> gradients;
      cast<mt::GradientOpInterface>(op).buildGradient(atEnd, {block.getArgument(block.getNumArguments() - 1)},
                                                      gradients);
      ASSERT_EQ(gradients.size(), 2u) << text(op);
      for (auto [low, high] : {std::pair(-0.5, 0.5), std::pair(-2.0, 2.0)}) {
        Values values;
        for (Value argument : block.getArguments())
          values[argument] = random(argument.getType(), low, high, 3);
        points += compareAt(op, ArrayRef(gradients).take_front(), values);
      }
    });
    EXPECT_GE(points, 2) << op.str();
  }
}
} // namespace
