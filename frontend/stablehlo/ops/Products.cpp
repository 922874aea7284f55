// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions of StableHLO.
#include "frontend/stablehlo/Call.h"

using namespace mlir;

namespace mtc::stablehlo {
namespace {

using logical::Value;

logical::AxisPairs pairsOf(const std::string &text, const char *left, const char *right, const Value &a,
                           const Value &b) {
  SmallVector<int64_t> i = listIn(text, left), j = listIn(text, right);
  if (i.size() != j.size())
    throw Refused("expected as many axes on both sides of a product");
  logical::AxisPairs pairs;
  for (auto [x, y] : llvm::zip(i, j)) {
    if (x < 0 || y < 0 || x >= std::ssize(a.axes) || y >= std::ssize(b.axes))
      throw Refused("expected axes of the operands of a product");
    pairs.push_back({x, y});
  }
  return pairs;
}

void buildDot(Call &call) {
  std::string text = call.text("dot_dimension_numbers");
  Value a = call.value(0), b = call.value(1);
  if (text.empty())
    throw Refused("expected dot_dimension_numbers, found none");
  call.give(logical::product(call.ops, a, b,
                             pairsOf(text, "lhs_contracting_dimensions", "rhs_contracting_dimensions", a, b),
                             pairsOf(text, "lhs_batching_dimensions", "rhs_batching_dimensions", a, b)));
}

// The product of the last axis of one and the first axis of the other.
void buildPlainDot(Call &call) {
  Value a = call.value(0), b = call.value(1);
  if (a.rank() < 1 || a.rank() > 2 || b.rank() < 1 || b.rank() > 2)
    throw Refused("expected a product of matrices or vectors");
  call.give(logical::product(call.ops, a, b, {{static_cast<int64_t>(a.rank()) - 1, 0}}));
}

// For "[b, 0, 1, f]": where the letters and the numbers stand. Letters first, then the spatial axes.
SmallVector<int64_t> axesOf(StringRef list, StringRef letters, size_t rank) {
  SmallVector<StringRef> parts;
  list.split(parts, ',');
  SmallVector<int64_t> axes(rank, -1);
  if (parts.size() != rank)
    throw Refused("expected dimension_numbers of all axes of a convolution");
  for (auto [place, part] : llvm::enumerate(parts)) {
    part = part.trim();
    size_t number = part.size() == 1 ? letters.find(part[0]) : StringRef::npos;
    if (number == StringRef::npos && (part.getAsInteger(10, number) || (number += letters.size()) >= rank))
      throw Refused("expected dimension_numbers of a convolution, found '" + part.str() + "'");
    if (axes[number] >= 0)
      throw Refused("expected each axis of a convolution once");
    axes[number] = static_cast<int64_t>(place);
  }
  return axes;
}

// The kernel as window_reversal has it.
Value reversed(Call &call, const Value &kernel, size_t count) {
  auto reverses = dyn_cast_or_null<DenseBoolArrayAttr>(call.attribute("window_reversal"));
  if (!reverses)
    return kernel;
  logical::checkCount(reverses.size(), count);
  SmallVector<int64_t> axes;
  for (size_t i = 0; i < count; ++i)
    if (reverses[static_cast<int64_t>(i)])
      axes.push_back(static_cast<int64_t>(i) + 2);
  return logical::reverse(call.ops, kernel, axes);
}

void buildConvolution(Call &call) {
  Value images = call.value(0), kernel = call.value(1);
  size_t rank = images.rank(), count = rank - 2;
  if ((rank != 3 && rank != 4) || kernel.rank() != rank)
    throw Refused("a convolution of other than one or two spatial axes");
  SmallVector<StringRef> lists;
  std::string text = call.text("dimension_numbers");
  for (StringRef rest = text; rest.contains('[');) {
    rest = rest.split('[').second;
    lists.push_back(rest.split(']').first);
  }
  if (lists.size() != 3)
    throw Refused("expected dimension_numbers of a convolution, found '" + text + "'");
  int64_t sampleGroups = call.integer("batch_group_count", 1);
  logical::Windows windows;
  windows.strides = call.integers("window_strides", count, 1);
  windows.dilation = call.integers("rhs_dilation", count, 1);
  windows.spread = call.integers("lhs_dilation", count, 1);
  windows.groups = call.integer("feature_group_count", 1);
  SmallVector<int64_t> pads = call.integers("padding", 2 * count, 0);
  constexpr int64_t most = int64_t{1} << 20;
  SmallVector<int64_t> kernelAxes = axesOf(lists[1], "oi", rank), imageAxes = axesOf(lists[0], "bf", rank);
  kernel = logical::transpose(kernel, kernelAxes);
  images = logical::transpose(images, imageAxes);
  for (size_t i = 0; i < count; ++i) {
    windows.taps.push_back(kernel.size(i + 2).times);
    windows.low.push_back(pads[2 * i]);
    windows.high.push_back(pads[2 * i + 1]);
    if (std::min({windows.strides[i], windows.dilation[i], windows.spread[i]}) < 1 ||
        std::max({windows.strides[i], windows.dilation[i], windows.spread[i], windows.taps[i], std::abs(pads[2 * i]),
                  std::abs(pads[2 * i + 1])}) > most)
      throw Refused("a convolution of sizes above 2^20");
  }
  kernel = reversed(call, kernel, count);
  Value result = logical::generalConvolution(call.ops, images, kernel, windows, sampleGroups);
  SmallVector<int64_t> resultAxes = axesOf(lists[2], "bf", rank), back(rank);
  for (auto [from, to] : llvm::enumerate(resultAxes))
    back[to] = static_cast<int64_t>(from);
  call.give(logical::transpose(result, back));
}

} // namespace

llvm::ArrayRef<OpEntry> productOps() {
  static constexpr OpEntry entries[] = {
      {"dot_general", buildDot, 2}, {"dot", buildPlainDot, 2}, {"convolution", buildConvolution, 2}};
  return entries;
}

} // namespace mtc::stablehlo
