// SPDX-License-Identifier: Apache-2.0
#include "compiler/shard/Splits.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace mtc {

AxisSplits splitsOfType(Value value) {
  AxisSplits splits;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    splits.push_back(ShapedType::isDynamic(size));
  return splits;
}

std::optional<AxisSplits> splitsOfAnnotation(Value value) {
  auto annotation = value.getDefiningOp<shard::ShardOp>();
  if (!annotation)
    return std::nullopt;
  auto sharding = annotation.getSharding().getDefiningOp<shard::ShardingOp>();
  if (!sharding)
    return std::nullopt;
  AxisSplits splits(cast<RankedTensorType>(value.getType()).getRank(), false);
  for (auto [axis, gridAxes] : llvm::enumerate(sharding.getSplitAxes()))
    if (axis < splits.size())
      splits[axis] = !gridAxes.empty();
  return splits;
}

namespace {

// The loop that iterates over an axis; -1 if the axis has size 1 or is not accessed in order.
int64_t loopOfAxis(AffineMap map, size_t axis) {
  auto dim = dyn_cast<AffineDimExpr>(map.getResult(axis));
  return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
}

LogicalResult checkMaps(shard::ShardingInterface op, ArrayRef<AffineMap> maps, size_t loops) {
  size_t values = op->getNumOperands() + op->getNumResults();
  if (maps.size() != values)
    return op->emitOpError("expected an indexing map for each of ")
           << values << " operands and results, found " << maps.size();
  for (auto [index, map] : llvm::enumerate(maps)) {
    Value value = index < op->getNumOperands() ? op->getOperand(index) : op->getResult(index - op->getNumOperands());
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    if (map.getNumResults() != rank || map.getNumDims() != loops)
      return op->emitOpError("expected indexing map ")
             << index << " to be from " << loops << " loops to " << rank << " axes, found " << AffineMapAttr::get(map);
  }
  return success();
}

// Sets which loops are split, by the operands. Loops that iterate over no axis of an operand stay empty.
LogicalResult splitByOperands(shard::ShardingInterface op, ArrayRef<AxisSplits> operands, ArrayRef<AffineMap> maps,
                              MutableArrayRef<std::optional<bool>> loops) {
  for (auto [index, splits] : llvm::enumerate(operands)) {
    for (auto [axis, split] : llvm::enumerate(splits)) {
      int64_t loop = loopOfAxis(maps[index], axis);
      if (loop < 0) {
        if (split)
          return op->emitOpError("expected axis ")
                 << axis << " of operand " << index
                 << " to be replicated, since the op does not walk it in order, found it split";
        continue;
      }
      if (loops[loop] && *loops[loop] != split)
        return op->emitOpError("expected operands that agree on the split of loop ")
               << loop << ", found axis " << axis << " of operand " << index << (split ? " split" : " replicated")
               << " against an earlier operand";
      loops[loop] = split;
    }
  }
  return success();
}

// The kind of the split loop if it is a reduction. Fails for any kind but sum.
FailureOr<std::optional<shard::ReductionKind>> splitReduction(shard::ShardingInterface op, ArrayRef<bool> split) {
  auto kinds = op.getReductionLoopIteratorKinds();
  size_t reductions = 0;
  for (auto [loop, type] : llvm::enumerate(op.getLoopIteratorTypes())) {
    if (type != utils::IteratorType::reduction)
      continue;
    auto kind = reductions < kinds.size() ? kinds[reductions] : shard::ReductionKind::Generic;
    ++reductions;
    if (!split[loop])
      continue;
    if (kind != shard::ReductionKind::Sum)
      return op->emitOpError("expected a reduction over the batch to be a sum, found ")
             << shard::stringifyReductionKind(kind);
    return std::optional(kind);
  }
  return std::optional<shard::ReductionKind>();
}

} // namespace

FailureOr<LoopSplits> splitLoops(shard::ShardingInterface op, ArrayRef<AxisSplits> operands) {
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  SmallVector<std::optional<bool>> loops(op.getLoopIteratorTypes().size());
  if (failed(checkMaps(op, maps, loops.size())) || failed(splitByOperands(op, operands, maps, loops)))
    return failure();
  for (OpResult result : op->getResults())
    for (auto [axis, batch] : llvm::enumerate(splitsOfType(result)))
      if (int64_t loop = loopOfAxis(maps[op->getNumOperands() + result.getResultNumber()], axis);
          loop >= 0 && !loops[loop])
        loops[loop] = batch;

  LoopSplits splits;
  for (std::optional<bool> loop : loops)
    splits.split.push_back(loop.value_or(false));
  if (int64_t count = llvm::count(splits.split, true); count > 1)
    return op->emitOpError("expected at most one loop to be split, found ") << count;
  auto reduction = splitReduction(op, splits.split);
  if (failed(reduction))
    return failure();
  splits.reduction = *reduction;
  for (OpResult result : op->getResults()) {
    AffineMap map = maps[op->getNumOperands() + result.getResultNumber()];
    AxisSplits axes;
    for (size_t axis = 0; axis < map.getNumResults(); ++axis) {
      int64_t loop = loopOfAxis(map, axis);
      axes.push_back(loop >= 0 && splits.split[loop]);
    }
    splits.results.push_back(std::move(axes));
  }
  return splits;
}

bool sumsOverBatch(Operation *op) {
  auto sharded = dyn_cast<shard::ShardingInterface>(op);
  if (!sharded || op->getNumOperands() == 0)
    return false;
  SmallVector<AffineMap> maps = sharded.getIndexingMaps();
  SmallVector<utils::IteratorType> types = sharded.getLoopIteratorTypes();
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    for (auto [axis, batch] : llvm::enumerate(splitsOfType(operand)))
      if (int64_t loop = loopOfAxis(maps[index], axis);
          batch && loop >= 0 && types[loop] == utils::IteratorType::reduction)
        return true;
  return false;
}

static bool isSplat(Value value, double number) {
  SplatElementsAttr splat = mt::splatOf(value);
  if (!splat || !mt::isReal(splat.getElementType()))
    return false;
  double rounded = splat.getElementType().isF32() ? static_cast<float>(number) : number;
  return splat.getSplatValue<APFloat>().convertToDouble() == rounded;
}

// Whether ids are floor((sample + 1/2) / shardRows), the form that BatchNormalizationOp builds.
static bool areShardsOfSamples(Value ids, int64_t shardRows) {
  auto cast = ids.getDefiningOp<mt::CastOp>();
  auto floor = cast ? cast.getOperand().getDefiningOp<mt::FloorOp>() : nullptr;
  auto scaled = floor ? floor.getOperand().getDefiningOp<mt::MulOp>() : nullptr;
  auto middle = scaled ? scaled.getLhs().getDefiningOp<mt::AddOp>() : nullptr;
  auto sample = middle ? middle.getLhs().getDefiningOp<mt::IotaOp>() : nullptr;
  return sample && sample.getDim() == 0 && mt::isSplit(sample.getType()) && isSplat(middle.getRhs(), 0.5f) &&
         isSplat(scaled.getRhs(), 1.0 / static_cast<double>(shardRows));
}

bool isTableOfShards(Operation *op) {
  auto scatter = dyn_cast<mt::ScatterAddOp>(op);
  if (!scatter)
    return false;
  mt::Compilation compilation(op);
  return cast<RankedTensorType>(scatter.getType()).getDimSize(0) == compilation.getShards() &&
         areShardsOfSamples(scatter.getIds(), compilation.getShardRows());
}

} // namespace mtc
