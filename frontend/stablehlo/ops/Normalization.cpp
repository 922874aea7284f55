// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization of StableHLO, and its gradient, as the formulas of mt.batch_normalization.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::binary;
using logical::Value;

// The operands of an op that normalizes: the channels are one axis of `x`.
class Normalization {
public:
  explicit Normalization(Call &call) : call(call), x(call.value(0)) {
    channel = logical::checkAxis(call.integer("feature_index", -1), x.rank());
    auto found = dyn_cast_or_null<FloatAttr>(call.attribute("epsilon"));
    if (!x.isFloat() || !found)
      throw Refused("expected floats and an epsilon to normalize with");
    epsilon = found.getValueAsDouble();
    for (size_t i = 0; i < x.rank(); ++i)
      if (i != channel)
        axes.push_back(static_cast<int64_t>(i));
  }

  // A number for each channel, as a value that broadcasts.
  Value operand(size_t index) const { return broadcasting(call.value(index)); }
  Value broadcasting(const Value &value) const {
    if (value.rank() != 1 || !(value.size(0) == x.size(channel)) || !value.isFloat())
      throw Refused("expected a float for each of " + x.size(channel).text() + " channels, found " +
                    logical::describe(value.shape()));
    return logical::expandDims(value, llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(x.rank() - channel))));
  }
  Value factor(const Value &variance) const {
    return logical::unary<mt::RsqrtOp>(call.ops, binary<mt::AddOp>(call.ops, variance, epsilon));
  }
  Value sum(const Value &value) const { return logical::reduce(call.ops, mt::Reduction::sum, value, axes); }
  Value mean(const Value &value) const { return logical::mean(call.ops, value, axes); }
  template <typename Op> Value make(const Value &a, const Value &b) const { return binary<Op>(call.ops, a, b); }
  Value scaled(const Value &centred, const Value &variance) const {
    Value all = make<mt::MulOp>(centred, make<mt::MulOp>(operand(1), factor(variance)));
    return make<mt::AddOp>(all, operand(2));
  }

  Call &call;
  Value x;
  size_t channel;
  double epsilon;
  SmallVector<int64_t> axes;
};

void buildInference(Call &call) {
  Normalization of(call);
  call.give(of.scaled(of.make<mt::SubOp>(of.x, of.operand(3)), of.operand(4)));
}

void buildTraining(Call &call) {
  Normalization of(call);
  Value mean = of.mean(of.x), centred = of.make<mt::SubOp>(of.x, of.broadcasting(mean));
  Value variance = of.mean(logical::unary<mt::SquareOp>(call.ops, centred));
  call.give(of.scaled(centred, of.broadcasting(variance)));
  call.give(mean);
  call.give(variance);
}

// As BatchNormalizationOp::buildGradient.
void buildGradient(Call &call) {
  Normalization of(call);
  Value dy = call.value(4);
  if (!(dy.shape() == of.x.shape()) || !dy.isFloat())
    throw Refused("expected a gradient of the shape of the normalized value");
  Value centred = of.make<mt::SubOp>(of.x, of.operand(2)), factor = of.factor(of.operand(3));
  Value flat = of.factor(call.value(3));
  Value dbeta = of.sum(dy), dgamma = of.make<mt::MulOp>(of.sum(of.make<mt::MulOp>(dy, centred)), flat);
  Size size;
  for (int64_t axis : of.axes)
    size = {logical::multiply(size.times, of.x.size(axis).times), size.batch || of.x.size(axis).batch};
  Value count = size.batch ? call.ops.count(size) : call.ops.number(static_cast<double>(size.times), call.ops.real());
  Value first = of.broadcasting(of.make<mt::DivOp>(dbeta, count));
  Value second = of.broadcasting(of.make<mt::DivOp>(of.make<mt::MulOp>(flat, dgamma), count));
  Value inner = of.make<mt::SubOp>(of.make<mt::SubOp>(dy, first), of.make<mt::MulOp>(centred, second));
  call.give(of.make<mt::MulOp>(inner, of.make<mt::MulOp>(of.operand(1), factor)));
  call.give(dgamma);
  call.give(dbeta);
}

} // namespace

llvm::ArrayRef<OpEntry> normalizationOps() {
  static constexpr OpEntry entries[] = {{"batch_norm_inference", buildInference, 5},
                                        {"batch_norm_training", buildTraining, 3},
                                        {"batch_norm_grad", buildGradient, 5}};
  return entries;
}

} // namespace mtc::stablehlo
