// SPDX-License-Identifier: Apache-2.0
//
// EinsumDense: a product with a kernel, whose axes an equation names.
#include "frontend/keras/LayerTable.h"
#include "frontend/keras/layers/Logically.h"

#include <map>

using namespace mlir;

namespace mtc::keras {
namespace {

// "abc,cde->abde". An ellipsis stands for axes of the input, at the beginning or at the end; they get other letters.
struct Equation {
  std::string input, kernel, output;
  bool elidedFirst = false, elidedLast = false;
};

std::optional<Equation> parseEquation(LayerBuilder &layer, llvm::StringRef text, int64_t rank) {
  auto fail = [&](const std::string &found) -> std::optional<Equation> {
    layer.fail("expected an equation such as ab,bc->ac or ...b,bc->...c, found " + found);
    return std::nullopt;
  };
  auto [both, output] = text.split("->");
  auto [input, kernel] = both.split(',');
  Equation made{input.trim().str(), kernel.trim().str(), output.trim().str()};
  bool elided = input.contains("...");
  if (elided != output.contains("...") || kernel.contains('.'))
    return fail(text.str());
  made.elidedFirst = llvm::StringRef(made.input).starts_with("...");
  made.elidedLast = elided && !made.elidedFirst;
  if (elided) {
    // Digits are letters that no equation of Keras has.
    int64_t axes = rank - (static_cast<int64_t>(made.input.size()) - 3);
    if (axes < 0)
      return fail(text.str());
    std::string letters;
    for (int64_t i = 0; i < axes; ++i)
      letters += static_cast<char>('0' + i);
    for (std::string *part : {&made.input, &made.output}) {
      size_t place = part->find("...");
      if ((made.elidedFirst ? place != 0 : place + 3 != part->size()))
        return fail(text.str());
      part->replace(place, 3, letters);
    }
  }
  auto distinct = [](llvm::StringRef letters) {
    return llvm::all_of(letters, [&](char c) { return c != '.' && letters.count(c) == 1; });
  };
  if (made.input.empty() || made.kernel.empty() || made.output.empty() || !distinct(made.input) ||
      !distinct(made.kernel) || !distinct(made.output) || static_cast<int64_t>(made.input.size()) != rank ||
      made.output[0] != made.input[0] || made.kernel.find(made.input[0]) != std::string::npos)
    return fail(text.str());
  for (char c : made.output)
    if (made.input.find(c) == std::string::npos && made.kernel.find(c) == std::string::npos)
      return fail(text.str());
  return made;
}

// Sizes of the letters of the output and of the kernel that the input does not have; empty after an error.
std::map<char, int64_t> sizesOf(LayerBuilder &layer, const Equation &equation, ArrayRef<int64_t> input) {
  std::map<char, int64_t> sizes;
  for (auto [c, size] : llvm::zip_equal(equation.input, input))
    sizes[c] = size;
  const Json *given = layer.config.find("output_shape");
  SmallVector<int64_t> shape;
  if (given && given->is_number())
    shape.push_back(layer.config.integer("output_shape"));
  for (size_t i = 0; given && given->is_array() && i < given->size(); ++i)
    shape.push_back((*given)[i].is_number_integer() ? (*given)[i].get<int64_t>() : 0);
  // The shape has no batch. With an ellipsis first it is that of the last axes, with one last that of the axes between.
  llvm::StringRef output = llvm::StringRef(equation.output).drop_front();
  size_t skipped = equation.elidedFirst && output.size() > shape.size() ? output.size() - shape.size() : 0;
  for (auto [i, c] : llvm::enumerate(output))
    if (!sizes.count(c)) {
      int64_t size = i >= skipped && i - skipped < shape.size() ? shape[i - skipped] : 0;
      if (size < 1 || size > maxUnits) {
        layer.fail("expected an output_shape with the size of axis " + std::string(1, c) + ", found none");
        return {};
      }
      sizes[c] = size;
    }
  for (char c : equation.kernel)
    if (!sizes.count(c)) {
      layer.fail("expected an equation whose kernel has axes of the input and of the output, found " +
                 std::string(1, c));
      return {};
    }
  return sizes;
}

// x and the kernel multiplied and added up as the equation says, in the order of its output.
logical::Value multiplied(logical::Ops &ops, const Equation &equation, Value x, Value kernel) {
  logical::AxisPairs contracted, common;
  std::string made;
  for (auto [i, c] : llvm::enumerate(equation.input))
    if (size_t at = equation.kernel.find(c); at != std::string::npos) {
      bool stays = equation.output.find(c) != std::string::npos;
      (stays ? common : contracted).push_back({static_cast<int64_t>(i), static_cast<int64_t>(at)});
      if (stays)
        made += c;
    }
  std::string summed;
  for (char c : equation.input)
    if (equation.kernel.find(c) == std::string::npos) {
      made += c;
      if (equation.output.find(c) == std::string::npos)
        summed += c;
    }
  for (char c : equation.kernel)
    if (equation.input.find(c) == std::string::npos)
      made += c;
  logical::Value product = logical::product(ops, ops.value(x), ops.value(kernel), contracted, common);
  SmallVector<int64_t> axes;
  for (char c : summed)
    axes.push_back(static_cast<int64_t>(made.find(c)));
  if (!axes.empty())
    product = logical::reduce(ops, mt::Reduction::sum, product, axes);
  for (char c : summed)
    made.erase(made.find(c), 1);
  SmallVector<int64_t> order;
  for (char c : equation.output)
    order.push_back(static_cast<int64_t>(made.find(c)));
  return logical::transpose(product, order);
}

Value buildEinsumDense(LayerBuilder &layer) {
  Value x = layer.toFloat(layer.input());
  std::string text = layer.config.text("equation");
  if (!x || layer.config.failed())
    return {};
  std::optional<Equation> equation = parseEquation(layer, text, layer.typeOf(x).getRank());
  std::map<char, int64_t> sizes = equation ? sizesOf(layer, *equation, layer.shapeOf(x)) : std::map<char, int64_t>();
  layer.config.expectAbsent({"lora_rank", "gptq_unpacked_column_size"});
  layer.config.ignore({"lora_alpha"});
  if (sizes.empty() || layer.config.failed())
    return {};
  SmallVector<int64_t> shape;
  for (char c : equation->kernel)
    shape.push_back(sizes[c]);
  Value kernel = layer.variable("kernel", shape, "kernel_initializer");
  Value y =
      kernel ? builtLogically(layer, [&](logical::Ops &ops) { return multiplied(ops, *equation, x, kernel); }) : kernel;
  const Json *axes = layer.config.find("bias_axes");
  if (!axes || !y) {
    layer.config.ignore({"bias_initializer", "bias_regularizer"});
    return activate(layer, y);
  }
  std::string biased = layer.config.text("bias_axes");
  size_t first = std::string::npos;
  for (char c : biased)
    first = std::min(first, equation->output.find(c));
  if (first == std::string::npos || first == 0)
    return layer.fail("expected bias_axes of the output, without the batch, found " + describe(*axes));
  SmallVector<int64_t> biasShape;
  for (char c : llvm::StringRef(equation->output).drop_front(first))
    biasShape.push_back(biased.find(c) != std::string::npos ? sizes[c] : 1);
  Value bias = layer.variable("bias", biasShape, "bias_initializer");
  return bias ? activate(layer, layer.binary<mt::AddOp>(y, bias)) : bias;
}

} // namespace

llvm::ArrayRef<LayerEntry> einsumLayers() {
  static constexpr LayerEntry entries[] = {{"EinsumDense", buildEinsumDense}};
  return entries;
}

} // namespace mtc::keras
