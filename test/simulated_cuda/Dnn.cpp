// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph API on the simulated driver: descriptors and what must hold of them. DnnExecute.cpp computes.
#include "Dnn.h"

#include <algorithm>

using namespace simulated;

#define MTC_SIM_DECLARE(member, symbol, type, parameters) extern "C" MT_API type symbol parameters;
MTRUN_DNN_FUNCTIONS(MTC_SIM_DECLARE)

namespace simulated {

namespace {
Handles<DnnContextObject> contexts{"cuDNN handle"};
Handles<DnnObject> objects{"cuDNN descriptor"};
Leftovers leftovers("simulated cuDNN", contexts, objects);
} // namespace

DnnObject &dnnObject(DnnDescriptor handle, int type) {
  DnnObject &object = objects.get(static_cast<DnnObject *>(handle));
  if (type >= 0 && object.type != type)
    fatal("a cuDNN descriptor of type " + std::to_string(type) + " was expected, found " + std::to_string(object.type));
  return object;
}

const DnnObject &DnnObject::object(int attribute, int expected) const {
  DnnObject &found = dnnObject(values<DnnDescriptor>(attribute, dnn::descriptorType)[0], expected);
  if (!found.ready)
    fatal("a cuDNN descriptor that is not finalized");
  return found;
}

namespace {

// Attributes that must be there before a descriptor is finalized.
const std::map<int, std::vector<int>> required = {
    {dnn::tensor, {dnn::tensorAlignment, dnn::tensorType, dnn::tensorDimensions, dnn::tensorStrides, dnn::tensorId}},
    {dnn::convolution,
     {dnn::computeType, dnn::convolutionMode, dnn::dilations, dnn::filterStrides, dnn::postPaddings, dnn::prePaddings,
      dnn::spatialDimensions}},
    {dnn::forward, {700, 701, 702, 703, 704, 705}},
    {dnn::backwardData, {706, 707, 708, 709, 710, 711}},
    {dnn::backwardFilter, {712, 713, 714, 715, 716, 717}},
    {dnn::pointwise, {dnn::pointwiseMode, dnn::pointwiseMath}},
    {dnn::pointwiseOperation, {dnn::operationPointwise, dnn::pointwiseX, dnn::pointwiseY}},
    {dnn::graph, {dnn::graphHandle, dnn::graphOperations}},
    {dnn::heuristics, {dnn::heuristicsMode, dnn::heuristicsGraph}},
    {dnn::engine, {dnn::engineGraph, dnn::engineIndex}},
    {dnn::knobChoice, {dnn::knobChoiceType, dnn::knobChoiceValue}},
    {dnn::configuration, {dnn::configurationEngine}},
    {dnn::plan, {dnn::planHandle, dnn::planConfiguration}},
    {dnn::variantPack, {dnn::packIds, dnn::packPointers, dnn::packWorkspace}}};

size_t sizeOf(int type) {
  switch (type) {
  case dnn::handleType:
  case dnn::int64Type:
  case dnn::pointerType:
  case dnn::descriptorType:
    return 8;
  case dnn::booleanType:
    return 1;
  default:
    return 4;
  }
}

// Everything that a descriptor names is alive and finalized.
void checkReferences(const DnnObject &object) {
  for (const auto &[name, attribute] : object.attributes)
    if (attribute.type == dnn::descriptorType)
      for (DnnDescriptor other : object.values<DnnDescriptor>(name, dnn::descriptorType))
        if (!dnnObject(other, -1).ready)
          fatal("a cuDNN descriptor that names one that is not finalized");
}

// In F32 nothing that is allowed is proposed for gradients to images, but as a fallback.
std::vector<DnnProposal> proposalsOf(const DnnObject &heuristics) {
  if (heuristics.values<int>(dnn::heuristicsMode, dnn::heuristicsModeType)[0] == dnn::fallbackMode)
    return {{4, 0}};
  if (readConvolution(heuristics.object(dnn::heuristicsGraph, dnn::graph)).operation == dnn::backwardData)
    return {{0, 0}, {1, 0}};
  return {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {3, 2}};
}

} // namespace
} // namespace simulated

size_t cudnnGetVersion() { return 91900; }

const char *cudnnGetErrorString(int status) {
  return status == dnnInternalError  ? "CUDNN_STATUS_INTERNAL_ERROR"
         : status == dnnNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                     : "CUDNN_STATUS_NOT_INITIALIZED";
}

int cudnnCreate(DnnHandle *handle) {
  int device = simulator().device("cudnnCreate");
  if (simulator().fails("cudnnCreate"))
    return 1001;
  *handle = contexts.make();
  (*handle)->device = device;
  return dnn::success;
}

int cudnnDestroy(DnnHandle handle) {
  bool fails = simulator().fails("cudnnDestroy", true);
  contexts.free(handle);
  return fails ? dnnInternalError : dnn::success;
}

int cudnnSetStream(DnnHandle handle, Stream stream) {
  DnnContextObject &context = contexts.get(handle);
  if (simulator().streams.get(stream).device != context.device)
    fatal("cudnnSetStream of a stream of another device");
  if (simulator().fails("cudnnSetStream"))
    return dnnInternalError;
  context.stream = stream;
  return dnn::success;
}

int cudnnBackendCreateDescriptor(int type, DnnDescriptor *descriptor) {
  if (!required.count(type))
    fatal("cudnnBackendCreateDescriptor of type " + std::to_string(type));
  if (simulator().fails("cudnnBackendCreateDescriptor"))
    return dnnInternalError;
  DnnObject *object = objects.make();
  object->type = type;
  *descriptor = object;
  return dnn::success;
}

int cudnnBackendDestroyDescriptor(DnnDescriptor descriptor) {
  bool fails = simulator().fails("cudnnBackendDestroyDescriptor", true);
  objects.free(static_cast<DnnObject *>(descriptor));
  return fails ? dnnInternalError : dnn::success;
}

int cudnnBackendSetAttribute(DnnDescriptor descriptor, int attribute, int type, int64_t count, const void *values) {
  DnnObject &object = dnnObject(descriptor, -1);
  if (object.ready || count < 1 || !values)
    fatal("cudnnBackendSetAttribute of a descriptor that is finalized, or of no values");
  if (simulator().fails("cudnnBackendSetAttribute"))
    return dnnInternalError;
  auto *bytes = static_cast<const std::byte *>(values);
  object.attributes[attribute] = {type, {bytes, bytes + sizeOf(type) * static_cast<size_t>(count)}};
  return dnn::success;
}

int cudnnBackendFinalize(DnnDescriptor descriptor) {
  DnnObject &object = dnnObject(descriptor, -1);
  if (object.ready)
    fatal("cudnnBackendFinalize of a descriptor that is finalized");
  for (int attribute : required.at(object.type))
    if (!object.attributes.count(attribute))
      fatal("a cuDNN descriptor of type " + std::to_string(object.type) + " without attribute " +
            std::to_string(attribute));
  checkReferences(object);
  if (simulator().fails("cudnnBackendFinalize"))
    return dnnInternalError;
  if (object.type == dnn::graph)
    (void)readConvolution(object);
  if (object.type == dnn::engine && object.values<int64_t>(dnn::engineIndex, dnn::int64Type)[0] >= dnnEngines)
    return dnnNotSupported;
  if (object.type == dnn::plan && !isSupported(object))
    return dnnNotSupported;
  object.ready = true;
  return dnn::success;
}

// What the library gives: proposals, and facts of engines and plans.
int cudnnBackendGetAttribute(DnnDescriptor descriptor, int attribute, int type, int64_t asked, int64_t *count,
                             void *values) {
  DnnObject &object = dnnObject(descriptor, -1);
  if (!object.ready)
    fatal("cudnnBackendGetAttribute of a descriptor that is not finalized");
  if (simulator().fails("cudnnBackendGetAttribute"))
    return dnnInternalError;
  auto give = [&](const void *from, size_t number) {
    *count = static_cast<int64_t>(number);
    std::memcpy(values, from, sizeOf(type) * std::min(number, static_cast<size_t>(asked)));
    return dnn::success;
  };
  auto *into = static_cast<DnnDescriptor *>(values);
  auto copyOf = [&](const DnnObject &from, DnnDescriptor to) { dnnObject(to, from.type) = from; };
  if (object.type == dnn::heuristics && attribute == dnn::heuristicsResults) {
    std::vector<DnnProposal> proposals = proposalsOf(object);
    auto most = static_cast<int64_t>(proposals.size());
    *count = values ? std::min(asked, most) : most;
    for (int64_t i = 0; values && i < *count; ++i) {
      DnnObject &configuration = dnnObject(into[i], dnn::configuration);
      configuration.proposal = proposals[static_cast<size_t>(i)];
      configuration.graph = object.values<DnnDescriptor>(dnn::heuristicsGraph, dnn::descriptorType)[0];
      configuration.ready = true;
    }
    return dnn::success;
  }
  if (object.type == dnn::configuration && attribute == dnn::configurationEngine && object.proposal) {
    DnnObject engine;
    engine.type = dnn::engine;
    engine.ready = true;
    engine.setValue(dnn::engineIndex, dnn::int64Type, object.proposal->engine);
    copyOf(engine, into[0]);
    *count = 1;
    return dnn::success;
  }
  // As cuDNN's own: asked with room for none, it says that there are none.
  if (object.type == dnn::configuration && attribute == dnn::configurationKnobs && object.proposal) {
    *count = asked > 0 && object.proposal->knob ? 1 : 0;
    DnnObject knob;
    knob.type = dnn::knobChoice;
    knob.ready = true;
    knob.setValue(dnn::knobChoiceType, dnn::knobType, dnnKnob);
    knob.setValue(dnn::knobChoiceValue, dnn::int64Type, object.proposal->knob);
    if (*count && values)
      copyOf(knob, into[0]);
    return dnn::success;
  }
  if (object.type == dnn::engine && attribute == dnn::engineNotes) {
    static constexpr int nondeterministic[] = {dnn::noteNondeterministic}, tensorCore[] = {dnn::noteTensorCore};
    int64_t index = object.values<int64_t>(dnn::engineIndex, dnn::int64Type)[0];
    return give(index == 0 ? nondeterministic : tensorCore, index < 2);
  }
  if (object.type == dnn::plan && attribute == dnn::planWorkspace) {
    int64_t bytes = static_cast<int64_t>(dnnWorkspace(object));
    return give(&bytes, 1);
  }
  auto found = object.attributes.find(attribute);
  if (found == object.attributes.end() || found->second.type != type)
    fatal("cudnnBackendGetAttribute of attribute " + std::to_string(attribute));
  return give(found->second.bytes.data(), found->second.bytes.size() / sizeOf(type));
}

int cudnnBackendExecute(DnnHandle handle, DnnDescriptor plan, DnnDescriptor pack) {
  const DnnContextObject &context = contexts.get(handle);
  const DnnObject &ready = dnnObject(plan, dnn::plan), &pointers = dnnObject(pack, dnn::variantPack);
  if (!ready.ready || !pointers.ready || !context.stream)
    fatal("cudnnBackendExecute of descriptors that are not finalized, or without a stream");
  if (ready.values<DnnHandle>(dnn::planHandle, dnn::handleType)[0] != handle)
    fatal("cudnnBackendExecute with another handle than its plan's");
  if (simulator().device("cudnnBackendExecute") != context.device)
    fatal("cudnnBackendExecute on another device than its handle's");
  std::function<void()> work = makeWork(ready, pointers, context.device);
  if (simulator().fails("cudnnBackendExecute"))
    return dnnInternalError;
  enqueueCall(simulator().streams.get(context.stream), std::move(work));
  return dnn::success;
}
