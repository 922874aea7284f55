// SPDX-License-Identifier: Apache-2.0
//
// Kernels of kind rows whose unit of work is a line of a sample: the bits are those of a kernel that takes whole
// samples. A sum over a sample, which no line can compute, makes a kernel of the latter kind.
#include "test/unit/codegen/Harness.h"
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

struct Argument {
  std::string type;
  int64_t sample, fixed; // elements of a sample, or of the whole
};

struct Result {
  std::string value, type;
  int64_t sample;
};

// Runs `ops` by lines and by samples, in tiles of several ranges, and compares the results.
void compare(const std::vector<Argument> &arguments, const std::string &ops, const std::vector<Result> &results) {
  std::string head = "^bb0(", yields, types;
  for (size_t i = 0; i < arguments.size(); ++i)
    head += (i ? ", %a" : "%a") + std::to_string(i) + ": " + arguments[i].type;
  head += "):\n";
  for (const Result &result : results) {
    yields += (yields.empty() ? "" : ", ") + result.value;
    types += (types.empty() ? "" : ", ") + result.type;
  }
  std::string sum = "%whole = mt.reduce sum, %a0 over [1, 2, 3] : " + arguments[0].type + "\n";
  auto byLine = compile(kernelText("line", "rows", head + ops + "mt.yield " + yields + " : " + types));
  std::string end = "mt.yield " + yields + ", %whole : " + types + ", tensor<?xf32>";
  auto bySample = compile(kernelText("sample", "rows", head + ops + sum + end));
  ASSERT_EQ(byLine.size(), bySample.size());
  for (int64_t rows : {1, 3}) {
    mt_kernel_params params{rows, 5, 64, 0, 7, nullptr, nullptr, 0};
    std::vector<Guarded> inputs;
    for (size_t i = 0; i < arguments.size(); ++i)
      inputs.push_back(guarded(randoms(arguments[i].sample ? rows * arguments[i].sample : arguments[i].fixed, 3 + i)));
    auto run = [&](Code &code, const char *name, int parts, bool whole) {
      std::vector<Guarded> outputs;
      std::vector<void *> buffers;
      for (Guarded &input : inputs)
        buffers.push_back(input.as<void>());
      for (const Result &result : results)
        outputs.emplace_back(rows * result.sample * 4);
      if (whole)
        outputs.emplace_back(rows * 4);
      for (Guarded &output : outputs)
        buffers.push_back(output.as<void>());
      code.run(name, params, buffers, parts);
      return outputs;
    };
    for (size_t target = 0; target < byLine.size(); ++target) {
      std::vector<Guarded> expected = run(*bySample[target], "sample", 1, true);
      EXPECT_GT(byLine[target]->tiles("line", params), rows) << "expected several tiles of a sample";
      for (int parts : {1, 2, 7}) {
        std::vector<Guarded> found = run(*byLine[target], "line", parts, false);
        for (size_t i = 0; i < results.size(); ++i)
          for (int64_t at = 0; at < rows * results[i].sample; ++at)
            ASSERT_EQ(found[i].as<uint32_t>()[at], expected[i].as<uint32_t>()[at])
                << byLine[target]->target << " " << results[i].value << " element " << at << " of " << rows << " rows";
      }
    }
  }
}

// Operands that have all lines, or are repeated along some of the axes that count them.
TEST(Lines, ReadTheirPartsOfOperands) {
  compare({{"tensor<?x6x40x100xf32>", 24000, 0},
           {"tensor<100xf32>", 0, 100},
           {"tensor<40x100xf32>", 0, 4000},
           {"tensor<?x1x1x100xf32>", 100, 0},
           {"tensor<?x6x1x1xf32>", 6, 0},
           {"tensor<6x1x1xf32>", 0, 6},
           {"tensor<40x1xf32>", 0, 40},
           {"tensor<f32>", 0, 1}},
          R"(
    %c = mt.constant dense<0.5> : tensor<40x100xf32>
    %0 = mt.add %a0, %a1 : tensor<?x6x40x100xf32>, tensor<100xf32>
    %1 = mt.add %0, %a2 : tensor<?x6x40x100xf32>, tensor<40x100xf32>
    %2 = mt.mul %1, %a3 : tensor<?x6x40x100xf32>, tensor<?x1x1x100xf32>
    %3 = mt.mul %2, %a4 : tensor<?x6x40x100xf32>, tensor<?x6x1x1xf32>
    %4 = mt.add %3, %a5 : tensor<?x6x40x100xf32>, tensor<6x1x1xf32>
    %5 = mt.mul %4, %a6 : tensor<?x6x40x100xf32>, tensor<40x1xf32>
    %6 = mt.mul %5, %a7 : tensor<?x6x40x100xf32>, tensor<f32>
    %7 = mt.add %6, %c : tensor<?x6x40x100xf32>, tensor<40x100xf32>
    %max = mt.reduce max, %7 over [3] : tensor<?x6x40x100xf32>
    %m = mt.reshape %max : tensor<?x6x40xf32> to tensor<?x6x40x1xf32>
    %8 = mt.sub %7, %m : tensor<?x6x40x100xf32>, tensor<?x6x40x1xf32>
    %9 = mt.exp %8 : tensor<?x6x40x100xf32>
    %s = mt.reduce sum, %9 over [3] : tensor<?x6x40x100xf32>
    %t = mt.reshape %s : tensor<?x6x40xf32> to tensor<?x6x40x1xf32>
    %10 = mt.div %9, %t : tensor<?x6x40x100xf32>, tensor<?x6x40x1xf32>
)",
          {{"%10", "tensor<?x6x40x100xf32>", 24000}, {"%s", "tensor<?x6x40xf32>", 240}});
}

// Random numbers are those of the elements, whatever the unit of work.
TEST(Lines, KeepRandomNumbers) {
  compare({{"tensor<?x1x300x100xf32>", 30000, 0}}, R"(
    %r = mt.random_uniform "noise" : tensor<?x1x300x100xf32>
    %0 = mt.mul %a0, %r : tensor<?x1x300x100xf32>, tensor<?x1x300x100xf32>
    %1 = mt.reduce sum, %0 over [3] : tensor<?x1x300x100xf32>
)",
          {{"%0", "tensor<?x1x300x100xf32>", 30000}, {"%1", "tensor<?x1x300xf32>", 300}});
}

// Moves behind the axes that count lines, and products of matrices that lines have.
TEST(Lines, MoveAndMultiply) {
  compare({{"tensor<?x12x40x24xf32>", 11520, 0}, {"tensor<?x12x40x24xf32>", 11520, 0}}, R"(
    %0 = mt.matmul %a0, %a1 transpose_b : tensor<?x12x40x24xf32>, tensor<?x12x40x24xf32>
    %1 = mt.transpose %0 by [0, 1, 3, 2] : tensor<?x12x40x40xf32>
    %2 = mt.slice %1 starts = [0, 0, 7] sizes = [12, 40, 20] strides = [1, 1, 1] : tensor<?x12x40x40xf32>
    %3 = mt.concat %2, %a0 dim = 3 : tensor<?x12x40x20xf32>, tensor<?x12x40x24xf32>
    %4 = mt.reshape %3 : tensor<?x12x40x44xf32> to tensor<?x12x1760xf32>
    %5 = mt.reverse %4 over [2] : tensor<?x12x1760xf32>
)",
          {{"%5", "tensor<?x12x1760xf32>", 21120}, {"%1", "tensor<?x12x40x40xf32>", 19200}});
}

} // namespace
