// SPDX-License-Identifier: Apache-2.0
//
// What the simulated cuDNN computes, in bits that depend on the engine and on the number of images.
#include "Dnn.h"

namespace simulated {

namespace {

DnnTensorFacts tensorOf(const DnnObject &tensor) {
  DnnTensorFacts facts;
  auto sizes = tensor.values<int64_t>(dnn::tensorDimensions, dnn::int64Type);
  auto strides = tensor.values<int64_t>(dnn::tensorStrides, dnn::int64Type);
  if (sizes.size() != 4 || strides.size() != 4 || tensor.values<int>(dnn::tensorType, dnn::dataType)[0] != dnn::f32)
    fatal("a cuDNN tensor of other than four axes, or of other than F32");
  std::copy(sizes.begin(), sizes.end(), facts.sizes.begin());
  std::copy(strides.begin(), strides.end(), facts.strides.begin());
  if (strides[1] != 1 || strides[3] != sizes[1] || strides[2] != sizes[1] * sizes[3])
    fatal("a cuDNN tensor that has its channels elsewhere than last"); // no engine takes another layout in F32
  facts.id = tensor.values<int64_t>(dnn::tensorId, dnn::int64Type)[0];
  facts.alignment = tensor.values<int64_t>(dnn::tensorAlignment, dnn::int64Type)[0];
  facts.isVirtual =
      tensor.attributes.count(dnn::tensorVirtual) && tensor.values<char>(dnn::tensorVirtual, dnn::booleanType)[0];
  return facts;
}

std::array<int64_t, 2> pairOf(const DnnObject &object, int attribute) {
  auto values = object.values<int64_t>(attribute, dnn::int64Type);
  if (values.size() != 2)
    fatal("a cuDNN convolution of other than two axes");
  return {values[0], values[1]};
}

void readOperation(const DnnObject &operation, DnnConvolution &made) {
  int alpha = operation.type == dnn::forward        ? dnn::forwardAlpha
              : operation.type == dnn::backwardData ? dnn::dataAlpha
                                                    : dnn::filterAlpha;
  if (operation.values<float>(alpha, dnn::floatType)[0] != 1 ||
      operation.values<float>(alpha + 1, dnn::floatType)[0] != 0)
    fatal("a cuDNN convolution with factors");
  const DnnObject &convolution = operation.object(alpha + 2, dnn::convolution);
  if (convolution.values<int>(dnn::convolutionMode, dnn::convolutionModeType)[0] != dnn::crossCorrelation ||
      convolution.values<int>(dnn::computeType, dnn::dataType)[0] != dnn::f32)
    fatal("a cuDNN convolution that turns its kernel, or in other than F32");
  made.operation = operation.type;
  made.low = pairOf(convolution, dnn::prePaddings);
  made.high = pairOf(convolution, dnn::postPaddings);
  made.stride = pairOf(convolution, dnn::filterStrides);
  made.dilation = pairOf(convolution, dnn::dilations);
  auto tensor = [&](int attribute) { return tensorOf(operation.object(attribute, dnn::tensor)); };
  bool forward = operation.type == dnn::forward, data = operation.type == dnn::backwardData;
  made.x = tensor(forward ? dnn::forwardX : data ? dnn::dataDx : dnn::filterX);
  made.w = tensor(forward ? dnn::forwardW : data ? dnn::dataW : dnn::filterDw);
  made.y = tensor(forward ? dnn::forwardY : data ? dnn::dataDy : dnn::filterDy);
  made.result = forward ? made.y.id : data ? made.x.id : made.w.id;
}

} // namespace

DnnConvolution readConvolution(const DnnObject &graph) {
  DnnConvolution made;
  int64_t value = 0; // the tensor that the operations so far give
  bool isVirtual = false;
  for (DnnDescriptor handle : graph.values<DnnDescriptor>(dnn::graphOperations, dnn::descriptorType)) {
    const DnnObject &operation = dnnObject(handle, -1);
    if (!made.operation) {
      readOperation(operation, made);
      value = made.result;
      isVirtual = made.operation == dnn::forward && made.y.isVirtual;
      continue;
    }
    const DnnObject &pointwise = operation.object(dnn::operationPointwise, dnn::pointwise);
    int mode = pointwise.values<int>(dnn::pointwiseMode, dnn::pointwiseModeType)[0];
    DnnTensorFacts x = tensorOf(operation.object(dnn::pointwiseX, dnn::tensor));
    DnnTensorFacts y = tensorOf(operation.object(dnn::pointwiseY, dnn::tensor));
    if (x.id != value || !isVirtual || made.relu || (mode != dnn::add && mode != dnn::relu))
      fatal("a cuDNN graph that is no convolution, bias, ReLU");
    if (mode == dnn::add) {
      made.bias = tensorOf(operation.object(dnn::pointwiseB, dnn::tensor));
      if (made.hasBias || made.bias.sizes != std::array<int64_t, 4>{1, made.y.sizes[1], 1, 1})
        fatal("a cuDNN bias that is not a number for each channel");
      made.hasBias = true;
    }
    made.relu = mode == dnn::relu;
    value = made.result = y.id;
    isVirtual = y.isVirtual;
  }
  if (isVirtual)
    fatal("a cuDNN graph whose result is not stored");
  bool fits = made.x.sizes[0] == made.y.sizes[0] && made.w.sizes[0] == made.y.sizes[1] &&
              made.x.sizes[1] % made.w.sizes[1] == 0;
  for (size_t axis = 0; axis < 2; ++axis) {
    int64_t reach = (made.w.sizes[2 + axis] - 1) * made.dilation[axis] + 1;
    fits &= (made.x.sizes[2 + axis] + made.low[axis] + made.high[axis] - reach) / made.stride[axis] + 1 ==
            made.y.sizes[2 + axis];
  }
  if (!fits)
    fatal("a cuDNN convolution of tensors whose sizes do not fit");
  return made;
}

static const DnnObject &graphOf(const DnnObject &plan, int64_t &engineIndex) {
  const DnnObject &engine =
      plan.object(dnn::planConfiguration, dnn::configuration).object(dnn::configurationEngine, dnn::engine);
  engineIndex = engine.values<int64_t>(dnn::engineIndex, dnn::int64Type)[0];
  return engine.object(dnn::engineGraph, dnn::graph);
}

bool isSupported(const DnnObject &plan) {
  int64_t engine = 0;
  DnnConvolution convolution = readConvolution(graphOf(plan, engine));
  return engine != 2 || convolution.groups() == 1;
}

// The value of engine 3's knob; 0: nobody chose one.
static int64_t knobOf(const DnnObject &plan) {
  const DnnObject &configuration = plan.object(dnn::planConfiguration, dnn::configuration);
  if (!configuration.attributes.count(dnn::configurationKnobs))
    return 0;
  DnnDescriptor choice = configuration.values<DnnDescriptor>(dnn::configurationKnobs, dnn::descriptorType)[0];
  const DnnObject &knob = dnnObject(choice, dnn::knobChoice);
  if (knob.values<int>(dnn::knobChoiceType, dnn::knobType)[0] != dnnKnob)
    fatal("a cuDNN configuration with a knob that its engine does not have");
  return knob.values<int64_t>(dnn::knobChoiceValue, dnn::int64Type)[0];
}

uint64_t dnnWorkspace(const DnnObject &plan) {
  int64_t engine = 0, knob = knobOf(plan);
  (void)graphOf(plan, engine);
  return engine != 3 ? 0 : knob ? 8192 * static_cast<uint64_t>(knob) : 1 << 20;
}

std::function<void()> makeWork(const DnnObject &plan, const DnnObject &pack, int device) {
  int64_t engine = 0;
  DnnConvolution c = readConvolution(graphOf(plan, engine));
  if (engine < 2)
    fatal("cudnnBackendExecute of an engine that is not deterministic, or not in F32");
  auto ids = pack.values<int64_t>(dnn::packIds, dnn::int64Type);
  auto pointers = pack.values<void *>(dnn::packPointers, dnn::pointerType);
  const char *call = "cudnnBackendExecute";
  auto memory = [&](const DnnTensorFacts &tensor, int64_t id) {
    int64_t elements = tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3];
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == id)
        return onDevice<float>(pointers.at(i), static_cast<uint64_t>(elements), device,
                               static_cast<uint64_t>(tensor.alignment), call);
    fatal("cudnnBackendExecute without tensor " + std::to_string(id));
  };
  bool forward = c.operation == dnn::forward;
  float *x = memory(c.x, c.x.id), *w = memory(c.w, c.w.id), *y = memory(c.y, forward ? c.result : c.y.id);
  const float *bias = c.hasBias ? memory(c.bias, c.bias.id) : nullptr;
  uint64_t room = dnnWorkspace(plan);
  std::byte *workspace =
      room ? onDevice<std::byte>(pack.values<void *>(dnn::packWorkspace, dnn::pointerType)[0], room, device, 256, call)
           : nullptr;
  unsigned chains = 1 + static_cast<unsigned>((engine + knobOf(plan) + c.x.sizes[0]) % 7);
  return [=] {
    if (workspace)
      std::memset(workspace, 0x5a, room);
    auto at = [](const DnnTensorFacts &t, int64_t n, int64_t channel, int64_t row, int64_t column) {
      return n * t.strides[0] + channel * t.strides[1] + row * t.strides[2] + column * t.strides[3];
    };
    const DnnTensorFacts &result = forward ? c.y : c.operation == dnn::backwardData ? c.x : c.w;
    int64_t elements = result.sizes[0] * result.sizes[1] * result.sizes[2] * result.sizes[3];
    std::vector<ChainSum> sums(static_cast<size_t>(elements), ChainSum(chains));
    int64_t perGroup = c.w.sizes[0] / c.groups();
    for (int64_t n = 0; n < c.y.sizes[0]; ++n)
      for (int64_t f = 0; f < c.y.sizes[1]; ++f)
        for (int64_t oh = 0; oh < c.y.sizes[2]; ++oh)
          for (int64_t ow = 0; ow < c.y.sizes[3]; ++ow)
            for (int64_t kh = 0; kh < c.w.sizes[2]; ++kh)
              for (int64_t kw = 0; kw < c.w.sizes[3]; ++kw) {
                int64_t row = oh * c.stride[0] + kh * c.dilation[0] - c.low[0];
                int64_t column = ow * c.stride[1] + kw * c.dilation[1] - c.low[1];
                if (row < 0 || column < 0 || row >= c.x.sizes[2] || column >= c.x.sizes[3])
                  continue;
                for (int64_t channel = 0; channel < c.w.sizes[1]; ++channel) {
                  int64_t xs = at(c.x, n, f / perGroup * c.w.sizes[1] + channel, row, column);
                  int64_t ws = at(c.w, f, channel, kh, kw), ys = at(c.y, n, f, oh, ow);
                  if (forward)
                    sums[static_cast<size_t>(ys)].add(x[xs], w[ws]);
                  else if (c.operation == dnn::backwardData)
                    sums[static_cast<size_t>(xs)].add(y[ys], w[ws]);
                  else
                    sums[static_cast<size_t>(ws)].add(x[xs], y[ys]);
                }
              }
    float *to = forward ? y : c.operation == dnn::backwardData ? x : w;
    for (int64_t i = 0; i < elements; ++i) {
      float value = sums[static_cast<size_t>(i)].get() + (bias ? bias[i % c.y.sizes[1]] : 0.f);
      to[i] = c.relu && !(value > 0) ? 0 : value;
    }
  };
}

} // namespace simulated
