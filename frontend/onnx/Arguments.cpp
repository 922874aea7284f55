// SPDX-License-Identifier: Apache-2.0
//
// Inputs and initializers of a file, and what the file says of how it was exported and of what is trained.
#include "frontend/onnx/Importer.h"

using namespace mlir;

namespace mtc::onnx {

// Whether the file is one for prediction, and what becomes of its batch normalization.
void Importer::sayHowExported() const {
  Location location = builder.getUnknownLoc();
  int64_t predicting = 0, training = 0;
  bool drops = false;
  for (const Node *node : needed) {
    drops |= node->op == "Dropout";
    if (node->op != "BatchNormalization")
      continue;
    auto mode = node->attributes.find("training_mode");
    ++(mode != node->attributes.end() && mode->second.integer ? training : predicting);
  }
  if (predicting && !freezesBatchNorm)
    emitRemark(location) << predicting
                         << " BatchNormalization in the mode of prediction: trained with the statistics "
                            "of the batch all the same, if --freeze-batch-norm does not leave them as they are";
  else if (!predicting && !training && !drops)
    emitRemark(location) << "no BatchNormalization and no Dropout in the file: if the model has some, it was exported "
                            "for prediction; export it in training mode (docs/import.md)";
}

// ONNX does not say which initializers are parameters.
void Importer::sayWhatIsTrained() const {
  constexpr size_t shown = 8;
  InFlightDiagnostic remark = emitRemark(builder.getUnknownLoc())
                              << "trains " << trained.count << (trained.count == 1 ? " parameter" : " parameters")
                              << " of " << trained.numbers << " numbers";
  if (trained.others.empty())
    return;
  remark << "; operands of no layer among them, which --freeze leaves as they are: "
         << llvm::join(ArrayRef(trained.others).take_front(shown), ", ");
  if (trained.others.size() > shown)
    remark << " and " << trained.others.size() - shown << " more";
}

// Inputs that are initializers too are those; what else is an input comes from the data.
LogicalResult Importer::makeInputs() {
  std::vector<const Port *> ports;
  for (const Port &port : model.inputs)
    if (llvm::none_of(model.initializers, [&](const Tensor &tensor) { return tensor.name == port.name; }))
      ports.push_back(&port);
  std::string listed;
  for (const Port *port : ports)
    listed += (listed.empty() ? "" : ", ") + port->name;
  for (const auto &[name, shape] : shapes)
    if (!(name.empty() && ports.size() == 1) &&
        llvm::none_of(ports, [&, &name = name](const Port *port) { return port->name == name; }))
      return emitError(builder.getUnknownLoc()) << "expected input shapes of " << listed << ", found "
                                                << (name.empty() ? "one without a name" : "one of '" + name + "'");
  for (const Port *port : ports) {
    auto requested = shapes.find(port->name);
    if (requested == shapes.end() && ports.size() == 1)
      requested = shapes.find("");
    if (failed(makeInput(*port, requested == shapes.end() ? nullptr : &requested->second)))
      return failure();
  }
  return success();
}

LogicalResult Importer::makeInput(const Port &port, const std::vector<int64_t> *requested) {
  Location location = NameLoc::get(builder.getStringAttr(port.name));
  Known::Type type = knownTypeOf(port.type);
  if (bytesOf(port.type) == 0 || port.name.empty())
    return emitError(location) << "expected an input of numbers with a name, found one of " << nameOf(port.type);
  if (port.hasShape && port.shape.empty())
    return emitError(location) << "expected an input whose first axis is the batch, found a number";
  if (!port.hasShape && !requested)
    return emitError(location) << "expected the shape of the input, found none: give the sizes behind the batch, as "
                                  "--input-shape 3,224,224";
  size_t rank = port.hasShape ? port.shape.size() : requested->size() + 1;
  constexpr size_t maxAxes = 8;
  if (rank > maxAxes || (requested && requested->size() + 1 != rank))
    return emitError(location) << "expected " << (rank > maxAxes ? "at most 7" : std::to_string(rank - 1))
                               << " sizes behind the batch, found " << (requested ? requested->size() : rank - 1);
  if (port.hasShape && port.shape[0].size > 0) {
    if (fixedBatch && fixedBatch != port.shape[0].size)
      return emitError(location) << "expected the batch as the first axis of all inputs, found axes of " << fixedBatch
                                 << " and " << port.shape[0].size;
    fixedBatch = port.shape[0].size;
  }
  SmallVector<int64_t> sizes = {ShapedType::kDynamic};
  for (size_t i = 1; i < rank; ++i) {
    int64_t size = port.hasShape ? port.shape[i].size : -1;
    if (size < 0 && !requested && i == 1 && length)
      size = length;
    if (size < 0 && !requested)
      return emitError(location) << "expected sizes behind the batch, found an axis of any size ("
                                 << port.shape[i].symbol << "): give the sizes, as --input-shape 3,224,224";
    if (size >= 0 && requested && (*requested)[i - 1] != size)
      return emitError(location) << "expected an input shape with the model's own size " << size << ", found "
                                 << (*requested)[i - 1];
    sizes.push_back(size < 0 ? (*requested)[i - 1] : size);
    if (sizes.back() < 1 || sizes.back() > int64_t{1} << 31)
      return emitError(location) << "expected sizes from 1 to 2^31 behind the batch, found " << sizes.back();
  }
  logical::Ops ops{builder, location};
  bool floats = type == Known::Type::Float;
  auto tensor = RankedTensorType::get(sizes, floats ? ops.real() : ops.i32());
  logical::Value value = ops.value(mt::InputOp::create(builder, location, tensor, port.name, IntegerAttr()));
  if (type == Known::Type::Boolean)
    value = logical::cast(ops, value, ops.i1());
  if (!values.emplace(port.name, Operand{nullptr, value, nullptr, nullptr, port.type}).second)
    return emitError(location) << "expected one input of this name, found two";
  return success();
}

Operand Importer::makeVariable(Tensor &tensor, std::vector<NamedTensor> &weights) {
  const std::vector<Use> &readers = uses[tensor.name];
  if (isShared(tensor, readers))
    emitWarning(NameLoc::get(builder.getStringAttr(tensor.name)))
        << "expected a parameter that one node reads, found " << readers.size()
        << " that read this one: exporters make one of several that are equal, and it is trained as one "
           "(docs/import.md)";
  if (!isStatistics(readers)) {
    ++trained.count;
    trained.numbers += countOf(tensor.shape);
    if (std::string others = readersOutsideOfLayers(tensor, readers); !others.empty())
      trained.others.push_back(tensor.name + " (" + others + ")");
  }
  std::vector<int64_t> order = storedOrder(tensor, readers);
  NamedTensor value = valuesOf(tensor, order);
  std::string().swap(tensor.bytes);
  logical::Ops ops{builder, NameLoc::get(builder.getStringAttr(tensor.name))};
  mlir::Value stored = mt::VariableOp::create(builder, ops.location, RankedTensorType::get(value.shape, ops.real()),
                                              tensor.name, mt::InitKind::zeros, FloatAttr(), isStatistics(readers));
  weights.push_back(std::move(value));
  SmallVector<int64_t> back(order.size());
  for (auto [place, axis] : llvm::enumerate(order))
    back[axis] = static_cast<int64_t>(place);
  return {nullptr, logical::transpose(ops.value(stored), back), nullptr};
}

LogicalResult Importer::makeInitializers(std::vector<NamedTensor> &weights) {
  for (Tensor &tensor : model.initializers) {
    auto readers = uses.find(tensor.name);
    if (readers == uses.end())
      continue;
    Location location = NameLoc::get(builder.getStringAttr(tensor.name));
    if (values.count(tensor.name) || tensor.name.empty())
      return emitError(location) << "expected one initializer of a name, found two, or none of a name";
    if (isMask(tensor))
      emitRemark(location) << "a mask, which is not trained: its numbers are 0 or at most -10000";
    try {
      values[tensor.name] =
          isVariable(tensor, readers->second)
              ? makeVariable(tensor, weights)
              : Operand{std::make_shared<const Known>(knownOf(tensor)), {}, nullptr, nullptr, tensor.type};
    } catch (const Refused &refused) {
      return emitError(location) << refused.what();
    }
  }
  sayWhatIsTrained();
  return success();
}

} // namespace mtc::onnx
