// SPDX-License-Identifier: Apache-2.0
//
// Products, convolutions and pools.
#include "frontend/graph/Lower.h"

using namespace mlir;

namespace mtc::lower {
namespace {

logical::AxisPairs pairsOf(ArrayRef<int64_t> left, ArrayRef<int64_t> right) {
  logical::checkCount(right.size(), left.size());
  logical::AxisPairs pairs;
  for (auto [i, j] : llvm::zip(left, right))
    pairs.push_back({i, j});
  return pairs;
}

// Whether the result is a sum over the batch whose only reader swaps the free axes of both operands, as JAX writes the
// gradient of a matrix. Stored in the order of the reader, no kernel has to turn it.
bool isReadTurned(const Call &call, graph::DotGeneralOp op) {
  size_t contracted = op.getLhsContracted().size(), left = call.operands[0].rank(), right = call.operands[1].rank();
  auto reader = op->hasOneUse() ? dyn_cast<graph::TransposeOp>(*op->user_begin()) : graph::TransposeOp();
  if (!reader || !op.getLhsCommon().empty() || contracted > std::min(left, right) ||
      llvm::none_of(op.getLhsContracted(), [&](int64_t axis) { return call.operands[0].size(axis).batch; }))
    return false;
  auto rows = static_cast<int64_t>(left - contracted), all = rows + static_cast<int64_t>(right - contracted);
  SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(rows, all));
  llvm::append_range(swap, llvm::seq<int64_t>(0, rows));
  return ArrayRef<int64_t>(swap) == reader.getPermutation();
}

Value lowerDotGeneral(Call &call, graph::DotGeneralOp op) {
  if (isReadTurned(call, op)) {
    Value turned = logical::product(call.ops, call.operands[1], call.operands[0],
                                    pairsOf(op.getRhsContracted(), op.getLhsContracted()));
    auto all = static_cast<int64_t>(turned.rank());
    auto columns = static_cast<int64_t>(call.operands[1].rank() - op.getRhsContracted().size());
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(columns, all));
    llvm::append_range(order, llvm::seq<int64_t>(0, columns));
    return logical::transpose(turned, order);
  }
  return logical::product(call.ops, call.operands[0], call.operands[1],
                          pairsOf(op.getLhsContracted(), op.getRhsContracted()),
                          pairsOf(op.getLhsCommon(), op.getRhsCommon()));
}

// `padding` has two numbers for each axis: before and after.
logical::Windows windowsOf(SmallVector<int64_t> taps, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                           ArrayRef<int64_t> dilation = {}, int64_t groups = 1, ArrayRef<int64_t> spread = {}) {
  logical::Windows windows;
  size_t count = taps.size();
  auto ones = [&](ArrayRef<int64_t> list) {
    return list.empty() ? SmallVector<int64_t>(count, 1) : SmallVector<int64_t>(list);
  };
  windows.taps = std::move(taps);
  windows.strides = ones(strides);
  windows.dilation = ones(dilation);
  windows.spread = ones(spread);
  windows.groups = groups;
  SmallVector<int64_t> pairs = padding.empty() ? SmallVector<int64_t>(2 * count, 0) : SmallVector<int64_t>(padding);
  logical::checkCount(windows.strides.size(), count);
  logical::checkCount(windows.dilation.size(), count);
  logical::checkCount(windows.spread.size(), count);
  logical::checkCount(pairs.size(), 2 * count);
  for (size_t i = 0; i < count; ++i) {
    windows.low.push_back(pairs[2 * i]);
    windows.high.push_back(pairs[2 * i + 1]);
    if (std::min({windows.taps[i], windows.strides[i], windows.dilation[i], windows.spread[i]}) < 1)
      throw Refused("expected windows, strides, dilations and a spread of 1 or more");
  }
  if (groups < 1)
    throw Refused("expected one group or more, found " + std::to_string(groups));
  return windows;
}

template <typename Op> logical::Windows windowsOfKernel(const Value &kernel, Op op, ArrayRef<int64_t> spread = {}) {
  SmallVector<int64_t> taps;
  for (size_t i = 2; i < kernel.rank(); ++i) {
    if (kernel.size(i).batch)
      throw Refused("a convolution by a kernel that differs between samples, " + logical::describe(kernel.shape()));
    taps.push_back(kernel.size(i).times);
  }
  return windowsOf(taps, op.getStrides(), op.getPadding(), op.getDilation(), op.getGroups(), spread);
}

void expectFloats(const Call &call) {
  for (const Value &operand : call.operands)
    if (!operand.isFloat())
      throw Refused("expected floats, found integers or booleans");
}

Value lowerConvolution(Call &call, graph::ConvolutionOp op) {
  expectFloats(call);
  const Value &kernel = call.operands[1];
  return logical::generalConvolution(call.ops, call.operands[0], kernel, windowsOfKernel(kernel, op, op.getSpread()),
                                     op.getSampleGroups());
}

Value lowerTransposedConvolution(Call &call, graph::TransposedConvolutionOp op) {
  expectFloats(call);
  const Value &kernel = call.operands[1];
  Shape shape = call.shape();
  logical::checkCount(shape.size(), call.operands[0].rank());
  SmallVector<int64_t> sizes;
  for (const Size &size : ArrayRef<Size>(shape).drop_front(std::min<size_t>(2, shape.size())))
    sizes.push_back(size.times);
  return logical::transposedConvolution(call.ops, call.operands[0], kernel, windowsOfKernel(kernel, op), sizes);
}

Value lowerPool(Call &call, graph::PoolOp op) {
  expectFloats(call);
  return logical::pool(
      call.ops, op.getKind(), call.operands[0],
      windowsOf(SmallVector<int64_t>(op.getWindow()), op.getStrides(), op.getPadding(), op.getDilation()));
}

Value lowerPoolGradient(Call &call, graph::PoolGradientOp op) {
  expectFloats(call);
  return logical::maximumGradient(call.ops, call.operands[0], call.operands[1],
                                  windowsOf(SmallVector<int64_t>(op.getWindow()), op.getStrides(), op.getPadding()));
}

} // namespace

llvm::ArrayRef<Entry> productOps() {
  static constexpr Entry entries[] = {
      entry<graph::DotGeneralOp, lowerDotGeneral>(), entry<graph::ConvolutionOp, lowerConvolution>(),
      entry<graph::TransposedConvolutionOp, lowerTransposedConvolution>(), entry<graph::PoolOp, lowerPool>(),
      entry<graph::PoolGradientOp, lowerPoolGradient>()};
  return entries;
}

} // namespace mtc::lower
