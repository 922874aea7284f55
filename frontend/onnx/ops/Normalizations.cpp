// SPDX-License-Identifier: Apache-2.0
//
// Normalization, and dropout.
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

constexpr double defaultEpsilon = 1e-5;

// In training with the statistics of the batch, however the file was exported; in prediction with the running ones.
void buildBatchNormalization(Call &call) {
  Value images = call.value(0);
  if (images.rank() < 2)
    throw Refused("expected two axes or more, found " + logical::describe(images.shape()));
  constexpr double defaultMomentum = 0.9;
  double epsilon = call.number("epsilon", defaultEpsilon), momentum = call.number("momentum", defaultMomentum);
  call.ignore("training_mode");
  if (!call.integer("spatial", 1))
    throw Refused("statistics of each element (spatial = 0); of each channel are supported");
  SmallVector<Value> parameters;
  for (size_t i = 1; i < 5; ++i) {
    parameters.push_back(call.value(i));
    if (parameters.back().rank() != 1 || !(parameters.back().size(0) == images.size(1)))
      throw Refused("expected " + images.size(1).text() + " numbers, one a channel, found " +
                    logical::describe(parameters.back().shape()));
  }
  for (size_t i = 3; i < 5; ++i)
    if (!parameters[i - 1].stored.getDefiningOp<mt::VariableOp>())
      throw Refused("expected a mean and a variance that are initializers, found others");
  call.give(logical::batchNormalization(call.ops, images, parameters, momentum, epsilon));
}

Value scaled(Call &call, Value value, size_t scale, size_t centre, bool perChannel) {
  size_t rank = value.rank();
  auto operand = [&](size_t index) {
    return perChannel ? logical::perChannel(call.value(index), rank) : call.value(index);
  };
  if (call.has(scale))
    value = logical::binary<mt::MulOp>(call.ops, value, operand(scale));
  return call.has(centre) ? logical::binary<mt::AddOp>(call.ops, value, operand(centre)) : value;
}

// From the attribute axis to the last one.
SmallVector<int64_t> normalizedAxes(Call &call, size_t rank) {
  auto axes = llvm::seq<int64_t>(Call::axisOf(call.integer("axis", -1), rank), rank);
  return {axes.begin(), axes.end()};
}

void buildLayerNormalization(Call &call) {
  Value value = call.value(0);
  call.ignore("stash_type");
  SmallVector<int64_t> axes = normalizedAxes(call, value.rank());
  double epsilon = call.number("epsilon", defaultEpsilon);
  Value normalized = logical::normalize(call.ops, value, axes, epsilon);
  call.give(scaled(call, normalized, 1, 2, false));
  if (call.node.outputs.size() < 2)
    return;
  Value mean = logical::keepDims(logical::mean(call.ops, value, axes), axes);
  Value centred = logical::unary<mt::SquareOp>(call.ops, logical::binary<mt::SubOp>(call.ops, value, mean));
  Value variance = logical::keepDims(logical::mean(call.ops, centred, axes), axes);
  call.give(mean);
  call.give(logical::unary<mt::RsqrtOp>(call.ops, logical::binary<mt::AddOp>(call.ops, variance, epsilon)));
}

void buildRmsNormalization(Call &call) {
  Value value = call.value(0);
  call.ignore("stash_type");
  SmallVector<int64_t> axes = normalizedAxes(call, value.rank());
  Value mean = logical::mean(call.ops, logical::unary<mt::SquareOp>(call.ops, value), axes);
  mean = logical::binary<mt::AddOp>(call.ops, mean, call.number("epsilon", defaultEpsilon));
  Value scale = logical::keepDims(logical::unary<mt::RsqrtOp>(call.ops, mean), axes);
  call.give(scaled(call, logical::binary<mt::MulOp>(call.ops, value, scale), 1, 2, false));
}

// In groups of channels; one channel each: instance normalization.
Value normalizedInGroups(Call &call, const Value &images, int64_t groups) {
  size_t rank = images.rank();
  if (rank < 2 || images.size(1).batch || groups < 1 || images.size(1).times % groups)
    throw Refused("expected channels that " + std::to_string(groups) + " groups divide, found " +
                  logical::describe(images.shape()));
  logical::Shape shape = images.shape();
  int64_t channels = shape[1].times;
  shape[1] = channels / groups;
  shape.insert(shape.begin() + 1, Size(groups));
  auto axes = llvm::to_vector(llvm::seq<int64_t>(2, static_cast<int64_t>(rank) + 1));
  Value parts = logical::reshape(call.ops, images, shape);
  return logical::reshape(call.ops, logical::normalize(call.ops, parts, axes, call.number("epsilon", defaultEpsilon)),
                          images.shape());
}

void buildInstanceNormalization(Call &call) {
  Value images = call.value(0);
  int64_t channels = images.rank() > 1 ? images.size(1).times : 0;
  call.give(scaled(call, normalizedInGroups(call, images, channels), 1, 2, true));
}

// Opset 21 has a scale a channel, opset 18 one a group.
void buildGroupNormalization(Call &call) {
  Value images = call.value(0);
  int64_t groups = call.integer("num_groups", 0);
  call.ignore("stash_type");
  Value normalized = normalizedInGroups(call, images, groups);
  int64_t wanted = call.opset < 21 ? groups : images.size(1).times;
  for (size_t i = 1; i < 3; ++i)
    if (call.value(i).rank() != 1 || !(call.value(i).size(0) == Size(wanted)))
      throw Refused("expected a scale and a bias of " + std::to_string(wanted) + " numbers, one a " +
                    (call.opset < 21 ? "group" : "channel") + ", found " + logical::describe(call.value(i).shape()));
  if (call.opset >= 21)
    return call.give(scaled(call, normalized, 1, 2, true));
  auto ofChannels = [&](size_t index) { // each number for the channels of its group
    Size each = images.size(1).times / groups;
    Value spread = logical::broadcast(logical::expandDims(call.value(index), {1}), {Size(groups), each});
    return logical::perChannel(logical::reshape(call.ops, spread, {images.size(1)}), images.rank());
  };
  normalized = logical::binary<mt::MulOp>(call.ops, normalized, ofChannels(1));
  call.give(logical::binary<mt::AddOp>(call.ops, normalized, ofChannels(2)));
}

// Random while training, however the file was exported.
void buildDropout(Call &call) {
  call.ignore("seed");
  if (call.known(0))
    return call.results.push_back(call.inputs[0]);
  constexpr double defaultRatio = 0.5;
  double ratio = call.opset < 12 ? call.number("ratio", defaultRatio)
                 : call.has(1)   ? call.expectNumber(1, "a ratio")
                                 : defaultRatio;
  if (!(ratio >= 0 && ratio < 1))
    throw Refused("expected a ratio from 0 to below 1, found " + std::to_string(ratio));
  Value value = call.value(0);
  if (ratio == 0)
    return call.give(value);
  if (batchOf(value.flat()) < 0 || !mt::isSplit(value.type()))
    throw Refused("a dropout of what all samples share");
  value = logical::canonical(call.ops, value);
  mlir::Value dropped =
      mt::DropoutOp::create(call.ops.builder, call.ops.location, value.type(), value.stored, mlir::Value(), call.stream,
                            llvm::APFloat(static_cast<float>(ratio)), ArrayRef<int64_t>());
  call.give(Value{dropped, value.axes});
}

} // namespace

llvm::ArrayRef<OpEntry> normalizationOps() {
  static constexpr OpEntry entries[] = {
      {"BatchNormalization", buildBatchNormalization}, {"LayerNormalization", buildLayerNormalization},
      {"RMSNormalization", buildRmsNormalization},     {"InstanceNormalization", buildInstanceNormalization},
      {"GroupNormalization", buildGroupNormalization}, {"Dropout", buildDropout}};
  return entries;
}

} // namespace mtc::onnx
