// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/DnnGraph.h"

#include <algorithm>
#include <charconv>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

DnnDescriptors::~DnnDescriptors() {
  for (size_t i = made_.size(); i-- > 0;)
    (void)functions_.destroyDescriptor(made_[i]);
}

DnnDescriptor DnnDescriptors::make(int type) {
  DnnDescriptor descriptor = nullptr;
  if (code_ == dnn::success)
    code_ = functions_.createDescriptor(type, &descriptor);
  if (code_ != dnn::success)
    return nullptr;
  made_.push_back(descriptor);
  return descriptor;
}

void DnnDescriptors::set(DnnDescriptor descriptor, int attribute, int type, int64_t count, const void *values) {
  if (code_ == dnn::success)
    code_ = functions_.set(descriptor, attribute, type, count, values);
}

void DnnDescriptors::finalize(DnnDescriptor descriptor) {
  if (code_ == dnn::success)
    code_ = functions_.finalize(descriptor);
}

int64_t DnnDescriptors::get(DnnDescriptor descriptor, int attribute, int type, int64_t most, void *values) {
  int64_t count = 0;
  if (code_ == dnn::success)
    code_ = functions_.get(descriptor, attribute, type, most, &count, values);
  return code_ == dnn::success ? std::clamp<int64_t>(count, 0, most) : 0;
}

std::string DnnAlgorithm::name() const {
  std::string text = "engine " + std::to_string(engine);
  for (size_t i = 0; i < knobs.size(); ++i)
    text += (i ? " " : ", knobs ") + std::to_string(knobs[i][0]) + ":" + std::to_string(knobs[i][1]);
  return text;
}

bool DnnAlgorithm::parse(const std::string &name, DnnAlgorithm &algorithm) {
  const char *at = name.data(), *end = at + name.size();
  auto text = [&](std::string_view expected) {
    bool there = std::string_view(at, static_cast<size_t>(end - at)).starts_with(expected);
    at += there ? expected.size() : 0;
    return there;
  };
  auto number = [&](int64_t &value) {
    auto [stop, error] = std::from_chars(at, end, value);
    at = stop;
    return error == std::errc();
  };
  if (!text("engine ") || !number(algorithm.engine))
    return false;
  if (at != end && !text(", knobs "))
    return false;
  while (at != end) {
    std::array<int64_t, 2> knob;
    if (!number(knob[0]) || !text(":") || !number(knob[1]) || (at != end && !text(" ")))
      return false;
    algorithm.knobs.push_back(knob);
  }
  return true;
}

namespace {

// Makes a tensor of four axes (images, channels, rows, columns) with channels last in memory. A shard has `images`
// images.
DnnDescriptor makeTensor(DnnDescriptors &made, int type, int64_t id, bool isVirtual, std::array<int64_t, 4> sizes) {
  auto [images, channels, rows, columns] = sizes;
  uint64_t bytes = (static_cast<uint64_t>(images * channels * rows * columns) | 64) * (type == dnn::f32 ? 4 : 2);
  DnnDescriptor tensor = made.make(dnn::tensor);
  made.set(tensor, dnn::tensorType, dnn::dataType, type);
  made.set(tensor, dnn::tensorDimensions, dnn::int64Type, 4, sizes.data());
  made.setNumbers(tensor, dnn::tensorStrides, {rows * columns * channels, 1, columns * channels, channels});
  made.set(tensor, dnn::tensorId, dnn::int64Type, id);
  made.set(tensor, dnn::tensorAlignment, dnn::int64Type, std::min<int64_t>(static_cast<int64_t>(bytes & -bytes), 64));
  made.set(tensor, dnn::tensorVirtual, dnn::booleanType, isVirtual);
  made.finalize(tensor);
  return tensor;
}

DnnDescriptor makeConvolution(DnnDescriptors &made, const fb::LibraryCall &call) {
  const fb::CallAxis &down = *call.down(), &across = *call.across();
  DnnDescriptor convolution = made.make(dnn::convolution);
  made.set(convolution, dnn::spatialDimensions, dnn::int64Type, int64_t{2});
  made.set(convolution, dnn::computeType, dnn::dataType, dnn::f32);
  made.set(convolution, dnn::convolutionMode, dnn::convolutionModeType, dnn::crossCorrelation);
  made.setNumbers(convolution, dnn::prePaddings, {down.low(), across.low()});
  made.setNumbers(convolution, dnn::postPaddings, {down.high(), across.high()});
  made.setNumbers(convolution, dnn::filterStrides, {down.stride(), across.stride()});
  made.setNumbers(convolution, dnn::dilations, {down.dilation(), across.dilation()});
  made.finalize(convolution);
  return convolution;
}

// Makes one of the three convolutions; `names` are the attributes of `tensors`.
DnnDescriptor makeOperation(DnnDescriptors &made, int type, int alpha, std::array<int, 3> names,
                            std::array<DnnDescriptor, 3> tensors, DnnDescriptor convolution) {
  DnnDescriptor operation = made.make(type);
  made.set(operation, alpha, dnn::floatType, 1.f);
  made.set(operation, alpha + 1, dnn::floatType, 0.f);
  made.set(operation, alpha + 2, dnn::descriptorType, convolution);
  for (size_t i = 0; i < names.size(); ++i)
    made.set(operation, names[i], dnn::descriptorType, tensors[i]);
  made.finalize(operation);
  return operation;
}

// Makes result = x + b, or result = ReLU(x) if b is null.
DnnDescriptor makePointwise(DnnDescriptors &made, int mode, DnnDescriptor x, DnnDescriptor b, DnnDescriptor result) {
  DnnDescriptor pointwise = made.make(dnn::pointwise);
  made.set(pointwise, dnn::pointwiseMode, dnn::pointwiseModeType, mode);
  made.set(pointwise, dnn::pointwiseMath, dnn::dataType, dnn::f32);
  made.finalize(pointwise);
  DnnDescriptor operation = made.make(dnn::pointwiseOperation);
  made.set(operation, dnn::operationPointwise, dnn::descriptorType, pointwise);
  made.set(operation, dnn::pointwiseX, dnn::descriptorType, x);
  if (b)
    made.set(operation, dnn::pointwiseB, dnn::descriptorType, b);
  made.set(operation, dnn::pointwiseY, dnn::descriptorType, result);
  made.finalize(operation);
  return operation;
}

} // namespace

DnnDescriptor makeGpu(DnnDescriptors &made, const std::string &json) {
  DnnDescriptor gpu = made.make(dnn::gpuDescription);
  made.set(gpu, dnn::gpuJson, dnn::characterType, static_cast<int64_t>(json.size()), json.data());
  made.finalize(gpu);
  return made.code() == dnn::success ? gpu : nullptr;
}

DnnDescriptor makeGraph(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem) {
  const fb::LibraryCall &call = problem.call;
  const fb::CallAxis &down = *call.down(), &across = *call.across();
  std::array<int64_t, 4> images = {problem.shardRows, call.channels(), down.inputs(), across.inputs()};
  std::array<int64_t, 4> outputs = {problem.shardRows, call.filters(), down.outputs(), across.outputs()};
  std::array<int64_t, 4> kernel = {call.filters(), call.channels() / call.groups(), down.taps(), across.taps()};
  auto stored = [&](int64_t id, std::array<int64_t, 4> sizes) {
    return makeTensor(made, problem.type, id, false, sizes);
  };
  DnnDescriptor convolution = makeConvolution(made, call);
  std::vector<DnnDescriptor> operations;
  if (call.kind() == fb::CallKind::ConvolutionInput) {
    operations.push_back(makeOperation(made, dnn::backwardData, dnn::dataAlpha, {dnn::dataDy, dnn::dataW, dnn::dataDx},
                                       {stored(dnnLeft, outputs), stored(dnnRight, kernel), stored(dnnResult, images)},
                                       convolution));
  } else if (call.kind() == fb::CallKind::ConvolutionTree) {
    operations.push_back(
        makeOperation(made, dnn::backwardFilter, dnn::filterAlpha, {dnn::filterX, dnn::filterDy, dnn::filterDw},
                      {stored(dnnLeft, images), stored(dnnRight, outputs), stored(dnnResult, kernel)}, convolution));
  } else {
    // The bias and the ReLU read virtual tensors, which are not stored.
    bool bias = static_cast<int>(call.epilogue()) & 2, relu = static_cast<int>(call.epilogue()) & 1;
    int64_t id = dnnBias + 1;
    auto next = [&](bool last) {
      return last ? stored(dnnResult, outputs) : makeTensor(made, dnn::f32, id++, true, outputs);
    };
    DnnDescriptor value = next(!bias && !relu);
    operations.push_back(makeOperation(made, dnn::forward, dnn::forwardAlpha,
                                       {dnn::forwardX, dnn::forwardW, dnn::forwardY},
                                       {stored(dnnLeft, images), stored(dnnRight, kernel), value}, convolution));
    if (bias) {
      DnnDescriptor numbers = makeTensor(made, dnn::f32, dnnBias, false, {1, call.filters(), 1, 1}), sum = next(!relu);
      operations.push_back(makePointwise(made, dnn::add, value, numbers, sum));
      value = sum;
    }
    if (relu)
      operations.push_back(makePointwise(made, dnn::relu, value, nullptr, next(true)));
  }
  DnnDescriptor graph = made.make(dnn::graph);
  if (!gpu.description)
    made.set(graph, dnn::graphHandle, dnn::handleType, gpu.handle);
  made.set(graph, dnn::graphOperations, dnn::descriptorType, static_cast<int64_t>(operations.size()),
           operations.data());
  made.finalize(graph);
  return graph;
}

bool isExact(DnnDescriptors &made, DnnDescriptor engine, bool tensorCores) {
  std::array<int, 32> notes = {};
  int64_t count = made.get(engine, dnn::engineNotes, dnn::noteType, std::size(notes), notes.data());
  return made.code() == dnn::success && std::all_of(notes.begin(), notes.begin() + count, [&](int note) {
           // Tensor cores compute F32 as TF32, so this note is allowed only for TF32. The other notes mark sums in
           // lower precision, transforms and nondeterminism.
           return note == dnn::noteStrictNan || (note == dnn::noteTensorCore && tensorCores);
         });
}

DnnDescriptor makePlan(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem, DnnDescriptor graph,
                       const DnnAlgorithm &algorithm, uint64_t &workspace) {
  DnnDescriptor engine = made.make(dnn::engine);
  made.set(engine, dnn::engineGraph, dnn::descriptorType, graph);
  made.set(engine, dnn::engineIndex, dnn::int64Type, algorithm.engine);
  if (gpu.description)
    made.set(engine, dnn::engineGpu, dnn::descriptorType, gpu.description);
  made.finalize(engine);
  if (!isExact(made, engine, problem.tensorCores()))
    return nullptr;
  std::vector<DnnDescriptor> knobs;
  for (auto [type, value] : algorithm.knobs) {
    knobs.push_back(made.make(dnn::knobChoice));
    made.set(knobs.back(), dnn::knobChoiceType, dnn::knobType, static_cast<int>(type));
    made.set(knobs.back(), dnn::knobChoiceValue, dnn::int64Type, value);
    made.finalize(knobs.back());
  }
  DnnDescriptor configuration = made.make(dnn::configuration);
  made.set(configuration, dnn::configurationEngine, dnn::descriptorType, engine);
  if (!knobs.empty())
    made.set(configuration, dnn::configurationKnobs, dnn::descriptorType, static_cast<int64_t>(knobs.size()),
             knobs.data());
  made.finalize(configuration);
  DnnDescriptor plan = made.make(dnn::plan);
  if (gpu.description)
    made.set(plan, dnn::planGpu, dnn::descriptorType, gpu.description);
  else
    made.set(plan, dnn::planHandle, dnn::handleType, gpu.handle);
  made.set(plan, dnn::planConfiguration, dnn::descriptorType, configuration);
  made.finalize(plan);
  int64_t bytes = 0;
  made.get(plan, dnn::planWorkspace, dnn::int64Type, 1, &bytes);
  workspace = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  return made.code() == dnn::success ? plan : nullptr;
}

std::vector<DnnAlgorithm> propose(DnnDescriptors &made, const DnnGpu &gpu, const DnnProblem &problem,
                                  DnnDescriptor graph, int mode) {
  constexpr int64_t most = 16, maxKnobs = 64; // cuDNN 9.19 has 44 types of knobs
  DnnDescriptor heuristics = made.make(dnn::heuristics);
  made.set(heuristics, dnn::heuristicsGraph, dnn::descriptorType, graph);
  made.set(heuristics, dnn::heuristicsMode, dnn::heuristicsModeType, mode);
  if (gpu.description)
    made.set(heuristics, dnn::heuristicsGpu, dnn::descriptorType, gpu.description);
  made.finalize(heuristics);
  // Values are read into existing descriptors. Their number is not queried first, because the library returns 0 for the
  // number of a configuration's knobs.
  auto list = [&](DnnDescriptor of, int attribute, int type, int64_t limit) {
    std::vector<DnnDescriptor> descriptors;
    for (int64_t i = 0; i < limit; ++i)
      descriptors.push_back(made.make(type));
    descriptors.resize(static_cast<size_t>(made.get(of, attribute, dnn::descriptorType, limit, descriptors.data())));
    return descriptors;
  };
  std::vector<DnnAlgorithm> found;
  for (DnnDescriptor configuration : list(heuristics, dnn::heuristicsResults, dnn::configuration, most)) {
    DnnDescriptor engine = made.make(dnn::engine);
    DnnAlgorithm algorithm;
    made.get(configuration, dnn::configurationEngine, dnn::descriptorType, 1, &engine);
    made.get(engine, dnn::engineIndex, dnn::int64Type, 1, &algorithm.engine);
    if (!isExact(made, engine, problem.tensorCores()))
      continue;
    for (DnnDescriptor knob : list(configuration, dnn::configurationKnobs, dnn::knobChoice, maxKnobs)) {
      int type = 0;
      int64_t value = 0;
      made.get(knob, dnn::knobChoiceType, dnn::knobType, 1, &type);
      made.get(knob, dnn::knobChoiceValue, dnn::int64Type, 1, &value);
      algorithm.knobs.push_back({type, value});
    }
    found.push_back(algorithm);
  }
  return made.code() == dnn::success ? found : std::vector<DnnAlgorithm>();
}

} // namespace mtrun::cuda
