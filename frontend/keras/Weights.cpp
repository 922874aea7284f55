// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Weights.h"

#include <cstring>
#include <set>

using namespace mlir;

namespace mtc::keras {
namespace {

std::string textOf(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string optimizerPath(size_t index) { return "optimizer/vars/" + std::to_string(index); }

class Lister {
public:
  Lister(mt::ModelOp model, FileVariables &variables) : model(model), variables(variables) {}

  void listLayers(const Graph &graph) {
    auto number = RankedTensorType::get({}, IntegerType::get(model.getContext(), 32));
    for (const Layer &layer : graph.layers) {
      if (layer.model)
        listLayers(*layer.model);
      Location location = NameLoc::get(StringAttr::get(model.getContext(), layer.name));
      for (const LayerVariable &variable : layer.variables) {
        auto type = variable.value ? cast<RankedTensorType>(variable.value.getType()) : number;
        variables.layers.push_back({location, variable.path, variable.value ? variable.name : "", type});
        if (auto op = variable.value ? variable.value.getDefiningOp<mt::VariableOp>() : mt::VariableOp();
            op && !op.getFrozen())
          trainable.push_back(op);
      }
    }
  }

  // Keras' order: iteration, learning_rate (unless a schedule computes it), averages, then the slots variable by
  // variable (the last slot of RMSprop and of amsgrad: slot by slot), then other scalars of the optimizer.
  void listOptimizer() {
    auto optimizer = *model.getBody().getOps<mt::OptimizerOpInterface>().begin();
    Builder builder(model.getContext());
    prefix = optimizer.getOptimizerName().str() + "/";
    location = optimizer.getLoc();
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    add("iteration", RankedTensorType::get({}, builder.getI32Type()));
    if (!optimizer->getNumOperands())
      add("learning_rate", scalar);
    variables.optimizerScalars = variables.optimizer.size();
    if (std::optional<Attribute> average = optimizer->getInherentAttr("ema_momentum"); average && *average)
      addSlots({"average"});
    SmallVector<llvm::StringRef> names = optimizer.getSlotNames();
    bool bySlot = isa<mt::RmspropOp>(optimizer);
    if (bySlot)
      for (llvm::StringRef name : names)
        addSlots({name});
    else
      addSlots(ArrayRef(names).take_front(2));
    if (!bySlot && names.size() > 2)
      addSlots(ArrayRef(names).drop_front(2));
    for (auto [name, start] : optimizer.getState())
      add(name.str(), scalar);
  }

private:
  void add(const std::string &name, RankedTensorType type) {
    variables.optimizer.push_back({location, optimizerPath(variables.optimizer.size()), prefix + name, type});
  }

  void addSlots(ArrayRef<llvm::StringRef> names) {
    for (mt::VariableOp variable : trainable)
      for (llvm::StringRef name : names) {
        std::string flat = variable.getName().str();
        std::replace(flat.begin(), flat.end(), '/', '_');
        add(flat + "_" + name.str(), cast<RankedTensorType>(variable.getType()));
        variables.optimizer.back().owner = variable.getName().str();
      }
  }

  mt::ModelOp model;
  FileVariables &variables;
  SmallVector<mt::VariableOp> trainable; // in Keras' order
  Location location = model.getLoc();
  std::string prefix;
};

class Matcher {
public:
  Matcher(Archive &archive, std::vector<NamedTensor> &weights) : archive(archive), weights(weights) {
    // Files of older versions have another name for the list of layers.
    constexpr llvm::StringLiteral old = "_layer_checkpoint_dependencies";
    std::map<std::string, NamedTensor> renamed;
    for (auto &[path, tensor] : archive.weights) {
      std::string name = path;
      for (size_t at; (at = name.find(old.data())) != std::string::npos;)
        name.replace(at, old.size(), "layers");
      renamed[name] = std::move(tensor);
    }
    archive.weights = std::move(renamed);
  }

  LogicalResult matchLayers(ArrayRef<FileVariable> variables) {
    LogicalResult result = success();
    for (const FileVariable &variable : variables)
      if (variable.name.empty())
        ignored.insert(variable.path);
      else if (failed(take(variable)))
        result = failure();
    return result;
  }

  LogicalResult matchOptimizer(const FileVariables &variables) {
    ArrayRef<FileVariable> wanted = variables.optimizer;
    size_t count = 0;
    while (archive.weights.count(optimizerPath(count)))
      ++count;
    // An optimizer that has not made a step has no slots yet.
    if (count != 0 && count != variables.optimizerScalars && count != wanted.size())
      return emitError(wanted[0].location) << "expected " << wanted.size() << " variables of the optimizer, found "
                                           << count << ": --optimizer starts with a new one";
    for (const FileVariable &variable : wanted.take_front(count))
      if (variable.name.empty())
        ignored.insert(variable.path);
      else if (failed(take(variable)))
        return failure();
    return success();
  }

  // Checks that all other tensors of the file are ones that the importer ignores.
  LogicalResult finish(Location location, bool optimizer) {
    LogicalResult result = success();
    for (auto next = archive.weights.begin(); next != archive.weights.end();) {
      auto at = next++;
      llvm::StringRef name = at->first;
      if (!optimizer && name.starts_with("optimizer/")) // a replaced optimizer is not read
        archive.weights.erase(at);
      else if (!name.contains("seed_generator/") && !ignored.count(at->first)) // random state belongs to Keras
        result = emitError(location) << "expected only the variables of the model's layers, found " << name
                                     << " in model.weights.h5";
    }
    return result;
  }

private:
  LogicalResult take(const FileVariable &variable) {
    auto found = archive.weights.find(variable.path);
    if (found == archive.weights.end())
      return emitError(variable.location)
             << "expected " << variable.path << " in model.weights.h5 for variable " << variable.name << ", found none";
    NamedTensor &tensor = found->second;
    if (ArrayRef<int64_t>(tensor.shape) != variable.type.getShape())
      return emitError(variable.location)
             << "expected variable " << variable.name << " of shape " << textOf(variable.type.getShape()) << ", found "
             << textOf(tensor.shape) << " in model.weights.h5";
    tensor.name = variable.name;
    if (variable.type.getElementType().isInteger(32) && failed(narrow(variable.location, tensor)))
      return failure();
    if (variable.type.getElementType().isF32() && tensor.dtype != MT_F32)
      return emitError(variable.location)
             << "expected variable " << variable.name << " of floats, found integers in model.weights.h5";
    weights.push_back(std::move(tensor));
    archive.weights.erase(found);
    return success();
  }

  // Integers are stored as i64.
  static LogicalResult narrow(Location location, NamedTensor &tensor) {
    if (tensor.dtype != MT_I64)
      return emitError(location) << "expected variable " << tensor.name
                                 << " of integers, found floats in model.weights.h5";
    std::vector<uint8_t> bytes(tensor.bytes.size() / 2);
    for (size_t i = 0; i < bytes.size() / sizeof(int32_t); ++i) {
      int64_t wide;
      std::memcpy(&wide, &tensor.bytes[i * sizeof(int64_t)], sizeof wide);
      auto value = static_cast<int32_t>(wide);
      if (value != wide)
        return emitError(location) << "expected variable " << tensor.name << " of 32-bit integers, found " << wide;
      std::memcpy(&bytes[i * sizeof(int32_t)], &value, sizeof value);
    }
    tensor.bytes = std::move(bytes);
    tensor.dtype = MT_I32;
    return success();
  }

  Archive &archive;
  std::vector<NamedTensor> &weights;
  std::set<std::string> ignored;
};

} // namespace

void FileVariables::dropSlots(const std::vector<std::string> &frozen) {
  for (FileVariable &slot : optimizer)
    if (!slot.owner.empty() && llvm::is_contained(frozen, slot.owner))
      slot.name.clear();
}

FileVariables listVariables(const Graph &graph, mt::ModelOp model) {
  FileVariables variables = {};
  Lister lister(model, variables);
  lister.listLayers(graph);
  lister.listOptimizer();
  return variables;
}

LogicalResult matchWeights(Archive &archive, const FileVariables &variables, Location location, bool optimizer,
                           std::vector<NamedTensor> &weights) {
  Matcher matcher(archive, weights);
  if (failed(matcher.matchLayers(variables.layers)) || (optimizer && failed(matcher.matchOptimizer(variables))))
    return failure();
  return matcher.finish(location, optimizer);
}

} // namespace mtc::keras
