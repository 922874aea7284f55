// SPDX-License-Identifier: Apache-2.0
//
// The two losses of the standard. Scores are [N, C, D...], labels [N, D...].
#include "frontend/onnx/OpTable.h"

using namespace mlir;

namespace mtc::onnx {
namespace {

using logical::Value;

// Labels that count, and those of them that are ignored as class 0.
struct Labels {
  Value ids;
  std::optional<Value> ignored;
};

Labels readLabels(Call &call, const Value &scores) {
  Value ids = call.value(1);
  if (!ids.isInteger() || scores.rank() < 2 || ids.rank() + 1 != scores.rank())
    throw Refused("expected scores [N, C, ...] and labels [N, ...] of integers, found " +
                  logical::describe(scores.shape()) + " and " + logical::describe(ids.shape()));
  if (!call.hasAttribute("ignore_index"))
    return {ids, std::nullopt};
  int64_t ignored = call.integer("ignore_index", 0);
  Value hidden =
      logical::compare(call.ops, mt::Compare::eq, ids, call.ops.number(static_cast<double>(ignored), call.ops.i32()));
  return {logical::select(call.ops, hidden, call.ops.number(0, call.ops.i32()), ids), hidden};
}

// The classes as the last axis.
Value classesLast(const Value &scores) { return logical::moveAxis(scores, 1, scores.rank() - 1); }

// The element of the last axis that an id says. A product with zeros would make NaN of infinities.
Value picked(Call &call, const Value &values, const Value &ids) {
  int64_t classes = values.size(values.rank() - 1).times, last = static_cast<int64_t>(values.rank()) - 1;
  Value hot = logical::oneHot(call.ops, ids, classes);
  Value chosen = logical::compare(call.ops, mt::Compare::ne, hot, call.ops.number(0, hot.element()));
  return logical::reduce(call.ops, mt::Reduction::sum,
                         logical::select(call.ops, chosen, values, call.ops.number(0, call.ops.real())), {last});
}

// Weighted by class, without what is ignored; a mean is of the weights.
Value reduced(Call &call, Value loss, const Labels &labels) {
  logical::Ops &ops = call.ops;
  std::string reduction = call.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    throw Refused("expected a reduction of none, sum or mean, found " + reduction);
  std::optional<Value> weights;
  if (call.has(2)) {
    Value classes = call.floats(2);
    if (classes.rank() != 1)
      throw Refused("expected a weight for each class, found " + logical::describe(classes.shape()));
    weights = logical::take(ops, classes, labels.ids, 0);
  }
  Value zero = ops.number(0, ops.real());
  if (labels.ignored)
    weights = logical::select(ops, *labels.ignored, zero, weights ? *weights : ops.number(1, ops.real()));
  if (weights)
    loss = logical::binary<mt::MulOp>(ops, labels.ignored ? logical::select(ops, *labels.ignored, zero, loss) : loss,
                                      *weights);
  if (reduction == "none")
    return loss;
  SmallVector<int64_t> axes;
  Size count;
  for (size_t i = 0; i < loss.rank(); ++i) {
    axes.push_back(static_cast<int64_t>(i));
    count = {logical::multiply(count.times, loss.size(i).times), count.batch || loss.size(i).batch};
  }
  Value sum = logical::reduce(ops, mt::Reduction::sum, loss, axes);
  if (reduction == "sum")
    return sum;
  if (!weights)
    return logical::mean(ops, loss, axes);
  Value whole = logical::broadcast(*weights, loss.shape());
  return logical::binary<mt::DivOp>(ops, sum, logical::reduce(ops, mt::Reduction::sum, whole, axes));
}

void buildNegativeLogLikelihood(Call &call) {
  Value scores = call.floats(0);
  Labels labels = readLabels(call, scores);
  Value loss = logical::unary<mt::NegOp>(call.ops, picked(call, classesLast(scores), labels.ids));
  call.give(reduced(call, loss, labels));
}

// The second result: the logarithms of the probabilities, in the shape of the scores.
void buildSoftmaxCrossEntropy(Call &call) {
  Value scores = call.floats(0);
  Labels labels = readLabels(call, scores);
  Value loss = logical::crossEntropy(call.ops, classesLast(scores), labels.ids);
  call.give(reduced(call, loss, labels));
  if (call.node.outputs.size() > 1)
    call.give(logical::softmax(call.ops, scores, 1, true));
}

} // namespace

llvm::ArrayRef<OpEntry> lossOps() {
  static constexpr OpEntry entries[] = {{"NegativeLogLikelihoodLoss", buildNegativeLogLikelihood},
                                        {"SoftmaxCrossEntropyLoss", buildSoftmaxCrossEntropy}};
  return entries;
}

} // namespace mtc::onnx
