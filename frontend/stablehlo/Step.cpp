// SPDX-License-Identifier: Apache-2.0
//
// A function that is a whole training step: its state becomes variables, and all that it computes the model's update.
#include "frontend/stablehlo/Importer.h"

#include "dialects/mt/Compilation.h"

using namespace mlir;

namespace mtc::stablehlo {

static constexpr int64_t maxAxes = 8;

// The tensor that the model has for an argument. Null: it has none, and an error is reported.
static RankedTensorType tensorOf(Location location, Type type, bool split) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool good = tensor && tensor.getRank() <= maxAxes && isa<FloatType, IntegerType>(tensor.getElementType());
  if (good && split)
    good = tensor.getRank() > 0 && tensor.getNumDynamicDims() == (tensor.isDynamicDim(0) ? 1 : 0);
  else if (good)
    good = tensor.hasStaticShape();
  if (!good) {
    emitError(location) << (split ? "expected an argument of --split to be a tensor whose first axis is the batch, and "
                                    "whose other axes have sizes, found "
                                  : "expected a state of floats, integers or booleans whose sizes are known, found ")
                        << type;
    return {};
  }
  SmallVector<int64_t> shape(tensor.getShape());
  if (split)
    shape[0] = ShapedType::kDynamic;
  MLIRContext *context = type.getContext();
  return RankedTensorType::get(shape, isa<FloatType>(tensor.getElementType()) ? Type(Float32Type::get(context))
                                                                              : IntegerType::get(context, 32));
}

LogicalResult Importer::makeStepArguments(const StepArguments &given) {
  auto arguments = entry->getRegion(0).front().getArguments();
  if (!given.empty() && given.rbegin()->first >= std::ssize(arguments))
    return entry->emitError("expected arguments 0 to ")
           << std::ssize(arguments) - 1 << " in --state and --split, found " << given.rbegin()->first;
  std::map<std::string, int> times;
  std::set<std::string> names;
  for (BlockArgument argument : arguments)
    ++times[nameOf(argument)];
  for (BlockArgument argument : arguments) {
    auto found = given.find(argument.getArgNumber());
    bool named = found != given.end() && !found->second.name.empty();
    std::string name = named ? found->second.name : nameOf(argument);
    if (!named && times[name] > 1) // TensorFlow gives all of them one name
      name = "arg" + std::to_string(argument.getArgNumber());
    if (!names.insert(name).second)
      return entry->emitError("expected one argument of the name '") << name << "', found two";
    Location location = NameLoc::get(builder.getStringAttr(name));
    if (found == given.end())
      return emitError(location) << "expected argument " << argument.getArgNumber() << ", " << argument.getType()
                                 << ", in --state or --split, found it in neither";
    RankedTensorType type = tensorOf(location, argument.getType(), found->second.split);
    if (!type)
      return failure();
    if (found->second.split)
      stepValues.push_back(mt::InputOp::create(builder, location, type, name, IntegerAttr()));
    else
      stepValues.push_back(mt::VariableOp::create(builder, location, type, name, mt::InitKind::zeros, FloatAttr(),
                                                  /*frozen=*/!type.getElementType().isF32() || !found->second.result));
  }
  return success();
}

// Which axes are the batch, where the file has its size.
LogicalResult Importer::findBatch(const StepArguments &given) {
  Block &body = entry->getRegion(0).front();
  SmallVector<mlir::Value> starts;
  int64_t samples = 0;
  for (BlockArgument argument : body.getArguments()) {
    if (auto found = given.find(argument.getArgNumber()); found == given.end() || !found->second.split)
      continue;
    int64_t size = cast<RankedTensorType>(argument.getType()).getDimSize(0);
    if (!starts.empty() && size != samples)
      return entry->emitError("expected one number of samples in the arguments of --split, found others in argument ")
             << argument.getArgNumber();
    samples = size;
    starts.push_back(argument);
  }
  if (ShapedType::isDynamic(samples))
    return success();
  if (samples < 2)
    return entry->emitError("expected a batch of 2 samples or more, to find it in other shapes, found ") << samples;
  builder.getBlock()->getParent()->getParentOfType<ModuleOp>()->setAttr(mt::fixedBatchAttribute,
                                                                        builder.getI64IntegerAttr(samples));
  if (failed(inlineCalls(entry, functions)))
    return failure();
  batches = BatchAxes(body, starts, samples);
  for (auto [argument, stored] : llvm::zip_equal(body.getArguments(), stepValues))
    for (int64_t axis = 0; axis < cast<RankedTensorType>(argument.getType()).getRank(); ++axis)
      if (batches.has(argument, static_cast<size_t>(axis)) && !given.at(argument.getArgNumber()).split)
        return emitError(stored.getLoc()) << "expected a state without the batch, found it as axis " << axis
                                          << " of argument " << argument.getArgNumber() << ", " << argument.getType();
  return success();
}

// The variable that counts the steps, which every update has.
static void makeIteration(OpBuilder &builder, ArrayRef<mlir::Value> others) {
  std::string name = "step/iteration";
  for (mlir::Value other : others)
    if (auto variable = other.getDefiningOp<mt::VariableOp>(); variable && variable.getName() == name)
      name += "_";
  auto type = RankedTensorType::get({}, builder.getI32Type());
  auto made = mt::VariableOp::create(builder, NameLoc::get(builder.getStringAttr(name)), type, name,
                                     mt::InitKind::zeros, FloatAttr(), /*frozen=*/true);
  made.setRole(mt::VariableRole::iteration);
}

LogicalResult Importer::replace(int64_t number, const StepArgument &argument, const Operand &result) {
  auto variable = stepValues[number].getDefiningOp<mt::VariableOp>();
  logical::Ops ops{builder, variable.getLoc(), &budget};
  try {
    if (!result.isThere())
      throw Refused("expected a value");
    logical::Value value = result.lift(ops);
    if (logical::batchOf(value.flat()) >= 0)
      throw Refused("a state with the batch as an axis, " + logical::describe(value.shape()));
    RankedTensorType type = variable.getType();
    logical::Shape shape(type.getShape().begin(), type.getShape().end());
    if (!(value.shape() == shape))
      throw Refused("expected the shape of the argument, " + logical::describe(shape) + ", found " +
                    logical::describe(value.shape()));
    mlir::Value stored = logical::whole(ops, logical::cast(ops, value, type.getElementType()));
    if (stored != variable.getResult())
      mt::AssignOp::create(builder, variable.getLoc(), variable.getName(), stored, mlir::Value());
  } catch (const Refused &refused) {
    return emitError(variable.getLoc()) << "result " << *argument.result << ", which replaces argument " << number
                                        << ": " << refused.what();
  }
  return success();
}

// "[0]['loss']" of JAX as "loss"; without it "loss" is the only number.
std::string Importer::nameOfResult(int64_t number, bool only) {
  if (auto list = dyn_cast_or_null<ArrayAttr>(entry->getAttr("res_attrs")); list && number < std::ssize(list))
    if (auto attributes = dyn_cast<DictionaryAttr>(list[number]))
      if (auto info = attributes.getAs<StringAttr>("jax.result_info")) {
        std::string name;
        for (char c : info.getValue())
          name += c == '[' || c == '.' ? '/' : c == ']' || c == '\'' || c == '"' ? '\0' : c;
        llvm::erase(name, '\0');
        if (StringRef last = StringRef(name).rsplit('/').second; !last.empty() && !llvm::all_of(last, llvm::isDigit))
          return last.str();
      }
  return only ? "loss" : "result" + std::to_string(number);
}

LogicalResult Importer::report(const std::string &name, const Operand &result, OpBuilder::InsertPoint variables) {
  logical::Ops ops{builder, NameLoc::get(builder.getStringAttr(name)), &budget};
  try {
    if (!result.isThere())
      throw Refused("expected a value");
    logical::Value value = result.lift(ops);
    if (logical::batchOf(value.flat()) >= 0)
      throw Refused("a result with the batch as an axis, " + logical::describe(value.shape()) +
                    "; sums and means over the batch are supported");
    value = logical::cast(ops, value, ops.real());
    mlir::Value stored = logical::whole(ops, value);
    if (value.rank() == 0) {
      mt::ResultOp::create(builder, ops.location, name, stored, ops.count(logical::batchSize()).stored,
                           /*loss=*/name == "loss", mt::Finalizer::mean,
                           StringRef(name).contains("acc") ? mt::Better::higher : mt::Better::lower);
      return success();
    }
    // An array is a variable too, which is read after a step.
    OpBuilder::InsertionGuard guard(builder);
    OpBuilder above(builder.getContext());
    above.restoreInsertionPoint(variables);
    mt::VariableOp::create(above, ops.location, stored.getType(), name, mt::InitKind::zeros, FloatAttr(),
                           /*frozen=*/true);
    mt::AssignOp::create(builder, ops.location, name, stored, mlir::Value());
  } catch (const Refused &refused) {
    return emitError(ops.location) << refused.what();
  }
  return success();
}

LogicalResult Importer::makeStepResults(const StepArguments &given, ArrayRef<Operand> results,
                                        OpBuilder::InsertPoint variables) {
  std::map<int64_t, int64_t> replaced; // by result
  for (const auto &[number, argument] : given) {
    if (!argument.result)
      continue;
    if (*argument.result >= std::ssize(results))
      return entry->emitError("expected results 0 to ")
             << std::ssize(results) - 1 << " in --state, found " << *argument.result;
    if (!replaced.try_emplace(*argument.result, number).second)
      return entry->emitError("expected each result once in --state, found ") << *argument.result << " twice";
  }
  for (auto [result, number] : replaced)
    if (failed(replace(number, given.at(number), results[result])))
      return failure();
  std::set<std::string> names;
  for (const mlir::Value &value : stepValues)
    if (auto variable = value.getDefiningOp<mt::VariableOp>())
      names.insert(variable.getName().str());
  auto numbers = llvm::count_if(entry->getRegion(0).front().back().getOpOperands(), [&](OpOperand &result) {
    auto type = dyn_cast<RankedTensorType>(result.get().getType());
    return !replaced.contains(result.getOperandNumber()) && type && type.getRank() == 0;
  });
  for (int64_t i = 0; i < std::ssize(results); ++i) {
    if (replaced.contains(i))
      continue;
    auto type = dyn_cast<RankedTensorType>(entry->getRegion(0).front().back().getOperand(i).getType());
    std::string name = nameOfResult(i, numbers == 1 && type && type.getRank() == 0);
    if (!names.insert(name).second)
      names.insert(name += "_" + std::to_string(i));
    if (failed(report(name, results[i], variables)))
      return failure();
  }
  return success();
}

LogicalResult Importer::runStep(const StepArguments &given) {
  isStep = true;
  if (failed(findFunctions()) || failed(checkOps()) || failed(makeStepArguments(given)) || failed(findBatch(given)))
    return failure();
  makeIteration(builder, stepValues);
  auto update = mt::UpdateOp::create(builder, builder.getUnknownLoc());
  OpBuilder::InsertPoint variables(update->getBlock(), update->getIterator());
  builder.setInsertionPointToStart(&update.getBody().emplaceBlock());
  std::vector<Operand> arguments, results;
  for (auto [argument, stored] : llvm::zip_equal(entry->getRegion(0).front().getArguments(), stepValues)) {
    logical::Ops ops{builder, stored.getLoc(), &budget};
    logical::Value value = ops.value(stored);
    bool boolean = cast<RankedTensorType>(argument.getType()).getElementType().isInteger(1);
    arguments.push_back({nullptr, boolean ? logical::cast(ops, value, ops.i1()) : value, {}, nullptr});
  }
  if (failed(evaluate(entry, std::move(arguments), results)) || failed(makeStepResults(given, results, variables)))
    return failure();
  return success();
}

} // namespace mtc::stablehlo
