// SPDX-License-Identifier: Apache-2.0
//
// Functions of StableHLO by a grammar: every op that is read, with operands, attributes and types that are right as a
// rule, and otherwise anything. The importer says no, with a message, or gives a model that verifies.
#include "frontend/stablehlo/Call.h"
#include "frontend/stablehlo/ReadStableHlo.h"
#include "test/fuzz/Choices.h"
#include "test/fuzz/Context.h"

namespace {

using mtc::stablehlo::OpEntry;

std::vector<OpEntry> allOps() {
  std::vector<OpEntry> ops;
  for (auto family : {mtc::stablehlo::elementwiseOps, mtc::stablehlo::shapeOps, mtc::stablehlo::reductionOps,
                      mtc::stablehlo::productOps, mtc::stablehlo::scatterOps, mtc::stablehlo::bitOps,
                      mtc::stablehlo::normalizationOps})
    ops.insert(ops.end(), family().begin(), family().end());
  return ops;
}

struct Value {
  std::string name, type;
};

class Function {
public:
  explicit Function(Choices &choices) : choices(choices) {}

  std::string text() {
    values = {{"%x", choices.of({"tensor<?x4xf32>", "tensor<?x6x4xf32>", "tensor<?x6x6x2xf32>", "tensor<?x4xi32>"})},
              {"%w", choices.of({"tensor<4x4xf32>", "tensor<3x3x2x2xf32>", "tensor<4xf32>", "tensor<f32>"})},
              {"%v", type()}};
    std::string arguments, types, body;
    for (const Value &value : values) {
      arguments += (arguments.empty() ? "" : ", ") + value.name + ": " + value.type;
      types += (types.empty() ? "" : ", ") + value.type;
    }
    for (size_t i = 0, count = 1 + choices.below(12); i < count; ++i)
      body += op(static_cast<int>(i));
    const Value &result = choices.once(3) ? values.back() : choices.of(values);
    std::string main = "  \"func.func\"() <{function_type = (" + types + ") -> " + result.type +
                       ", sym_name = \"main\", sym_visibility = \"" + choices.of({"public", "public", "private"}) +
                       "\"}> ({\n  ^bb0(" + arguments + "):\n" + body + "    \"func.return\"(" + result.name + ") : (" +
                       result.type + ") -> ()\n  }) : () -> ()\n";
    return "\"builtin.module\"() ({\n" + main + callee() + "}) : () -> ()\n";
  }

private:
  // Of x [?, 4], called by main now and then, and by itself.
  std::string callee() {
    std::string of = "tensor<?x4xf32>";
    std::string op = choices.once(4) ? "\"func.call\"(%x) <{callee = @f}>" : "\"stablehlo.abs\"(%x)";
    return "  \"func.func\"() <{function_type = (" + of + ") -> " + of +
           ", sym_name = \"f\", sym_visibility = \"private\"}> ({\n  ^bb0(%x: " + of + "):\n    %y = " + op + " : (" +
           of + ") -> " + of + "\n    \"func.return\"(%y) : (" + of + ") -> ()\n  }) : () -> ()\n";
  }

  std::string type() {
    std::string shape;
    for (size_t i = 0, rank = choices.below(5); i < rank; ++i)
      shape +=
          (choices.once(i == 0 ? 2 : 12) ? "?"
                                         : std::to_string(choices.once(12) ? choices.below(300) : choices.below(5))) +
          "x";
    return "tensor<" + shape +
           choices.of({"f32", "f32", "f32", "i32", "i64", "i1", "f16", "bf16", "i8", "ui8", "f64", "ui32", "index",
                       "complex<f32>", "f8E4M3FN", "i4"}) +
           ">";
  }

  std::string constant() {
    std::string of = choices.once(2)
                         ? type()
                         : choices.of({"tensor<f32>", "tensor<i32>", "tensor<1xi32>", "tensor<2xi64>", "tensor<i1>"});
    std::string number = choices.of({"0", "1", "true", "0.0", "1.5", "0xFF800000", "-1", "3", "\"0x00000000\"", "[]"});
    return "dense<" + number + "> : " + (choices.once(10) ? type() : of) + "\x01" + of;
  }

  std::string array(size_t most) { return "array<i64: " + std::to_string(choices.number()) + more(most) + ">"; }
  std::string more(size_t most) {
    std::string rest = choices.list(most);
    return rest.empty() ? "" : ", " + rest;
  }

  std::string dimensions() {
    static const std::vector<const char *> keys = {"offset_dims",
                                                   "collapsed_slice_dims",
                                                   "start_index_map",
                                                   "operand_batching_dims",
                                                   "lhs_contracting_dimensions",
                                                   "rhs_contracting_dimensions",
                                                   "lhs_batching_dimensions",
                                                   "rhs_batching_dimensions",
                                                   "start_indices_batching_dims",
                                                   "update_window_dims",
                                                   "inserted_window_dims",
                                                   "input_batching_dims",
                                                   "scatter_indices_batching_dims",
                                                   "scatter_dims_to_operand_dims"};
    std::string text;
    for (const char *key : keys)
      if (choices.once(2))
        text += std::string(text.empty() ? "" : ", ") + key + " = [" + choices.list(3) + "]";
    return "#stablehlo<" + text + (text.empty() ? "" : ", ") +
           "index_vector_dim = " + std::to_string(choices.below(4)) + ">";
  }

  std::string attributes(const std::string &name) {
    std::string text;
    auto add = [&](const std::string &key, const std::string &value) {
      if (!choices.once(15))
        text += (text.empty() ? "" : ", ") + key + " = " + (choices.once(25) ? "\"x\"" : value);
    };
    for (const char *key : {"broadcast_dimensions", "permutation", "dimensions", "start_indices", "limit_indices",
                            "strides", "slice_sizes", "edge_padding_low", "edge_padding_high", "interior_padding",
                            "window_dimensions", "window_strides", "rhs_dilation", "lhs_dilation", "base_dilations"})
      if (uses(name, key))
        add(key, array(4));
    if (uses(name, "dimension_numbers"))
      add("dimension_numbers",
          name == "convolution"
              ? choices.of({"#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
                            "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>",
                            "#stablehlo.conv<[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]>",
                            "#stablehlo.conv<[f, b, 0]x[i, o, 0]->[f, b, 0]>", "#stablehlo.conv<[b, b]x[]->[0]>"})
              : dimensions());
    if (name == "dot_general")
      add("dot_dimension_numbers", dimensions());
    if (name == "scatter")
      add("scatter_dimension_numbers", dimensions());
    if (name == "compare")
      add("comparison_direction",
          std::string("#stablehlo<comparison_direction ") + choices.of({"EQ", "LT", "GE", "NE", "X"}) + ">");
    if (name == "convolution" && choices.once(4))
      add("window_reversal", choices.of({"array<i1: true, true>", "array<i1: true>", "array<i1: false, true>"}));
    if (name == "convolution" || name == "reduce_window" || name == "select_and_scatter")
      add("padding", choices.once(2) ? "dense<" + std::to_string(choices.below(3)) + "> : tensor<2x2xi64>"
                                     : "dense<1> : tensor<" + std::to_string(choices.below(5)) + "x2xi64>");
    for (const char *key : {"iota_dimension", "dimension", "feature_group_count", "batch_group_count"})
      if (uses(name, key))
        add(key, std::to_string(choices.number()) + " : i64");
    if (name.starts_with("batch_norm")) {
      add("epsilon", choices.of({"1.0e-3 : f32", "0.0 : f32", "1 : i64"}));
      add("feature_index", std::to_string(choices.below(4)) + " : i64");
    }
    if (name == "custom_call")
      add("call_target_name", choices.of({"\"Sharding\"", "\"mhlo.erf\"", "\"shape_assertion\"", "\"f\"", "1"}));
    return text;
  }
  bool uses(const std::string &name, const std::string &key) {
    static const std::vector<std::pair<const char *, const char *>> pairs = {
        {"broadcast_in_dim", "broadcast_dimensions"},
        {"dynamic_broadcast_in_dim", "broadcast_dimensions"},
        {"transpose", "permutation"},
        {"reduce", "dimensions"},
        {"reverse", "dimensions"},
        {"slice", "start_indices"},
        {"slice", "limit_indices"},
        {"slice", "strides"},
        {"dynamic_slice", "slice_sizes"},
        {"gather", "slice_sizes"},
        {"pad", "edge_padding_low"},
        {"pad", "edge_padding_high"},
        {"pad", "interior_padding"},
        {"reduce_window", "window_dimensions"},
        {"reduce_window", "window_strides"},
        {"select_and_scatter", "window_dimensions"},
        {"select_and_scatter", "window_strides"},
        {"reduce_window", "base_dilations"},
        {"convolution", "window_strides"},
        {"convolution", "rhs_dilation"},
        {"convolution", "lhs_dilation"},
        {"gather", "dimension_numbers"},
        {"dynamic_gather", "dimension_numbers"},
        {"convolution", "dimension_numbers"},
        {"iota", "iota_dimension"},
        {"dynamic_iota", "iota_dimension"},
        {"concatenate", "dimension"},
        {"get_dimension_size", "dimension"},
        {"convolution", "feature_group_count"},
        {"convolution", "batch_group_count"}};
    for (auto [op, attribute] : pairs)
      if (op == name && attribute == key)
        return true;
    return choices.once(60);
  }

  std::string op(int number) {
    static const std::vector<OpEntry> ops = allOps();
    const OpEntry &entry = choices.of(ops);
    std::string name = entry.name, held, result = type();
    auto count = static_cast<size_t>(entry.operands < 0 ? choices.below(4) : entry.operands);
    if (choices.once(15))
      count = choices.below(5);
    std::string operands, types;
    for (size_t i = 0; i < count; ++i) {
      const Value &value = choices.once(2) ? values.back() : choices.of(values);
      operands += (i ? ", " : "") + value.name;
      types += (i ? ", " : "") + value.type;
      if (i == 0 && !choices.once(3))
        result = value.type;
    }
    if (name == "constant" || choices.once(6)) { // constants decide most attributes: there are more of them
      std::string both = constant();
      held = "value = " + both.substr(0, both.find('\x01'));
      result = both.substr(both.find('\x01') + 1);
      name = "constant", operands = types = "";
    }
    std::string given = attributes(name);
    given = held.empty() ? given : held + (given.empty() ? "" : ", " + given);
    std::string region;
    if (name == "reduce" || name == "reduce_window" || name == "scatter" || choices.once(60))
      region = std::string(" ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %c = \"stablehlo.") +
               choices.of({"add", "maximum", "minimum", "or", "multiply"}) +
               "\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n      \"stablehlo.return\"(%c) : "
               "(tensor<f32>) -> ()\n    })";
    if (name == "select_and_scatter")
      region = std::string(" ({\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %c = \"stablehlo.compare\"(%a, "
                           "%b) <{comparison_direction = #stablehlo<comparison_direction ") +
               choices.of({"GE", "GE", "GT"}) +
               ">}> : (tensor<f32>, tensor<f32>) -> tensor<i1>\n      \"stablehlo.return\"(%c) : (tensor<i1>) -> "
               "()\n    }, {\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %c = \"stablehlo.add\"(%a, %b) : "
               "(tensor<f32>, tensor<f32>) -> tensor<f32>\n      \"stablehlo.return\"(%c) : (tensor<f32>) -> ()\n    "
               "})";
    std::string kind = choices.once(25) ? choices.of({"\"func.call\"", "\"func.return\"", "\"stablehlo.composite\""})
                                        : "\"stablehlo." + name + "\"";
    if (kind == "\"func.call\"")
      given = "callee = @f";
    if (kind == "\"stablehlo.composite\"")
      given = std::string("name = ") + choices.of({"\"chlo.erf\"", "\"g\""}) + ", decomposition = @f";
    std::string made = "%r" + std::to_string(number);
    bool none = kind == "\"func.return\"";
    if (!none)
      values.push_back({made, result});
    return "    " + (none ? "" : made + " = ") + kind + "(" + operands + ") <{" + given + "}>" + region + " : (" +
           types + ") -> " + (none ? "()" : result) + "\n";
  }

  Choices &choices;
  std::vector<Value> values;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Choices choices({data, size});
  std::string text = Function(choices).text();
  if (choices.once(8)) // anything else
    text[choices.below(text.size() > 65535 ? 65535 : text.size())] = static_cast<char>(choices.below(256));
  if (!mtc::isStableHlo(text))
    return 0;
  mtc::TrainingOptions options;
  if (choices.once(3)) { // a whole step, of a batch of any size or of a fixed one
    options.step = true;
    options.state = choices.of({"1:0", "1:0,2", "1,2:0", "2:0", "1-2:0-1"});
    options.split = choices.of({"0", "0,2", "0-1"});
    if (choices.once(2))
      std::replace(text.begin(), text.end(), '?', choices.of({"2", "4", "6"})[0]);
  } else {
    options.loss = "mse";
    options.optimizer = "sgd";
  }
  constexpr int64_t batch = 10;
  mlir::MLIRContext &context = sharedContext();
  mtc::DiagnosticLines diagnostics(context, "fuzz.mlir", nullptr);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mtc::readStableHlo(text, "fuzz.mlir", batch, options, context, diagnostics);
  if (!module && diagnostics.errors().empty())
    __builtin_trap();
  return 0;
}
