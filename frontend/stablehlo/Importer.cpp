// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/Importer.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mtc::stablehlo {

static constexpr int64_t maxDepth = 64, maxKnownElements = int64_t{1} << 26;

static std::string textOf(Operation &op, StringRef name) {
  Attribute attribute = op.getAttr(name);
  if (auto text = dyn_cast_or_null<StringAttr>(attribute))
    return text.getValue().str();
  auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attribute);
  return symbol ? symbol.getValue().str() : "";
}

// A function has one block, which ends with a return.
LogicalResult Importer::findFunctions() {
  for (Operation &op : file.getBody()->getOperations()) {
    if (op.getName().getStringRef() != "func.func")
      return op.emitError("expected functions in the module, found ") << op.getName();
    if (op.getNumRegions() != 1 || !op.getRegion(0).hasOneBlock() || op.getRegion(0).front().empty() ||
        op.getRegion(0).front().back().getName().getStringRef() != "func.return")
      return op.emitError("expected a function of one block that ends with a return");
    functions[textOf(op, "sym_name")] = &op;
    if (textOf(op, "sym_visibility") != "private") {
      if (entry && textOf(op, "sym_name") != "main")
        continue;
      entry = &op;
    }
  }
  return entry ? success() : file.emitError("expected a public function, found none");
}

// The name of the function that an op calls; empty: it is no call. A composite is a call of what it is made of, unless
// it is the name of an op.
static std::string calleeOf(Operation &op) {
  StringRef kind = op.getName().getStringRef();
  if (kind == "func.call")
    return textOf(op, "callee");
  return kind == "stablehlo.composite" && !findOp(textOf(op, "name")) ? textOf(op, "decomposition") : "";
}
static bool isCall(Operation &op) {
  StringRef kind = op.getName().getStringRef();
  return kind == "func.call" || (kind == "stablehlo.composite" && !findOp(textOf(op, "name")));
}

// The op of the table that an op is; null: none.
static const OpEntry *entryOf(Operation &op) {
  StringRef kind = op.getName().getStringRef();
  return findOp(kind == "stablehlo.composite" ? StringRef(textOf(op, "name")) : kind);
}

// Checks the ops of the function that is read and of the functions that it calls.
LogicalResult Importer::checkOps() {
  std::map<std::string, int64_t> unknown;
  std::map<std::string, Location> places;
  std::vector<Operation *> left = {entry};
  std::set<Operation *> seen = {entry};
  while (!left.empty()) {
    Operation *function = left.back();
    left.pop_back();
    SmallVector<Block *> blocks = {&function->getRegion(0).front()};
    while (!blocks.empty()) {
      Block *body = blocks.pop_back_val();
      for (Operation &op : llvm::make_range(body->begin(), std::prev(body->end()))) {
        StringRef kind = op.getName().getStringRef();
        if (kind == "func.return" || kind == "stablehlo.return")
          return op.emitError("expected one return, the last op of its block, found another");
        if (isLoop(op) || isBranch(op)) {
          for (Region &region : op.getRegions()) {
            if (!region.hasOneBlock() || region.front().empty() ||
                region.front().back().getName().getStringRef() != "stablehlo.return")
              return op.emitError("expected regions of one block that ends with a return");
            blocks.push_back(&region.front());
          }
        } else if (isCall(op)) {
          auto found = functions.find(calleeOf(op));
          if (found != functions.end() && seen.insert(found->second).second)
            left.push_back(found->second);
        } else if (!entryOf(op)) {
          ++unknown[kind.str()];
          places.emplace(kind.str(), op.getLoc());
        }
      }
    }
  }
  if (unknown.empty())
    return success();
  InFlightDiagnostic error = file.emitError("expected ops that are supported, found ")
                             << unknown.size() << " that are not";
  for (const auto &[kind, count] : unknown)
    error.attachNote(places.at(kind)) << "op " << kind << ", " << count << (count == 1 ? " time" : " times");
  return error;
}

// "params['conv']['kernel']" is "params/conv/kernel".
static std::string plainName(StringRef name) {
  std::string plain;
  for (char c : name)
    if (c == '[')
      plain += '/';
    else if (c != ']' && c != '\'' && c != '"')
      plain += c;
  return plain;
}

// The name is that of the argument's location, or of the argument of a function that gets it.
std::string Importer::nameOf(BlockArgument argument) const {
  if (auto named = dyn_cast<NameLoc>(argument.getLoc()))
    return plainName(named.getName().getValue());
  for (OpOperand &use : argument.getUses())
    if (auto found = functions.find(textOf(*use.getOwner(), "callee"));
        use.getOwner()->getName().getStringRef() == "func.call" && found != functions.end()) {
      Block &body = found->second->getRegion(0).front();
      if (use.getOperandNumber() < body.getNumArguments())
        if (auto named = dyn_cast<NameLoc>(body.getArgument(use.getOperandNumber()).getLoc()))
          return plainName(named.getName().getValue());
    }
  return "arg" + std::to_string(argument.getArgNumber());
}

LogicalResult Importer::makeArguments(std::vector<Operand> &arguments) {
  std::set<std::string> names;
  for (BlockArgument argument : entry->getRegion(0).front().getArguments()) {
    std::string name = nameOf(argument);
    logical::Ops ops{builder, NameLoc::get(builder.getStringAttr(name))};
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    bool input = type && type.getRank() > 0 && type.isDynamicDim(0);
    constexpr int64_t maxAxes = 8;
    if (!type || type.getRank() > maxAxes || (!input && !type.hasStaticShape()) ||
        (input && type.getNumDynamicDims() != 1))
      return emitError(ops.location) << "expected tensors whose first axis alone is of any size, the batch, found "
                                     << argument.getType();
    if (!names.insert(name).second)
      return emitError(ops.location) << "expected one argument of this name, found two";
    Type element = type.getElementType();
    if (!isa<FloatType>(element) && !(input && isa<IntegerType>(element)))
      return emitError(ops.location) << "expected a variable of floats, or an input whose first axis is the batch, "
                                        "found "
                                     << type;
    bool boolean = element.isInteger(1);
    auto tensor = RankedTensorType::get(type.getShape(), isa<FloatType>(element) ? ops.real() : ops.i32());
    mlir::Value stored;
    if (input)
      stored = mt::InputOp::create(builder, ops.location, tensor, name, IntegerAttr());
    else
      stored = mt::VariableOp::create(builder, ops.location, tensor, name,
                                      tensor.getRank() > 1 ? mt::InitKind::glorot_uniform : mt::InitKind::zeros,
                                      FloatAttr(), false);
    logical::Value value = ops.value(stored);
    arguments.push_back({nullptr, boolean ? logical::cast(ops, value, ops.i1()) : value, {}, nullptr});
  }
  return success();
}

LogicalResult Importer::call(Operation &op, std::vector<Operand> arguments, std::vector<Operand> &results) {
  auto found = functions.find(calleeOf(op));
  if (found == functions.end())
    return op.emitError("expected a function of the file, found '") << calleeOf(op) << "'";
  if (depth >= maxDepth)
    return op.emitError("expected calls of depth 64 at most, found more");
  ++depth;
  LogicalResult result = evaluate(found->second, std::move(arguments), results);
  --depth;
  return result;
}

Location locationOf(Operation &op) {
  std::string layer = op.getName().stripDialect().str();
  if (auto named = op.getLoc()->findInstanceOf<NameLoc>()) {
    StringRef path = named.getName().getValue();
    while (path.starts_with("jit(") && path.contains('/'))
      path = path.split('/').second;
    layer = path.contains('/') ? path.rsplit('/').first.str() : path.str();
  }
  return NameLoc::get(StringAttr::get(op.getContext(), layer));
}

LogicalResult Importer::build(Operation &op, std::vector<Operand> operands, std::vector<Operand> &results) {
  if (followsKnown) {
    if (llvm::all_of(operands, [](const Operand &operand) { return operand.known != nullptr; })) {
      ++evaluated;
      return buildOnce(op, std::move(operands), results);
    }
    results.resize(op.getNumResults());
    constexpr int64_t maxSkipped = int64_t{1} << 24;
    return success(++skipped < maxSkipped);
  }
  bool ofSteps = llvm::any_of(operands, [](const Operand &operand) { return operand.steps != nullptr; });
  return ofSteps ? buildOfSteps(op, std::move(operands), results) : buildOnce(op, std::move(operands), results);
}

LogicalResult Importer::buildOnce(Operation &op, std::vector<Operand> operands, std::vector<Operand> &results) {
  logical::Ops ops{builder, locationOf(op), &budget};
  const OpEntry *known = entryOf(op);
  try {
    if (!known)
      throw Refused("it is not supported");
    if (known->operands != anyNumber && std::ssize(operands) != known->operands)
      throw Refused("expected " + std::to_string(known->operands) + " operands, found " +
                    std::to_string(operands.size()));
    Call call(ops, op, std::move(operands));
    call.isStep = isStep;
    call.batches = batches.any() ? &batches : nullptr;
    known->build(call);
    call.settle();
    results = std::move(call.results);
  } catch (const Refused &refused) {
    return op.emitError() << "op " << op.getName() << ": " << refused.what();
  }
  return success();
}

LogicalResult Importer::evaluateOp(Operation &op, Values &values) {
  std::vector<Operand> operands, results;
  for (mlir::Value operand : op.getOperands())
    operands.push_back(values.lookup(operand));
  LogicalResult evaluatedOp = isLoop(op)     ? loop(op, values, std::move(operands), results)
                              : isBranch(op) ? branch(op, values, operands.empty() ? Operand() : operands[0], results)
                              : isCall(op)   ? call(op, std::move(operands), results)
                                             : build(op, std::move(operands), results);
  if (failed(evaluatedOp))
    return failure();
  if (results.size() != op.getNumResults())
    return op.emitError("expected ") << op.getNumResults() << " results, found " << results.size();
  for (auto [result, operand] : llvm::zip(op.getResults(), results)) {
    knownElements += operand.known ? operand.known->count() : 0;
    values[result] = operand;
  }
  if (knownElements > maxKnownElements)
    return op.emitError("expected at most 2^26 elements of constants, found more");
  return success();
}

LogicalResult Importer::evaluate(Operation *function, std::vector<Operand> arguments, std::vector<Operand> &results) {
  Block &body = function->getRegion(0).front();
  if (arguments.size() != body.getNumArguments())
    return function->emitError("expected ") << body.getNumArguments() << " arguments, found " << arguments.size();
  Values values;
  return evaluateBlock(body, arguments, values, results);
}

LogicalResult Importer::evaluateBlock(Block &body, ArrayRef<Operand> arguments, Values &values,
                                      std::vector<Operand> &results) {
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), arguments))
    values[argument] = operand;
  // A block counts all of its ops, the return too: a loop of nothing else ends as well.
  evaluated += followsKnown ? 1 : std::distance(body.begin(), body.end());
  if (evaluated > maxEvaluated)
    return body.back().emitError("expected at most 500000 ops with all calls and steps of loops, found more");
  // Without the return, which is not registered as a terminator.
  for (Operation &op : llvm::make_range(body.begin(), std::prev(body.end())))
    if (failed(evaluateOp(op, values)))
      return failure();
  for (mlir::Value result : body.back().getOperands())
    results.push_back(values.lookup(result));
  return success();
}

LogicalResult Importer::makeResults(ArrayRef<Operand> results, std::vector<training::Output> &outputs,
                                    std::vector<MeanTerm> &loss) {
  if (results.size() == 1 && !results[0].means.empty()) {
    loss = results[0].means;
    return success();
  }
  for (auto [index, result] : llvm::enumerate(results)) {
    std::string name = results.size() == 1 ? "output" : "output" + std::to_string(index);
    logical::Ops ops{builder, NameLoc::get(builder.getStringAttr(name))};
    try {
      if (!result.value || result.value.rank() == 0 || !result.value.size(0).isBatch())
        throw Refused("expected a result whose first axis is the batch, or one mean over the samples, the loss");
      outputs.push_back({name, logical::whole(ops, result.lift(ops))});
    } catch (const Refused &refused) {
      return emitError(ops.location) << refused.what();
    }
  }
  return success();
}

LogicalResult Importer::run(std::vector<training::Output> &outputs, std::vector<MeanTerm> &loss) {
  std::vector<Operand> arguments, results;
  if (failed(findFunctions()) || failed(checkOps()) || failed(makeArguments(arguments)) ||
      failed(evaluate(entry, std::move(arguments), results)))
    return failure();
  return makeResults(results, outputs, loss);
}

} // namespace mtc::stablehlo
