// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Layers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

namespace mtc {

namespace fb = ::mt::plan;

const fb::Program *mainProgram(const fb::Plan &plan) {
  for (const char *name : {"train_step", "eval_step", "predict", "init"})
    for (const fb::Program *program : each(plan.programs()))
      if (program->name()->string_view() == name)
        return program;
  return nullptr;
}

std::string kernelName(const fb::Plan &plan, const fb::Step &step) {
  return step.kernel() < 0 ? "all-reduce " + std::to_string(step.collective())
                           : plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->name()->str();
}

std::string kindName(const fb::Plan &plan, const fb::Step &step) {
  if (step.kernel() < 0)
    return "all-reduce";
  return mtrun::enumName(EnumNameKernelKind(plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->kind()));
}

std::string layerName(const fb::Plan &plan, const fb::Step &step) {
  return step.layer() < 0 ? "" : plan.layers()->Get(static_cast<uint32_t>(step.layer()))->str();
}

static std::string shapeText(const flatbuffers::Vector<int64_t> *shape, fb::DType dtype) {
  std::string text;
  for (int64_t size : each(shape))
    text += (text.empty() ? "" : "×") + (size < 0 ? std::string("?") : std::to_string(size));
  if (text.empty())
    text = "scalar";
  return dtype == fb::DType::F32 ? text : text + " " + mtrun::enumName(EnumNameDType(dtype));
}

std::string shapeOf(const fb::Buffer &buffer) {
  uint64_t bytes = buffer.row_bytes() + buffer.fixed_bytes();
  if (buffer.shape() || bytes <= 8)
    return shapeText(buffer.shape(), buffer.dtype());
  return buffer.row_bytes() ? "? rows of " + bytesText(buffer.row_bytes()) : bytesText(buffer.fixed_bytes());
}

std::string shapeOf(const fb::Variable &variable) { return shapeText(variable.shape(), variable.dtype()); }

std::string operandsOf(const fb::Plan &plan, const fb::Program &program, const fb::Step &step) {
  if (step.kernel() < 0)
    return bytesText(step.partial_bytes());
  auto segments = each(step.segments());
  if (segments.size() > 1) {
    uint64_t elements = 0;
    for (const fb::Segment *segment : segments)
      elements += segment->count();
    if (elements > 0)
      return std::to_string(segments.size()) + " tensors, " + grouped(elements) + " elements";
  }
  std::string reads, writes;
  for (const fb::Segment *segment : llvm::ArrayRef(*segments.begin())) // the others have the same shapes
    for (auto [index, buffer] : llvm::enumerate(each(segment->buffers()))) {
      const auto *arguments = plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->arguments();
      bool written = arguments && index < arguments->size() && arguments->Get(static_cast<uint32_t>(index))->written();
      std::string &list = written ? writes : reads;
      list += (list.empty() ? "" : ", ") + shapeOf(*program.buffers()->Get(buffer));
    }
  return reads + (reads.empty() ? "→ " : " → ") + writes;
}

// Returns the shape of the last tensor that a launch writes. It prefers tensors with a batch axis, then tensors of f32:
// a tensor of another type is a mask or an index.
static std::string resultOf(const fb::Plan &plan, const fb::Program &program, const fb::Step &step) {
  auto rank = [](const std::string &shape) { return 2 * (shape[0] == '?') + (shape.find(' ') == std::string::npos); };
  std::string result;
  const auto *arguments = plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->arguments();
  for (const fb::Segment *segment : each(step.segments()))
    for (auto [index, buffer] : llvm::enumerate(each(segment->buffers()))) {
      if (!arguments || index >= arguments->size() || !arguments->Get(static_cast<uint32_t>(index))->written())
        continue;
      std::string shape = shapeOf(*program.buffers()->Get(buffer));
      if (result.empty() || rank(shape) >= rank(result))
        result = shape;
    }
  return result;
}

// Returns the launches of the forward pass: all launches before the first that reads a target. Empty if no launch does.
static std::vector<const fb::Step *> forwardSteps(const fb::Program &training) {
  std::vector<const fb::Step *> steps;
  for (const fb::Step *step : each(training.steps())) {
    for (const fb::Segment *segment : each(step->segments()))
      for (uint32_t b : each(segment->buffers())) {
        const fb::Buffer &buffer = *training.buffers()->Get(b);
        if (buffer.space() == fb::Space::Signature &&
            training.signature()->Get(buffer.index())->role() == fb::Role::Target)
          return steps;
      }
    steps.push_back(step);
  }
  return {};
}

// The shape of a layer is that of the result of its last launch in the forward pass of the training step. A layer
// without a launch there, such as the loss, has the shape of its result in another program. Tensors without a batch
// axis are statistics if the layer has one with a batch axis.
static void addShapes(const fb::Plan &plan, const fb::Program &training, const llvm::StringMap<size_t> &index,
                      std::vector<LayerFacts> &layers) {
  auto add = [&](const fb::Program &program, const fb::Step &step, std::vector<std::string> &shapes) {
    auto found = index.find(layerName(plan, step));
    if (step.kernel() < 0 || found == index.end() || found->first().empty())
      return;
    std::string result = resultOf(plan, program, step), &shape = shapes[found->second];
    if (!result.empty() && (shape.empty() || shape[0] != '?' || result[0] == '?'))
      shape = result;
  };
  std::vector<std::string> forward(layers.size()), other(layers.size());
  for (const fb::Step *step : forwardSteps(training))
    add(training, *step, forward);
  for (const char *name : {"predict", "eval_step"})
    for (const fb::Program *program : each(plan.programs()))
      if (program->name()->string_view() == name)
        for (const fb::Step *step : each(program->steps()))
          add(*program, *step, other);
  for (auto [layer, before, alone] : llvm::zip(layers, forward, other))
    layer.shape = before.empty() ? alone : before;
}

// The name of a variable begins with its layer, as in "dense/kernel"; any other variable belongs to the first layer
// that uses it.
static void addParameters(const fb::Plan &plan, const fb::Program &program, const llvm::StringMap<size_t> &index,
                          std::vector<LayerFacts> &layers) {
  std::vector<size_t> owner(each(plan.variables()).size(), SIZE_MAX);
  for (const fb::Step *step : each(program.steps()))
    for (const fb::Segment *segment : each(step->segments()))
      for (uint32_t b : each(segment->buffers())) {
        const fb::Buffer &buffer = *program.buffers()->Get(b);
        auto found = index.find(layerName(plan, *step));
        if (buffer.space() == fb::Space::Variable && owner[buffer.index()] == SIZE_MAX && found != index.end() &&
            !found->first().empty())
          owner[buffer.index()] = found->second;
      }
  for (auto [i, variable] : llvm::enumerate(each(plan.variables()))) {
    // Variables of the optimizer belong to no layer: slots, learning rate, iteration count.
    if (variable->kind() == fb::VariableKind::Slot || static_cast<int64_t>(i) == plan.learning_rate() ||
        static_cast<int64_t>(i) == plan.iteration())
      continue;
    llvm::StringRef name(variable->name()->c_str());
    auto named = index.find(name.take_front(name.rfind('/') == llvm::StringRef::npos ? 0 : name.rfind('/')));
    size_t layer = named != index.end() && !named->first().empty() ? named->second : owner[i];
    uint64_t elements = 1;
    for (int64_t size : each(variable->shape()))
      elements *= static_cast<uint64_t>(size);
    if (layer != SIZE_MAX)
      layers[layer].parameters += elements;
  }
}

std::vector<LayerFacts> layersOf(const fb::Plan &plan, const fb::Program &program) {
  std::vector<LayerFacts> layers;
  llvm::StringMap<size_t> index;
  for (auto [i, step] : llvm::enumerate(each(program.steps()))) {
    if (step->kernel() < 0)
      continue;
    std::string name = layerName(plan, *step);
    auto [found, fresh] = index.try_emplace(name, layers.size());
    if (fresh)
      layers.emplace_back().name = name;
    LayerFacts &layer = layers[found->second];
    LaunchCost cost = costOf(plan, *step, plan.batch());
    layer.steps.push_back(static_cast<uint32_t>(i));
    layer.cost.flops += cost.flops;
    layer.cost.bytes += cost.bytes;
  }
  addShapes(plan, program, index, layers);
  addParameters(plan, program, index, layers);
  return layers;
}

} // namespace mtc
