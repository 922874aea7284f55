// SPDX-License-Identifier: Apache-2.0
//
// A metric of Keras' classes in a trace: what a file that has the class would have.
#include "frontend/graph/Lower.h"
#include "frontend/training/Criteria.h"

using namespace mlir;

namespace mtc::lower {
namespace {

RankedTensorType typeOf(mlir::Value value) { return cast<RankedTensorType>(value.getType()); }

mlir::Value shaped(OpBuilder &builder, Location location, mlir::Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = typeOf(value).clone(shape);
  return type == value.getType() ? value : mt::ReshapeOp::create(builder, location, type, value).getResult();
}

mlir::Value converted(OpBuilder &builder, Location location, mlir::Value value, Type element) {
  RankedTensorType type = typeOf(value).clone(element);
  return type == value.getType() ? value : mt::CastOp::create(builder, location, type, value).getResult();
}

} // namespace

LogicalResult lowerMetric(OpBuilder &builder, graph::MetricOp op) {
  Location location = op.getLoc();
  Json object;
  if (std::string problem = parseJson(op.getObject(), object); !problem.empty())
    return op.emitError() << "metric " << op.getName() << ": " << problem;
  std::string name = training::objectName(object);
  bool counted = training::isCounted(name);
  const training::CriterionEntry *entry = counted ? nullptr : training::criterionOfClass(name);
  if (training::isCustom(object) || (!counted && !entry) || op.getOperands().size() < 2 ||
      op.getOperands().size() > 3 ||
      llvm::any_of(op.getOperands(), [](mlir::Value value) { return !mt::isSplit(value.getType()); }))
    return op.emitError() << "metric " << op.getName()
                          << ": expected a class of Keras, and predictions, targets and weights of samples";
  mlir::Value predictions = converted(builder, location, op.getOperands()[0], builder.getF32Type()),
              targets = op.getOperands()[1];
  bool flat = typeOf(predictions).getRank() == 1;
  SmallVector<int64_t> shape(typeOf(predictions).getShape());
  if (flat)
    shape.push_back(1);
  predictions = shaped(builder, location, predictions, shape);
  int64_t elements = mt::elementsPerRow(predictions.getType());
  bool labels = entry ? entry->sparse : training::takesLabels(name, training::objectConfig(object));
  if (labels)
    shape.pop_back();
  int64_t wanted = labels ? elements / typeOf(predictions).getShape().back() : elements;
  if (mt::elementsPerRow(targets.getType()) != wanted)
    return op.emitError() << "metric " << op.getName() << ": expected " << wanted << " targets of a sample, found "
                          << mt::elementsPerRow(targets.getType());
  targets = converted(builder, location, shaped(builder, location, targets, shape),
                      labels ? Type(builder.getI32Type()) : Type(builder.getF32Type()));
  Config config(training::objectConfig(object),
                [&](const std::string &message) { op.emitError() << "metric " << op.getName() << ": " << message; });
  training::Criterion criterion = {builder, location, predictions, targets, config};
  if (flat && entry && entry->averages)
    config.error("expected predictions of 2 axes or more with the batch, found 1");
  mlir::Value samples;
  if (op.getOperands().size() == 3) {
    mlir::Value weights = converted(builder, location, op.getOperands()[2], builder.getF32Type());
    if (mt::elementsPerRow(weights.getType()) == 1)
      samples = shaped(builder, location, weights, shape.front());
    else if (counted && mt::elementsPerRow(weights.getType()) == elements)
      criterion.weights = shaped(builder, location, weights, typeOf(predictions).getShape());
    else
      config.error("expected a weight for each sample or for each element, found another number of them");
  }
  SmallVector<training::Measure> measures =
      config.failed() ? SmallVector<training::Measure>() : training::buildKerasMetric(object, entry, criterion);
  if (config.failed())
    return failure();
  for (training::Measure &measure : measures)
    training::report(builder, location, op.getName(), measure, samples);
  return success();
}

} // namespace mtc::lower
