// SPDX-License-Identifier: Apache-2.0
//
// Shapes, and parts of values.
#include "frontend/graph/Lower.h"
#include "frontend/logical/Sorting.h"

#include <cmath>

using namespace mlir;

namespace mtc::lower {
namespace {

Value lowerTranspose(Call &call, graph::TransposeOp op) {
  return logical::transpose(call.operands[0], op.getPermutation());
}

Value lowerReshape(Call &call, graph::ReshapeOp) { return logical::reshape(call.ops, call.operands[0], call.shape()); }

Value lowerBroadcast(Call &call, graph::BroadcastOp op) {
  const Value &value = call.operands[0];
  Shape shape = call.shape();
  ArrayRef<int64_t> dims = op.getDims();
  logical::checkCount(dims.size(), value.rank());
  logical::checkAxes(dims, shape.size());
  if (!llvm::is_sorted(dims))
    throw Refused("expected axes of the result in rising order");
  SmallVector<int64_t> added;
  for (int64_t axis = 0; axis < std::ssize(shape); ++axis)
    if (!llvm::is_contained(dims, axis))
      added.push_back(axis);
  return logical::broadcast(logical::expandDims(value, added), shape);
}

// As many numbers as there are axes; an empty list stands for `otherwise` on each.
SmallVector<int64_t> perAxis(ArrayRef<int64_t> numbers, size_t rank, int64_t otherwise) {
  if (numbers.empty())
    return SmallVector<int64_t>(rank, otherwise);
  logical::checkCount(numbers.size(), rank);
  return SmallVector<int64_t>(numbers);
}

Value lowerSlice(Call &call, graph::SliceOp op) {
  const Value &value = call.operands[0];
  Shape sizes = call.shape();
  logical::checkCount(sizes.size(), value.rank());
  SmallVector<int64_t> starts = perAxis(op.getStarts(), value.rank(), 0),
                       strides = perAxis(op.getStrides(), value.rank(), 1);
  for (size_t i = 0; i < value.rank(); ++i) {
    if (sizes[i].batch && sizes[i] == value.size(i) && starts[i] == 0 && strides[i] == 1)
      continue;
    if (sizes[i].batch || value.size(i).batch)
      throw Refused("a part of the samples of a batch");
    if (starts[i] < 0 || strides[i] < 1 || starts[i] + (sizes[i].times - 1) * strides[i] >= value.size(i).times)
      throw Refused("expected a part of the " + value.size(i).text() + " elements along axis " + std::to_string(i));
  }
  return logical::slice(call.ops, value, starts, sizes, strides);
}

Value lowerPad(Call &call, graph::PadOp op) {
  const Value &value = call.operands[0];
  double fill = op.getValue().convertToDouble();
  if (!std::isfinite(fill))
    throw Refused("expected a finite number to pad with");
  SmallVector<int64_t> interior = perAxis(op.getInterior(), value.rank(), 0);
  if (llvm::any_of(interior, [](int64_t n) { return n < 0; }))
    throw Refused("expected an interior of 0 or more");
  return logical::pad(call.ops, value, fill, op.getLow(), op.getHigh(), interior);
}

Value lowerConcat(Call &call, graph::ConcatOp op) {
  if (call.operands.empty())
    throw Refused("expected operands, found none");
  for (const Value &value : call.operands)
    logical::checkCount(value.rank(), call.operands[0].rank());
  return logical::concat(call.ops, call.operands, logical::checkAxis(op.getDim(), call.operands[0].rank()));
}

Value lowerReverse(Call &call, graph::ReverseOp op) {
  logical::checkAxes(op.getDims(), call.operands[0].rank());
  return logical::reverse(call.ops, call.operands[0], op.getDims());
}

void expectIds(const Value &ids) {
  if (!ids.isInteger())
    throw Refused("expected ids of i32");
}

Value lowerTake(Call &call, graph::TakeOp op) {
  expectIds(call.operands[1]);
  return logical::take(call.ops, call.operands[0], call.operands[1],
                       logical::checkAxis(op.getDim(), call.operands[0].rank()));
}

Value lowerTakeAlong(Call &call, graph::TakeAlongOp op) {
  return logical::takeAlong(call.ops, call.operands[0], call.operands[1],
                            logical::checkAxis(op.getDim(), call.operands[0].rank()));
}

Value lowerSort(Call &call, graph::SortOp op) {
  if (call.operands.empty())
    throw Refused("expected keys, found none");
  size_t axis = logical::checkAxis(op.getDim(), call.operands[0].rank());
  logical::checkCount(call.shape().size(), call.operands[0].rank());
  return logical::sortedPlaces(call.ops, call.operands, call.shape()[axis].times, axis, op.getDescending());
}

Value lowerScatterRows(Call &call, graph::ScatterRowsOp) {
  expectIds(call.operands[0]);
  if (!call.operands[1].isFloat())
    throw Refused("expected updates of f32");
  Shape shape = call.shape();
  if (shape.empty() || shape[0].batch)
    throw Refused("expected a number of rows");
  return logical::scatterRows(call.ops, shape[0].times, call.operands[0], call.operands[1]);
}

Value lowerOneHot(Call &call, graph::OneHotOp) {
  expectIds(call.operands[0]);
  if (call.shape().empty() || call.lastSize().batch)
    throw Refused("expected a number of classes as the last axis of the result");
  return logical::oneHot(call.ops, call.operands[0], call.lastSize().times);
}

} // namespace

llvm::ArrayRef<Entry> partOps() {
  static constexpr Entry entries[] = {entry<graph::TransposeOp, lowerTranspose>(),
                                      entry<graph::ReshapeOp, lowerReshape>(),
                                      entry<graph::BroadcastOp, lowerBroadcast>(),
                                      entry<graph::SliceOp, lowerSlice>(),
                                      entry<graph::PadOp, lowerPad>(),
                                      entry<graph::ConcatOp, lowerConcat>(),
                                      entry<graph::ReverseOp, lowerReverse>(),
                                      entry<graph::TakeOp, lowerTake>(),
                                      entry<graph::TakeAlongOp, lowerTakeAlong>(),
                                      entry<graph::SortOp, lowerSort>(),
                                      entry<graph::ScatterRowsOp, lowerScatterRows>(),
                                      entry<graph::OneHotOp, lowerOneHot>()};
  return entries;
}

} // namespace mtc::lower
