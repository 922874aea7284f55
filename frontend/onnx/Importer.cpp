// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/Importer.h"

#include "dialects/mt/Compilation.h"
#include "frontend/onnx/ForBatches.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;

namespace mtc::onnx {

std::string layerOf(const Node &node) {
  llvm::StringRef name = node.name;
  name.consume_front("/");
  auto [path, last] = name.rsplit('/');
  if (!last.empty() && (last == node.op || last.starts_with(node.op + "_")))
    name = path;
  return name.empty() ? node.op : name.str();
}

Location Importer::locationOf(const Node &node) const { return NameLoc::get(builder.getStringAttr(layerOf(node))); }

std::string described(const Node &node) {
  const auto *made = llvm::find_if(llvm::ArrayRef(node.outputs), [](const std::string &name) { return !name.empty(); });
  return "op " + (node.domain.empty() ? "" : node.domain + ".") + node.op +
         (!node.name.empty()                               ? " '" + node.name + "'"
          : made == std::end(llvm::ArrayRef(node.outputs)) ? ""
                                                           : " that makes '" + *made + "'");
}

// The type of a node's results in the file, where it is that of an operand.
static ElementType typeOf(const Call &call) {
  static constexpr llvm::StringLiteral others[] = {
      "Shape",          "Size",  "ArgMax",     "ArgMin",         "HannWindow",     "HammingWindow",
      "BlackmanWindow", "Cast",  "CastLike",   "Equal",          "Less",           "LessOrEqual",
      "Greater",        "Not",   "IsNaN",      "IsInf",          "GreaterOrEqual", "Constant",
      "EyeLike",        "Range", "SequenceAt", "ConstantOfShape"};
  if (llvm::is_contained(others, call.node.op))
    return ElementType::None;
  size_t index = call.node.op == "Where" ? 1 : call.node.op == "OneHot" ? 2 : 0;
  return call.has(index) ? call.inputs[index].type : ElementType::None;
}

// Whether a result is of floats, of integers or of booleans as the type is. Results of TopK have types of their own.
static bool agrees(const Operand &result, ElementType type, Builder &builder) {
  if (type == ElementType::None || (!result.known && !result.value))
    return true;
  Known::Type kind = knownTypeOf(type);
  return result.known ? result.known->type == kind : result.value.element() == logical::elementOf(builder, kind);
}

// What a node computes with integers of few bits wraps around.
static void wrapAround(Call &call) {
  static constexpr llvm::StringLiteral computing[] = {"Add",
                                                      "Sub",
                                                      "Mul",
                                                      "Div",
                                                      "Pow",
                                                      "Mod",
                                                      "Sum",
                                                      "Mean",
                                                      "Neg",
                                                      "Abs",
                                                      "ReduceSum",
                                                      "ReduceL1",
                                                      "ReduceSumSquare",
                                                      "ReduceMean",
                                                      "CumSum",
                                                      "CumProd",
                                                      "ReduceProd",
                                                      "MatMul",
                                                      "Gemm",
                                                      "Einsum"};
  ElementType type = typeOf(call);
  for (Operand &result : call.results)
    if (result.type == ElementType::None && agrees(result, type, call.ops.builder)) {
      result.type = type;
      if (int bits = fewBits(type); bits && result.value && !result.known && result.value.isInteger() &&
                                    llvm::is_contained(computing, call.node.op))
        result.value = logical::wrapped(call.ops, result.value, bits);
    }
}

// Calls use(node) for a node and the nodes of its graphs.
static void forEachNode(const Node &node, llvm::function_ref<void(const Node &)> use) {
  use(node);
  for (const auto &[name, attribute] : node.attributes)
    if (attribute.graph)
      for (const Node &inner : attribute.graph->nodes)
        forEachNode(inner, use);
}

// The nodes that an output depends on, from the last one to the first: a node may read what stands before it alone.
void Importer::findNeeded() {
  std::set<std::string> wanted;
  for (const Port &output : model.outputs)
    wanted.insert(output.name);
  for (const Node &node : llvm::reverse(model.nodes)) {
    if (llvm::none_of(node.outputs, [&](const std::string &name) { return !name.empty() && wanted.count(name); }))
      continue;
    needed.push_back(&node);
    forEachNode(node, [&](const Node &each) {
      wanted.insert(each.inputs.begin(), each.inputs.end());
      for (const auto &[name, attribute] : each.attributes)
        for (const Port &output : attribute.graph ? ArrayRef(attribute.graph->outputs) : ArrayRef<Port>())
          wanted.insert(output.name); // which may be a value from outside
    });
  }
  std::reverse(needed.begin(), needed.end());
  for (const Node *node : needed)
    forEachNode(*node, [&](const Node &each) {
      for (auto [index, name] : llvm::enumerate(each.inputs))
        uses[name].push_back({&each, index});
    });
}

LogicalResult Importer::checkOps() {
  std::map<std::string, std::vector<const Node *>> unknown;
  for (const Node *node : needed)
    forEachNode(*node, [&](const Node &each) {
      if (!findOp(each) && !isControl(each))
        unknown[(each.domain.empty() ? "" : each.domain + ".") + each.op].push_back(&each);
    });
  if (unknown.empty())
    return success();
  InFlightDiagnostic error = emitError(builder.getUnknownLoc())
                             << "expected ops that are supported, found " << unknown.size() << " that are not";
  for (const auto &[op, nodes] : unknown) {
    constexpr size_t most = 5;
    std::string names;
    for (const Node *node : llvm::ArrayRef(nodes).take_front(most))
      names += (names.empty() ? " " : ", ") +
               (node->name.empty() ? node->outputs.empty() ? "?" : node->outputs[0] : node->name);
    error.attachNote(locationOf(*nodes[0]))
        << "op " << op << ", " << nodes.size() << (nodes.size() == 1 ? " node:" : " nodes:") << names
        << (nodes.size() > most ? ", ..." : "");
  }
  return error;
}

// Whether a node adds samples up, in another way than a mean: what its sum is divided by may be a number of the file.
static bool sumsOverBatch(const Call &call) {
  auto hasBatch = [](const Operand &operand) { return operand.value && logical::batchOf(operand.value.flat()) >= 0; };
  auto isWhole = [](const Operand &operand) { return operand.value && logical::batchOf(operand.value.flat()) < 0; };
  bool isMean = call.node.op == "ReduceMean" || call.node.op == "BatchNormalization";
  return !isMean && llvm::any_of(call.inputs, hasBatch) && llvm::any_of(call.results, isWhole);
}

std::string Importer::build(const Node &node, std::vector<Operand> inputs, std::vector<Operand> &results) {
  logical::Ops ops{builder, locationOf(node), &budget};
  std::string problem;
  if (llvm::any_of(inputs, [](const Operand &input) { return input.steps != nullptr; })) {
    auto make = [&](std::vector<Operand> here, std::vector<Operand> &made) {
      ++bodyNodes;
      problem = build(node, std::move(here), made);
      return problem.empty() && bodyNodes <= maxBodyNodes;
    };
    try {
      if (!built || llvm::any_of(inputs, [](const Operand &input) { return input.sequence || input.forBatches; }))
        throw Refused("a list beside numbers of the steps");
      bool isSlice = node.op == "Gather" || node.op == "Slice";
      if (!logical::makeOfSteps(ops, *built, std::move(inputs), isSlice, make, results) && problem.empty())
        problem = "expected at most 500000 nodes in all steps of loops, found more";
    } catch (const Refused &error) {
      problem = error.what();
    }
    return problem;
  }
  Call call(ops, node, std::move(inputs), scope + layerOf(node) + "/" + (node.outputs.empty() ? "" : node.outputs[0]),
            fixedBatch, model.opset);
  bool isMade = false;
  try {
    findOp(node)(call);
    wrapAround(call);
    isMade = true;
  } catch (const Refused &error) {
    problem = error.what();
  }
  if (std::string unread = call.unread(); isMade && !unread.empty())
    problem = "expected attributes that are known, found " + unread;
  else if (computeForBatches(call, findOp(node), !isMade, (maxKnownElements - knownElements) / 2))
    problem.clear();
  hasSumOverBatch |= problem.empty() && sumsOverBatch(call);
  results = std::move(call.results);
  return problem;
}

// False after an error. What depends on a node that was refused is left out.
LogicalResult Importer::evaluate(const Node &node) {
  std::vector<Operand> inputs;
  bool refused = false;
  for (const std::string &name : node.inputs) {
    auto found = values.find(name);
    if (!name.empty() && found == values.end())
      return emitError(locationOf(node)) << described(node) << ": expected inputs that stand before the node, found '"
                                         << name << "'";
    inputs.push_back(name.empty() ? Operand() : found->second);
    refused |= !name.empty() && !inputs.back().isThere();
  }
  if (isControl(node) && !refused)
    return evaluateControl(node);
  std::vector<Operand> results;
  std::string problem = refused ? "" : build(node, std::move(inputs), results);
  for (const Operand &result : results)
    knownElements += result.known ? result.known->count() : result.forBatches ? result.forBatches->count() : 0;
  if (knownElements > maxKnownElements)
    return emitError(locationOf(node)) << described(node)
                                       << ": expected at most 2^26 elements of constants, found more";
  bool fails = refused || !problem.empty();
  for (auto [index, name] : llvm::enumerate(node.outputs)) {
    if (name.empty())
      continue;
    bool hasResult = !fails && index < results.size();
    if (!fails && !hasResult && (uses.count(name) || llvm::any_of(model.outputs, [&, &name = name](const Port &port) {
                                   return port.name == name;
                                 })))
      problem = "expected outputs that are supported, found number " + std::to_string(index) + " in use";
    if (!values.emplace(name, hasResult ? results[index] : Operand()).second)
      problem = "expected one value of the name '" + name + "', found two";
  }
  if (problem.empty())
    return success();
  return emitError(locationOf(node)) << described(node) << ": " << problem;
}

LogicalResult Importer::makeOutputs(std::vector<training::Output> &outputs) {
  for (const Port &port : model.outputs) {
    auto found = values.find(port.name);
    logical::Ops ops{builder, NameLoc::get(builder.getStringAttr(port.name))};
    if (found == values.end() || port.name.empty())
      return emitError(ops.location) << "expected outputs that a node makes, found '" << port.name << "'";
    try {
      const Operand &operand = found->second;
      if (operand.sequence || !operand.isThere())
        throw Refused("expected a value as output, found a list, or nothing");
      logical::Value value = operand.lift(ops);
      if (!value)
        throw Refused("a value that depends on the place of a sample in the batch");
      if (value.rank() == 0 || !value.size(0).isBatch())
        throw Refused("expected an output whose first axis is the batch, found " + logical::describe(value.shape()));
      outputs.push_back({port.name, logical::whole(ops, value)});
    } catch (const Refused &refused) {
      return emitError(ops.location) << refused.what();
    }
  }
  return success();
}

// What was replaced by what is known, and what computed shapes: it would clutter the text of a model.
static void eraseUnused(Block &block, ArrayRef<training::Output> outputs) {
  llvm::DenseSet<mlir::Value> used;
  for (const training::Output &output : outputs)
    used.insert(output.value);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op) && llvm::none_of(op.getResults(), [&](mlir::Value v) { return used.contains(v); }))
      op.erase();
}

LogicalResult Importer::run(std::vector<training::Output> &outputs, std::vector<NamedTensor> &weights) {
  if (model.outputs.empty())
    return emitError(builder.getUnknownLoc()) << "expected an output, found none";
  findNeeded();
  sayHowExported();
  if (failed(checkOps()) || failed(makeInputs()) || failed(makeInitializers(weights)))
    return failure();
  LogicalResult result = success();
  for (const Node *node : needed)
    if (failed(evaluate(*node)))
      result = failure();
  if (failed(result) || failed(makeOutputs(outputs)))
    return failure();
  if (fixedBatch && hasSumOverBatch)
    builder.getBlock()->getParent()->getParentOfType<ModuleOp>()->setAttr(mt::fixedBatchAttribute,
                                                                          builder.getI64IntegerAttr(fixedBatch));
  eraseUnused(*builder.getInsertionBlock(), outputs);
  return success();
}

} // namespace mtc::onnx
