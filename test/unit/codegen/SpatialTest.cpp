// SPDX-License-Identifier: Apache-2.0
//
// Kernels with operations over the axes of a sample, against the interpreter.
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace codegentest;
using mlir::mt::Tensor;

namespace {

// The values that the one kernel of `text` yields, and its operands, made up: f32 in (-1, 1), i32 around the indices of
// a table. With `specials` some floats are NaN, zeros of both signs, infinities and bounds of activations, and integers
// are of all 32 bits.
struct Meaning {
  std::vector<Tensor> operands, results;
  std::vector<bool> integers, wholeResults;
};

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float specialNumbers[] = {NAN,  0.0f,  -0.0f, NAN,   infinity, -infinity, 6.0f,
                                    3.0f, -3.0f, 1.0f,  -1.0f, NAN,      40.0f};

Meaning interpret(const std::string &text, int64_t rows, bool specials) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::mt::MtDialect, mlir::plan::PlanDialect, mlir::shard::ShardDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    std::abort();
  mlir::Block &body = (*module->getOps<mlir::plan::KernelOp>().begin()).getBody().front();
  Meaning meaning;
  llvm::DenseMap<mlir::Value, Tensor> values;
  for (mlir::BlockArgument argument : body.getArguments()) {
    auto type = mlir::cast<mlir::RankedTensorType>(argument.getType());
    Tensor tensor(mlir::mt::concreteShape(type, rows));
    std::vector<float> made = randoms(tensor.size(), argument.getArgNumber() + 1);
    bool integer = type.getElementType().isInteger(32);
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.data[i] = integer ? static_cast<int>(made[i] * (specials ? 0x1p31f : 12)) : made[i];
    for (int64_t i = argument.getArgNumber(); specials && !integer && i < tensor.size(); i += 3)
      tensor.data[i] = specialNumbers[(i / 3 * 7 + argument.getArgNumber()) % std::size(specialNumbers)];
    meaning.integers.push_back(integer);
    meaning.operands.push_back(tensor);
    values[argument] = tensor;
  }
  mlir::mt::EvalContext rowsOf;
  rowsOf.rows = rowsOf.samples = rows;
  for (mlir::Operation &op : body.without_terminator()) {
    llvm::SmallVector<Tensor> operands, results;
    for (mlir::Value operand : op.getOperands())
      operands.push_back(values[operand]);
    if (failed(mlir::cast<mlir::mt::InterpretOpInterface>(op).interpret(rowsOf, operands, results)))
      std::abort();
    values[op.getResult(0)] = results[0];
  }
  for (mlir::Value yield : body.getTerminator()->getOperands()) {
    meaning.results.push_back(values[yield]);
    meaning.wholeResults.push_back(mlir::getElementTypeOrSelf(yield.getType()).isInteger(32));
  }
  return meaning;
}

Guarded memoryOf(const Tensor &tensor, bool integer) {
  if (integer)
    return guarded(std::vector<int32_t>(tensor.data.begin(), tensor.data.end()));
  return guarded(std::vector<float>(tensor.data.begin(), tensor.data.end()));
}

// Equal within `tolerance`, or both NaN; zeros of one sign.
bool isNear(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b) || std::isinf(a) || std::isinf(b))
    return a == b || (std::isnan(a) && std::isnan(b));
  return std::fabs(a - b) <= tolerance && (tolerance > 0 || a != 0 || std::signbit(a) == std::signbit(b));
}

// Compiles and runs; every element within `tolerance`.
void expectMeaning(const std::string &kind, const std::string &body, double tolerance = 0, const Options &options = {},
                   bool specials = false) {
  std::string text = kernelText("kernel", kind, body);
  auto codes = compile(text, options);
  for (int64_t rows : {1, 7}) {
    Meaning meaning = interpret(text, rows, specials);
    for (auto &code : codes) {
      std::vector<Guarded> memory;
      for (size_t i = 0; i < meaning.operands.size(); ++i)
        memory.push_back(memoryOf(meaning.operands[i], meaning.integers[i]));
      for (const Tensor &result : meaning.results)
        memory.emplace_back(result.size() * 4);
      std::vector<void *> buffers;
      for (Guarded &one : memory)
        buffers.push_back(one.as<void>());
      code->run("kernel", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, buffers, 3);
      for (size_t r = 0; r < meaning.results.size(); ++r)
        for (int64_t i = 0; i < meaning.results[r].size(); ++i) {
          Guarded &result = memory[meaning.operands.size() + r];
          double found = meaning.wholeResults[r] ? result.as<int32_t>()[i] : result.as<float>()[i];
          ASSERT_PRED3(isNear, found, meaning.results[r].data[i], tolerance)
              << code->target << " result " << r << " element " << i << " of " << body;
        }
    }
  }
}

struct Window {
  const char *attributes, *outputs;
};

TEST(Pool, EqualsTheInterpreter) {
  for (Window w : {Window{"window = [2, 2] strides = [2, 2]", "?x4x3x19xf32"},
                   Window{"window = [3, 3] strides = [2, 2] padding = [1, 1, 0, 1]", "?x4x3x19xf32"},
                   Window{"window = [2, 3]", "?x7x4x19xf32"},
                   Window{"window = [5, 4] strides = [1, 2] padding = [2, 2, 1, 1]", "?x8x3x19xf32"},
                   Window{"window = [8, 6]", "?x1x1x19xf32"}}) {
    std::string x = "tensor<?x8x6x19xf32>", y = std::string("tensor<") + w.outputs + ">", window = w.attributes;
    for (std::string kind : {"max", "sum"}) {
      expectMeaning(
          "rows", "^bb0(%x: " + x + "):\n%0 = mt.pool " + kind + ", %x " + window + " : " + x + "\nmt.yield %0 : " + y,
          1e-5);
      bool max = kind == "max";
      expectMeaning("rows",
                    "^bb0(%dy: " + y + ", %x: " + x + "):\n%1 = mt.mul %dy, %dy : " + y + ", " + y +
                        "\n%0 = mt.pool_gradient " + kind + ", %1 " + (max ? "at %x " : "") + window + " : " + y +
                        (max ? ", " + x : "") + " to " + x + "\n%2 = mt.neg %0 : " + x + "\nmt.yield %2 : " + x,
                    1e-5);
    }
  }
}

// A NaN goes through what compares; infinities, zeros of both signs and bounds have their bits.
TEST(Specials, GoThroughElements) {
  const std::string x = "tensor<?x37xf32>";
  for (std::string op : {"relu", "relu6", "hard_sigmoid", "hard_silu", "hard_tanh", "sign", "abs", "leaky_relu"})
    expectMeaning("rows", "^bb0(%x: " + x + "):\n%0 = mt." + op + " %x : " + x + "\nmt.yield %0 : " + x,
                  op.starts_with("hard_si") || op == "leaky_relu" ? 1e-6 : 0, {}, true);
  for (std::string op : {"maximum", "minimum"}) {
    expectMeaning("rows",
                  "^bb0(%x: " + x + ", %y: " + x + "):\n%0 = mt." + op + " %x, %y : " + x + ", " + x +
                      "\nmt.yield %0 : " + x,
                  0, {}, true);
    for (std::string order : {"%x, %c : tensor<?x37xf32>, tensor<f32>", "%c, %x : tensor<f32>, tensor<?x37xf32>"})
      expectMeaning("rows",
                    "^bb0(%x: " + x + "):\n%c = mt.constant dense<0.0> : tensor<f32>\n%0 = mt." + op + " " + order +
                        "\nmt.yield %0 : " + x,
                    0, {}, true);
  }
}

TEST(Specials, GoThroughLinesAndWindows) {
  for (std::string kind : {"max", "min"})
    for (std::string size : {"1", "5", "16", "17", "70"})
      for (std::string of : {"%x", "%n"}) {
        const std::string x = "tensor<?x9x" + size + "xf32>", y = "tensor<?x9xf32>";
        expectMeaning("rows",
                      "^bb0(%x: " + x + "):\n%n = mt.neg %x : " + x + "\n%r = mt.reduce " + kind + ", " + of +
                          " over [2] : " + x + "\n%a = mt.argmax " + of + " : " + x + "\nmt.yield %r, %a : " + y +
                          ", tensor<?x9xi32>",
                      0, {}, true);
      }
  const std::string x = "tensor<?x8x6x19xf32>", y = "tensor<?x4x3x19xf32>";
  for (std::string window :
       {"window = [2, 2] strides = [2, 2]", "window = [3, 3] strides = [2, 2] padding = [1, 1, 0, 1]"})
    expectMeaning("rows",
                  "^bb0(%dy: " + y + ", %x: " + x + "):\n%0 = mt.pool max, %x " + window + " : " + x +
                      "\n%1 = mt.pool_gradient max, %dy at %x " + window + " : " + y + ", " + x + " to " + x +
                      "\nmt.yield %0, %1 : " + y + ", " + x,
                  1e-5, {}, true);
}

// Sums and products wrap; nothing goes through floats.
TEST(Integers, AreExact) {
  for (std::string size : {"1", "5", "16", "17", "70"}) {
    const std::string x = "tensor<?x9x" + size + "xi32>", y = "tensor<?x9xi32>", z = "tensor<?x" + size + "xi32>";
    for (std::string kind : {"sum", "max", "min"})
      expectMeaning("rows",
                    "^bb0(%x: " + x + ", %w: " + x + "):\n%m = mt.mul %x, %w : " + x + ", " + x +
                        "\n%n = mt.maximum %m, %x : " + x + ", " + x + "\n%s = mt.sub %n, %w : " + x + ", " + x +
                        "\n%r = mt.reduce " + kind + ", %s over [2] : " + x + "\n%q = mt.reduce " + kind +
                        ", %x over [1] : " + x + "\n%p = mt.reduce " + kind + ", %x over [1, 2] : " + x +
                        "\n%a = mt.argmax %s : " + x + "\nmt.yield %s, %r, %q, %p, %a : " + x + ", " + y + ", " + z +
                        ", tensor<?xi32>, " + y,
                    0, {}, true);
    expectMeaning("rows",
                  "^bb0(%x: " + x + "):\n%0 = mt.pad %x low = [1, 0] high = [0, 2] interior = [1, 0] value = -3.0 : " +
                      x + "\nmt.yield %0 : tensor<?x18x" + std::to_string(std::stoi(size) + 2) + "xi32>",
                  0, {}, true);
  }
}

TEST(Moves, EqualTheInterpreter) {
  expectMeaning("rows", R"(^bb0(%x: tensor<?x3x5x2xf32>):
    %0 = mt.pad %x low = [1, 0, 2] high = [0, 2, 0] interior = [1, 0, 0] value = 2.5 : tensor<?x3x5x2xf32>
    %1 = mt.slice %0 starts = [1, 2, 0] sizes = [2, 3, 4] strides = [2, 1, 1] : tensor<?x6x7x4xf32>
    %2 = mt.concat %1, %1 dim = 2 : tensor<?x2x3x4xf32>, tensor<?x2x3x4xf32>
    %3 = mt.reverse %2 over [1, 3] : tensor<?x2x6x4xf32>
    mt.yield %3, %0 : tensor<?x2x6x4xf32>, tensor<?x6x7x4xf32>)");
  expectMeaning("rows", R"(^bb0(%x: tensor<?x40x33xf32>, %y: tensor<?x40x20xf32>):
    %0 = mt.concat %x, %y, %x dim = 2 : tensor<?x40x33xf32>, tensor<?x40x20xf32>, tensor<?x40x33xf32>
    %1 = mt.reverse %0 over [2] : tensor<?x40x86xf32>
    %2 = mt.slice %1 starts = [0, 1] sizes = [40, 40] : tensor<?x40x86xf32>
    %3 = mt.relu %2 : tensor<?x40x40xf32>
    mt.yield %3 : tensor<?x40x40xf32>)");
  expectMeaning("rows", R"(^bb0(%x: tensor<?x4xf32>):
    %0 = mt.slice %x starts = [2] sizes = [1] : tensor<?x4xf32>
    %1 = mt.add %0, %x : tensor<?x1xf32>, tensor<?x4xf32>
    mt.yield %1 : tensor<?x4xf32>)",
                1e-6);
}

// Of the steps of a sequence: copies that are equal but for where they begin are one loop.
TEST(Moves, OfManyPartsEqualTheInterpreter) {
  constexpr int parts = 12;
  auto list = [](const std::function<std::string(int)> &text, int first = 0) {
    std::string all;
    for (int i = first; i < parts; ++i)
      all += (i > first ? ", " : "") + text(i);
    return all;
  };
  auto name = [](int i) { return "%p" + std::to_string(i); };
  std::string part = "tensor<?x2x19xf32>", whole = "tensor<?x2x228xf32>";
  std::string arguments = list([&](int i) { return name(i) + ": " + part; });
  std::string concat = list(name), types = list([&](int) { return part; });
  expectMeaning("rows", "^bb0(" + arguments + "):\n%0 = mt.concat " + concat + " dim = 2 : " + types +
                            "\n%1 = mt.concat %p3, " + list(name, 1) + " dim = 2 : " + types +
                            "\nmt.yield %1, %0 : " + whole + ", " + whole);
  // Every other part, from the last one on, and a value that is read again.
  std::string slices;
  for (int i = 0; i < parts; ++i)
    slices += "\n" + name(i) + " = mt.slice %x starts = [0, " + std::to_string((parts - 1 - i) * 38) +
              "] sizes = [2, 19] : tensor<?x2x456xf32>";
  expectMeaning("rows", "^bb0(%x: tensor<?x2x456xf32>):" + slices + "\n%0 = mt.add %p2, %p9 : " + part + ", " + part +
                            "\nmt.yield " + concat + ", %0 : " + types + ", " + part);
}

TEST(Lookup, EqualsTheInterpreter) {
  expectMeaning("rows", R"(^bb0(%t: tensor<9x35xf32>, %i: tensor<?x6xi32>):
    %0 = mt.gather %t, %i : tensor<9x35xf32>, tensor<?x6xi32>
    mt.yield %0 : tensor<?x6x35xf32>)");
  expectMeaning("scatter_add", R"(^bb0(%i: tensor<?x6xi32>, %u: tensor<?x6x35xf32>):
    %0 = mt.scatter_add %i, %u : tensor<?x6xi32>, tensor<?x6x35xf32> to tensor<9x35xf32>
    mt.yield %0 : tensor<9x35xf32>)",
                1e-5, {2, 8, false});
  expectMeaning("scatter_add", R"(^bb0(%i: tensor<?xi32>, %u: tensor<?x1500xf32>):
    %0 = mt.scatter_add %i, %u : tensor<?xi32>, tensor<?x1500xf32> to tensor<11x1500xf32>
    mt.yield %0 : tensor<11x1500xf32>)",
                1e-5, {3, 4, false});
  expectMeaning("single", R"(^bb0(%i: tensor<6xi32>, %u: tensor<6x35xf32>):
    %0 = mt.scatter_add %i, %u : tensor<6xi32>, tensor<6x35xf32> to tensor<9x35xf32>
    mt.yield %0 : tensor<9x35xf32>)",
                1e-5);
}

TEST(Take, EqualsTheInterpreter) {
  expectMeaning("rows", R"(^bb0(%x: tensor<?x5x9x35xf32>, %i: tensor<?x6xi32>, %all: tensor<20xi32>):
    %0 = mt.take %x, %i dim = 2 : tensor<?x5x9x35xf32>, tensor<?x6xi32>
    %1 = mt.take %0, %all dim = 3 : tensor<?x5x6x35xf32>, tensor<20xi32>
    mt.yield %0, %1 : tensor<?x5x6x35xf32>, tensor<?x5x6x20xf32>)");
  expectMeaning("rows", R"(^bb0(%y: tensor<?x5x6x35xf32>, %i: tensor<?x6xi32>, %all: tensor<6xi32>):
    %0 = mt.index_add %i, %y dim = 2 : tensor<?x6xi32>, tensor<?x5x6x35xf32> to tensor<?x5x4x35xf32>
    %1 = mt.index_add %all, %y dim = 2 : tensor<6xi32>, tensor<?x5x6x35xf32> to tensor<?x5x3x35xf32>
    mt.yield %0, %1 : tensor<?x5x4x35xf32>, tensor<?x5x3x35xf32>)",
                1e-5);
}

} // namespace
