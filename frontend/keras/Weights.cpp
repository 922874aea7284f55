// SPDX-License-Identifier: Apache-2.0
#include "frontend/keras/Weights.h"

#include <cstring>

using namespace mlir;

namespace mtc::keras {
namespace {

std::string textOf(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

class Matcher {
public:
  Matcher(Archive &archive, mt::ModelOp model, std::vector<NamedTensor> &weights)
      : archive(archive), model(model), weights(weights) {
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

  LogicalResult matchLayers(const Graph &graph) {
    LogicalResult result = success();
    for (const Layer &layer : graph.layers) {
      if (layer.model && failed(matchLayers(*layer.model)))
        result = failure();
      Location location = NameLoc::get(StringAttr::get(model.getContext(), layer.name));
      for (const LayerVariable &variable : layer.variables) {
        if (!variable.value) {
          archive.weights.erase(variable.path);
          continue;
        }
        if (failed(take(location, variable.path, variable.name, cast<RankedTensorType>(variable.value.getType()))))
          result = failure();
        if (auto op = variable.value.getDefiningOp<mt::VariableOp>(); !op.getFrozen())
          trainable.push_back(op);
      }
    }
    return result;
  }

  LogicalResult matchOptimizer() {
    auto optimizer = *model.getBody().getOps<mt::OptimizerOpInterface>().begin();
    std::vector<Wanted> wanted = listOptimizer(optimizer);
    size_t count = 0;
    while (archive.weights.count(path(count)))
      ++count;
    // An optimizer that has not made a step has no slots yet.
    size_t scalars = optimizer->getNumOperands() ? 1 : 2;
    if (count != 0 && count != scalars && count != wanted.size())
      return emitError(optimizer.getLoc()) << "expected " << wanted.size() << " variables of the optimizer, found " << count
                                           << ": --optimizer starts with a new one";
    for (size_t i = 0; i < count; ++i)
      if (failed(take(optimizer.getLoc(), path(i), wanted[i].name, wanted[i].type)))
        return failure();
    return success();
  }

  // Nothing of the file may be left over but what the importer does without.
  LogicalResult finish(bool optimizer) {
    LogicalResult result = success();
    for (const auto &[path, tensor] : archive.weights) {
      llvm::StringRef name = path;
      // Random state is Keras' own; an optimizer that is replaced is not read.
      if (name.contains("seed_generator/") || (!optimizer && name.starts_with("optimizer/")))
        continue;
      result = emitError(model.getLoc()) << "expected only the variables of the model's layers, found " << path << " in model.weights.h5";
    }
    return result;
  }

private:
  struct Wanted {
    std::string name;
    RankedTensorType type;
  };

  // In Keras' order: iteration, learning_rate (unless a schedule gives it), averages, then the slots variable by variable, of RMSprop and
  // amsgrad's last one slot by slot; the optimizer's own scalars.
  std::vector<Wanted> listOptimizer(mt::OptimizerOpInterface optimizer) {
    Builder builder(model.getContext());
    std::string prefix = optimizer.getOptimizerName().str() + "/";
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    std::vector<Wanted> wanted = {{prefix + "iteration", RankedTensorType::get({}, builder.getI32Type())}};
    if (!optimizer->getNumOperands())
      wanted.push_back({prefix + "learning_rate", scalar});
    auto addSlots = [&](ArrayRef<llvm::StringRef> names) {
      for (mt::VariableOp variable : trainable)
        for (llvm::StringRef name : names) {
          std::string flat = variable.getName().str();
          std::replace(flat.begin(), flat.end(), '/', '_');
          wanted.push_back({prefix + flat + "_" + name.str(), cast<RankedTensorType>(variable.getType())});
        }
    };
    if (std::optional<Attribute> average = optimizer->getInherentAttr("ema_momentum"); average && *average)
      addSlots({"average"});
    SmallVector<llvm::StringRef> names = optimizer.getSlotNames();
    bool apart = isa<mt::RmspropOp>(optimizer);
    if (apart)
      for (llvm::StringRef name : names)
        addSlots({name});
    else
      addSlots(ArrayRef(names).take_front(2));
    if (!apart && names.size() > 2)
      addSlots(ArrayRef(names).drop_front(2));
    for (auto [name, start] : optimizer.getState())
      wanted.push_back({prefix + name.str(), scalar});
    return wanted;
  }

  static std::string path(size_t index) { return "optimizer/vars/" + std::to_string(index); }

  LogicalResult take(Location location, const std::string &path, const std::string &name, RankedTensorType type) {
    auto found = archive.weights.find(path);
    if (found == archive.weights.end())
      return emitError(location) << "expected " << path << " in model.weights.h5 for variable " << name << ", found none";
    NamedTensor &tensor = found->second;
    if (ArrayRef<int64_t>(tensor.shape) != type.getShape())
      return emitError(location) << "expected variable " << name << " of shape " << textOf(type.getShape()) << ", found "
                                 << textOf(tensor.shape) << " in model.weights.h5";
    tensor.name = name;
    if (type.getElementType().isInteger(32) && failed(narrow(location, tensor)))
      return failure();
    if (type.getElementType().isF32() && tensor.dtype != MT_F32)
      return emitError(location) << "expected variable " << name << " of floats, found integers in model.weights.h5";
    weights.push_back(std::move(tensor));
    archive.weights.erase(found);
    return success();
  }

  // Integers come as i64.
  static LogicalResult narrow(Location location, NamedTensor &tensor) {
    if (tensor.dtype != MT_I64)
      return emitError(location) << "expected variable " << tensor.name << " of integers, found floats in model.weights.h5";
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
  mt::ModelOp model;
  std::vector<NamedTensor> &weights;
  SmallVector<mt::VariableOp> trainable; // in Keras' order
};

} // namespace

LogicalResult matchWeights(Archive &archive, const Graph &graph, mt::ModelOp model, bool optimizer, std::vector<NamedTensor> &weights) {
  Matcher matcher(archive, model, weights);
  if (failed(matcher.matchLayers(graph)) || (optimizer && failed(matcher.matchOptimizer())))
    return failure();
  return matcher.finish(optimizer);
}

} // namespace mtc::keras
