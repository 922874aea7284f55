// SPDX-License-Identifier: Apache-2.0
//
// Models of the dialect `graph` by a grammar: every op, with operands, attributes and shapes that are right as a rule,
// and otherwise anything. The reader says no, with a message, or gives a model of `mt` alone that verifies.
#include "dialects/graph/GraphDialect.h"
#include "frontend/mlir/ReadModel.h"
#include "test/fuzz/Choices.h"
#include "test/fuzz/Context.h"

#include <algorithm>

namespace {

struct Size {
  int64_t times = 1;
  bool batch = false;

  std::string text() const { return std::to_string(times) + (batch ? "*b" : ""); }
  bool operator==(const Size &) const = default;
};
using Shape = std::vector<Size>;

struct Value {
  std::string name;
  Shape shape;
  std::string element;

  std::string type() const {
    std::string text;
    for (const Size &size : shape)
      text += (text.empty() ? "" : ", ") + size.text();
    return "!graph.value<[" + text + "], " + element + ">";
  }
};

class Model {
public:
  explicit Model(Choices &choices) : choices(choices) {}

  std::string text() {
    tensor("mt.input \"x\"", {{1, true}, {6}, {4}}, "f32");
    tensor("mt.input \"i\"", {{1, true}, {3}}, "i32");
    tensor("mt.input \"z\"", {{1, true}, {2}, {5}, {5}}, "f32");
    tensor("mt.variable \"w\" init(zeros)", {{4}, {6}}, "f32");
    tensor("mt.variable \"k\" init(zeros)", {{2}, {2}, {3}, {3}}, "f32");
    tensor("mt.constant dense<[0, 2]> : tensor<2xi32>\x01", {{2}}, "i32");
    tensor("mt.constant dense<1.0> : tensor<f32>\x01", {}, "f32");
    for (size_t i = 0, count = 1 + choices.below(14); i < count; ++i)
      op();
    const Value &last = values.back();
    int64_t elements = 1;
    for (const Size &size : last.shape)
      elements = std::min(elements * near(size.times), int64_t{1} << 40);
    std::string flat = "tensor<?x" + std::to_string(elements) + "x" + last.element + ">";
    body += "    %t = graph.tensor " + last.name + " : " + last.type() + " -> " + flat +
            "\n    mt.output \"o\", %t : " + flat + "\n    %l = mt.reduce sum, %v0t over [1, 2] : tensor<?x6x4xf32>\n";
    std::string version = choices.once(40) ? choices.of({"2 : i32", "1", "\"1\"", "unit"}) : "1 : i32";
    return "module attributes {graph.version = " + version + "} {\n  mt.model @m {\n" + body +
           "    mt.loss \"loss\", %l : tensor<?xf32>\n    mt.sgd <{learning_rate = 1.0e-2 : f32}>\n  }\n}\n";
  }

private:
  // `op` ends with \1 where it says its type.
  void tensor(std::string op, const Shape &shape, const std::string &element) {
    std::string type = "tensor<", name = "%v" + std::to_string(count++);
    for (const Size &size : shape)
      type += (size.batch ? "?" : std::to_string(size.times)) + "x";
    type += element + ">";
    if (op.back() == '\x01')
      op.pop_back();
    else
      op += " : " + type;
    values.push_back({name, shape, element});
    body += "    " + name + "t = " + op + "\n    " + name + " = graph.logical " + name + "t : " + type + " -> " +
            values.back().type() + "\n";
  }

  const Value &pick() { return choices.once(2) ? values.back() : choices.of(values); }
  const Value &pick(const std::string &element) {
    std::vector<const Value *> found;
    for (const Value &value : values)
      if (value.element == element)
        found.push_back(&value);
    return choices.once(20) ? pick() : *choices.of(found);
  }
  // So that the numbers here do not overflow; those of the text may.
  static int64_t near(int64_t number) { return std::clamp<int64_t>(number, 1, 1000); }
  size_t axisOf(const Shape &shape) { return shape.empty() ? 0 : choices.below(shape.size()); }
  Size size() {
    return {choices.once(30) ? choices.number() : static_cast<int64_t>(1 + choices.below(4)), choices.once(8)};
  }
  std::string list(const std::vector<int64_t> &numbers) {
    std::string text;
    for (int64_t number : numbers)
      text += (text.empty() ? "" : ", ") + std::to_string(choices.once(150) ? choices.number() : number);
    return "[" + text + "]";
  }
  // Numbers for each axis, of which those of the batch are `batch`.
  std::vector<int64_t> numbers(const Shape &shape, size_t below, int64_t first) {
    std::vector<int64_t> found;
    for (const Size &size : shape)
      found.push_back(first + static_cast<int64_t>(size.batch ? 0 : choices.below(below)));
    return found;
  }
  static std::vector<int64_t> range(size_t count) {
    std::vector<int64_t> all(count);
    for (size_t i = 0; i < count; ++i)
      all[i] = static_cast<int64_t>(i);
    return all;
  }

  void make(const std::string &words, const std::vector<Value> &operands, Shape shape,
            const std::string &element = "f32") {
    if (choices.once(60) && !shape.empty())
      choices.once(2) ? shape.pop_back() : void(shape[axisOf(shape)] = size());
    std::string types;
    for (const Value &operand : operands)
      types += (types.empty() ? "" : ", ") + operand.type();
    values.push_back({"%v" + std::to_string(count++), shape, choices.once(100) ? "i1" : element});
    body += "    " + values.back().name + " = graph." + words + " : (" + types + ") -> " + values.back().type() + "\n";
  }

  void op() {
    using Build = void (Model::*)();
    static constexpr Build builds[] = {&Model::elementwise, &Model::elementwise, &Model::transpose, &Model::reshape,
                                       &Model::reshape,     &Model::broadcast,   &Model::reduce,    &Model::along,
                                       &Model::product,     &Model::product,     &Model::windows,   &Model::slice,
                                       &Model::pad,         &Model::concat,      &Model::lookup,    &Model::linear};
    (this->*choices.of(builds))();
  }

  void elementwise() {
    Value a = pick(), b = pick();
    std::string name =
        choices.of({"add", "mul", "exp", "neg", "compare", "cast", "dropout", "while_training", "matmul", "select",
                    "and", "leaky_relu", "stop_gradient", "relu", "sub", "maximum", "tanh", "batch_size"});
    std::string given = name == "compare"      ? " {kind = #mt<compare_kind lt>}"
                        : name == "dropout"    ? " {stream = \"s\", rate = 5.0e-1 : f32}"
                        : name == "leaky_relu" ? " {negative_slope = 1.0e-1 : f32}"
                        : choices.once(30)     ? " {kind = 1, rate}"
                                               : "";
    bool two = name == "add" || name == "mul" || name == "sub" || name == "maximum" || name == "compare" ||
               name == "and" || name == "while_training";
    std::string element = name == "compare" ? "i1" : a.element;
    if (two != choices.once(60))
      return make("elementwise \"" + name + "\"(" + a.name + ", " + b.name + ")" + given, {a, b},
                  a.shape.size() < b.shape.size() ? b.shape : a.shape, element);
    make("elementwise \"" + name + "\"(" + a.name + ")" + given, {a}, a.shape, element);
  }
  void linear() {
    Value a = pick("f32");
    if (choices.once(3))
      return make("round " + a.name + " to " + choices.of({"bf16", "f16", "f32"}), {a}, a.shape);
    if (choices.once(2))
      return make("cholesky " + a.name + choices.of({"", " upper"}), {a}, a.shape);
    const Value &b = pick("f32");
    make("solve_triangular " + a.name + ", " + b.name + choices.of({"", " right_side"}) + choices.of({"", " upper"}) +
             choices.of({"", " transposed"}) + choices.of({"", " unit_diagonal"}),
         {a, b}, b.shape);
  }
  void transpose() {
    Value a = pick();
    std::vector<int64_t> order = range(a.shape.size());
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[choices.below(i)]);
    Shape shape;
    for (int64_t axis : order)
      shape.push_back(a.shape[axis]);
    make("transpose " + a.name + " by " + list(order), {a}, shape, a.element);
  }
  void reshape() {
    Value a = pick();
    Shape shape = a.shape;
    size_t at = axisOf(shape);
    if (shape.size() > at + 1 && choices.once(2) && !(shape[at].batch && shape[at + 1].batch)) {
      shape[at] = {near(shape[at].times) * near(shape[at + 1].times), shape[at].batch || shape[at + 1].batch};
      shape.erase(shape.begin() + static_cast<int64_t>(at) + 1);
    } else if (!shape.empty() && choices.once(2)) {
      int64_t factor = choices.of({1, 2, 3, 4});
      shape.insert(shape.begin() + static_cast<int64_t>(at + choices.below(2)), {factor, false});
      Size &rest = shape[at] == Size{factor} ? shape[at + 1] : shape[at];
      rest.times = std::max<int64_t>(rest.times / factor, 1);
    } else {
      shape.insert(shape.begin() + static_cast<int64_t>(at), Size{});
    }
    make("reshape " + a.name, {a}, shape, a.element);
  }
  void broadcast() {
    Value a = pick();
    Shape shape;
    std::vector<int64_t> dims;
    for (const Size &size : a.shape) {
      if (choices.once(4))
        shape.push_back(this->size());
      dims.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(size == Size{} && choices.once(2) ? this->size() : size);
    }
    if (choices.once(4))
      shape.push_back(size());
    make("broadcast " + a.name + " dims " + list(dims), {a}, shape, a.element);
  }
  void reduce() {
    Value a = pick();
    std::vector<int64_t> axes;
    Shape shape;
    bool batch = false;
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (choices.once(2)) {
        axes.push_back(static_cast<int64_t>(i));
        batch |= a.shape[i].batch;
      } else {
        shape.push_back(a.shape[i]);
      }
    bool within = batch && choices.once(2);
    if (within)
      shape.insert(shape.begin(), {1, true});
    make(std::string("reduce ") + choices.of({"sum", "max", "min"}) + ", " + a.name + " over " + list(axes) +
             (within ? " within_samples" : ""),
         {a}, shape, a.element);
  }
  void along() {
    Value a = pick("f32");
    size_t axis = axisOf(a.shape);
    std::string dim = std::to_string(choices.once(20) ? choices.number() : static_cast<int64_t>(axis));
    if (choices.once(3))
      return make("cumsum " + a.name + " dim = " + dim + (choices.once(2) ? " reverse" : ""), {a}, a.shape);
    if (choices.once(3))
      return make("normalize " + a.name + " over [" + dim + "] epsilon = 1.0e-3", {a}, a.shape);
    if (choices.once(3))
      return make("reverse " + a.name + " over [" + dim + "]", {a}, a.shape);
    std::string name = choices.of({"softmax", "log_softmax", "argmax", "exp"});
    Shape shape = a.shape;
    if (name == "argmax" && !shape.empty())
      shape.erase(shape.begin() + static_cast<int64_t>(axis));
    make("along \"" + name + "\"(" + a.name + ") dim = " + dim, {a}, shape, name == "argmax" ? "i32" : "f32");
  }
  void product() {
    Value a = pick("f32"), b = pick("f32");
    std::vector<int64_t> lists[4]; // contracted and common of both
    std::vector<bool> taken[2] = {std::vector<bool>(a.shape.size()), std::vector<bool>(b.shape.size())};
    Shape shape;
    for (size_t i = 0; i < a.shape.size(); ++i)
      for (size_t j = 0; j < b.shape.size(); ++j)
        if (!taken[0][i] && !taken[1][j] && a.shape[i] == b.shape[j] && !choices.once(3)) {
          taken[0][i] = taken[1][j] = true;
          size_t common = choices.once(2) ? 2 : 0;
          lists[common].push_back(static_cast<int64_t>(i));
          lists[common + 1].push_back(static_cast<int64_t>(j));
          if (common)
            shape.push_back(a.shape[i]);
        }
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (!taken[0][i])
        shape.push_back(a.shape[i]);
    for (size_t j = 0; j < b.shape.size(); ++j)
      if (!taken[1][j])
        shape.push_back(b.shape[j]);
    make("dot_general " + a.name + ", " + b.name + " contract " + list(lists[0]) + " x " + list(lists[1]) +
             (lists[2].empty() ? "" : " common " + list(lists[2]) + " x " + list(lists[3])),
         {a, b}, shape);
  }
  void windows() {
    const Value &image = choices.once(2) ? values[2] : pick("f32");
    Value a = image, k = choices.once(3) ? pick("f32") : values[4];
    size_t count = a.shape.size() < 2 ? 0 : a.shape.size() - 2;
    bool pools = choices.once(3);
    std::vector<int64_t> taps, strides, padding, dilation;
    for (size_t i = 0; i < count; ++i) {
      taps.push_back(pools || k.shape.size() <= i + 2 ? 1 + static_cast<int64_t>(choices.below(3))
                                                      : k.shape[i + 2].times);
      strides.push_back(1 + static_cast<int64_t>(choices.below(2)));
      dilation.push_back(1 + static_cast<int64_t>(choices.below(2)));
      padding.insert(padding.end(),
                     {static_cast<int64_t>(choices.below(4)) - 1, static_cast<int64_t>(choices.below(4))});
    }
    Shape shape = a.shape;
    for (size_t i = 0; i < count; ++i)
      shape[i + 2].times = std::max<int64_t>(
          1, (near(shape[i + 2].times) + padding[2 * i] + padding[2 * i + 1] - (near(taps[i]) - 1) * dilation[i] - 1) /
                     strides[i] +
                 1);
    std::string given = " strides " + list(strides) + " padding " + list(padding);
    if (pools && choices.once(3)) {
      const Value &gradient = pick("f32");
      return make("pool_gradient " + gradient.name + " at " + a.name + " window " + list(taps) + given, {gradient, a},
                  a.shape);
    }
    if (pools)
      return make(std::string("pool ") + choices.of({"sum", "max", "min"}) + ", " + a.name + " window " + list(taps) +
                      given + (choices.once(2) ? " dilation " + list(dilation) : ""),
                  {a}, shape);
    if (shape.size() > 1 && !k.shape.empty())
      shape[1] = k.shape[0];
    given += " dilation " + list(dilation);
    if (choices.once(3)) { // with the samples as the second axis of both it is a sum over them
      std::vector<int64_t> spread;
      for (size_t i = 0; i < count; ++i)
        spread.push_back(1 + static_cast<int64_t>(choices.below(3)));
      given += " spread " + list(spread);
      if (!shape.empty() && a.shape.size() > 1 && a.shape[1].batch)
        shape[0] = a.shape[0];
      return make("convolution " + a.name + ", " + k.name + given +
                      (choices.once(3) ? " sample_groups = " + std::to_string(choices.number()) : ""),
                  {a, k}, shape);
    }
    given += choices.once(4) ? " groups = " + std::to_string(choices.number()) : "";
    make((choices.once(4) ? "transposed_convolution " : "convolution ") + a.name + ", " + k.name + given, {a, k},
         shape);
  }
  void slice() {
    Value a = pick();
    std::vector<int64_t> starts = numbers(a.shape, 3, 0), strides = numbers(a.shape, 2, 1);
    Shape shape = a.shape;
    for (size_t i = 0; i < shape.size(); ++i)
      if (!shape[i].batch)
        shape[i].times = std::max<int64_t>(1, (near(shape[i].times) - starts[i]) / strides[i]);
    make("slice " + a.name + " starts " + list(starts) + " strides " + list(strides), {a}, shape, a.element);
  }
  void pad() {
    Value a = pick();
    std::vector<int64_t> low = numbers(a.shape, 3, 0), high = numbers(a.shape, 3, 0), inner = numbers(a.shape, 2, 0);
    Shape shape = a.shape;
    for (size_t i = 0; i < shape.size(); ++i)
      if (!shape[i].batch)
        shape[i].times = near(shape[i].times) * (1 + inner[i]) - inner[i] + low[i] + high[i];
    make("pad " + a.name + " value = " + choices.of({"0.0", "1.0", "1.5", "0x7F800000", "1.0e10"}) + " low " +
             list(low) + " high " + list(high) + " interior " + list(inner),
         {a}, shape, a.element);
  }
  void concat() {
    Value a = pick();
    size_t axis = axisOf(a.shape);
    Shape shape = a.shape;
    Value b = choices.once(4) ? pick() : a;
    if (!shape.empty() && b.shape.size() > axis)
      shape[axis].times = near(shape[axis].times) + near(b.shape[axis].times);
    make("concat " + a.name + ", " + b.name + " dim = " + std::to_string(axis), {a, b}, shape, a.element);
  }
  void lookup() {
    Value a = pick(), ids = pick("i32");
    size_t axis = axisOf(a.shape);
    Shape shape = ids.shape;
    switch (choices.below(4)) {
    case 0:
      shape.push_back(size());
      return make("one_hot " + ids.name, {ids}, shape);
    case 1:
      shape = {size()};
      if (a.shape.size() > ids.shape.size())
        shape.insert(shape.end(), a.shape.begin() + static_cast<int64_t>(ids.shape.size()), a.shape.end());
      return make("scatter_rows " + ids.name + ", " + a.name, {ids, a}, shape);
    case 2:
      return make("cross_entropy " + a.name + ", " + ids.name, {a, ids}, shape);
    default:
      bool own = axis > 0 && !shape.empty() && a.shape[0] == shape[0] && shape[0].batch;
      shape = a.shape;
      if (!shape.empty())
        shape.erase(shape.begin() + static_cast<int64_t>(axis));
      shape.insert(shape.begin() + static_cast<int64_t>(std::min(axis, shape.size())), ids.shape.begin() + own,
                   ids.shape.end());
      make("take " + a.name + ", " + ids.name + " dim = " + std::to_string(axis), {a, ids}, shape, a.element);
    }
  }

  Choices &choices;
  std::vector<Value> values;
  std::string body;
  int count = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Choices choices({data, size});
  std::string text = Model(choices).text();
  if (choices.once(8)) // anything else
    text[choices.below(text.size() > 65535 ? 65535 : text.size())] = static_cast<char>(choices.below(256));
  constexpr int64_t batch = 10;
  mlir::MLIRContext &context = sharedContext();
  mtc::DiagnosticLines diagnostics(context, "fuzz.mlir", nullptr);
  mlir::OwningOpRef<mlir::ModuleOp> module = mtc::readModel(text, "fuzz.mlir", batch, context, diagnostics);
  if (!module && diagnostics.errors().empty())
    __builtin_trap();
  if (module)
    module->walk([](mlir::Operation *op) {
      if (op->getName().getDialectNamespace() == "graph")
        __builtin_trap();
    });
  return 0;
}
