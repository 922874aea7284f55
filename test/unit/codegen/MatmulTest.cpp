// SPDX-License-Identifier: Apache-2.0
//
// Products and sums over samples: each element is the chain and the tree that docs/exactness.md names, to the bit.
#include "test/unit/codegen/Expected.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

std::string tensor(const std::string &rows, int64_t columns, const std::string &element = "f32") {
  return "tensor<" + rows + "x" + std::to_string(columns) + "x" + element + ">";
}

// One FMA chain an element.
std::vector<float> product(const std::vector<float> &a, const std::vector<float> &b, int64_t rows, int64_t depth,
                           int64_t columns) {
  std::vector<float> c(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum = std::fma(a[i * depth + k], b[k * columns + j], sum);
      c[i * columns + j] = sum;
    }
  return c;
}

struct ProductShape {
  int64_t depth, columns;
};

// Also of a right side that lies transposed. A panel of 1,500 rows is packed in parts; it is three vectors wide with
// AVX-512. On CPUs with few registers, the left sides of two shapes are packed too. The last vector of some has at most
// eight columns.
TEST(Matmul, EqualsTheChainForAnyRowsAndShares) {
  std::vector<ProductShape> shapes = {{784, 256}, {256, 10}, {10, 256}, {3, 1},     {70, 100},
                                      {5, 17},    {300, 64}, {1, 33},   {1500, 48}, {1100, 257},
                                      {21, 530},  {20, 20},  {64, 40},  {9, 51},    {2, 4}};
  auto nameOf = [](ProductShape s, bool transposed) {
    return "m" + std::to_string(s.depth) + "x" + std::to_string(s.columns) + (transposed ? "t" : "");
  };
  std::string text;
  for (ProductShape s : shapes)
    for (bool transposed : {false, true}) {
      std::string x = tensor("?", s.depth), y = tensor("?", s.columns);
      std::string w =
          transposed ? tensor(std::to_string(s.columns), s.depth) : tensor(std::to_string(s.depth), s.columns);
      text += kernelText(nameOf(s, transposed), "matmul",
                         "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.matmul %x, %w " +
                             (transposed ? "transpose_b" : "") + " : " + x + ", " + w + "\nmt.yield %0 : " + y);
    }
  auto codes = compile(text);
  for (ProductShape s : shapes) {
    std::vector<float> w = randoms(s.depth * s.columns, 2), transposed(w.size());
    for (int64_t i = 0; i < s.depth; ++i)
      for (int64_t j = 0; j < s.columns; ++j)
        transposed[j * s.depth + i] = w[i * s.columns + j];
    Guarded weights[] = {guarded(w), guarded(transposed)};
    Guarded early[] = {guarded(w, /*atEnd=*/false), guarded(transposed, /*atEnd=*/false)};
    for (int64_t rows : {1, 2, 5, 6, 7, 13, 16, 33, 97, 130}) {
      std::vector<float> x = randoms(rows * s.depth, rows), expected = product(x, w, rows, s.depth, s.columns);
      Guarded input = guarded(x);
      for (auto &code : codes)
        for (bool transposed : {false, true})
          for (int64_t shares : {1, 2, 3, 7}) {
            Guarded output(rows * s.columns * 4);
            std::string name = nameOf(s, transposed);
            Guarded &right = (shares % 2 ? weights : early)[transposed];
            code->run(name, {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                      {input.as<void>(), right.as<void>(), output.as<void>()}, shares);
            expectBits(output.as<float>(), expected, code->target + " " + name + " rows " + std::to_string(rows));
          }
    }
  }
}

TEST(Matmul, RunsItsEpilogueOnTheTile) {
  auto codes = compile(kernelText("dense", "matmul", R"(
    ^bb0(%x: tensor<?x19xf32>, %w: tensor<19x37xf32>, %b: tensor<37xf32>, %keep: tensor<?x37xi1>, %s: tensor<f32>,
         %c: tensor<?x1xf32>):
    %0 = mt.matmul %x, %w : tensor<?x19xf32>, tensor<19x37xf32>
    %1 = mt.add %0, %b : tensor<?x37xf32>, tensor<37xf32>
    %2 = mt.relu %1 : tensor<?x37xf32>
    %z = mt.constant dense<0.0> : tensor<f32>
    %3 = mt.select %keep, %2, %z : tensor<?x37xi1>, tensor<?x37xf32>, tensor<f32>
    %4 = mt.mul %3, %s : tensor<?x37xf32>, tensor<f32>
    %5 = mt.sub %4, %c : tensor<?x37xf32>, tensor<?x1xf32>
    %6 = mt.compare gt, %1, %z : tensor<?x37xf32>, tensor<f32>
    mt.yield %5, %6 : tensor<?x37xf32>, tensor<?x37xi1>)"));
  int64_t rows = 29, depth = 19, columns = 37;
  std::vector<float> x = randoms(rows * depth, 1), w = randoms(depth * columns, 2), b = randoms(columns, 3),
                     c = randoms(rows, 4);
  std::vector<uint8_t> keep(rows * columns);
  for (size_t i = 0; i < keep.size(); ++i)
    keep[i] = i * 7 % 3 != 0;
  std::vector<float> expected = product(x, w, rows, depth, columns), scale{1.5f};
  std::vector<uint8_t> positive(expected.size());
  for (int64_t i = 0; i < rows * columns; ++i) {
    float sum = expected[i] + b[i % columns];
    positive[i] = sum > 0;
    expected[i] = (keep[i] ? (sum > 0 ? sum : 0) : 0) * 1.5f - c[i / columns];
  }
  Guarded gx = guarded(x), gw = guarded(w), gb = guarded(b), gk = guarded(keep), gs = guarded(scale), gc = guarded(c);
  for (auto &code : codes) {
    Guarded out(rows * columns * 4), flags(rows * columns);
    code->run("dense", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
              {gx.as<void>(), gw.as<void>(), gb.as<void>(), gk.as<void>(), gs.as<void>(), gc.as<void>(), out.as<void>(),
               flags.as<void>()},
              3);
    expectBits(out.as<float>(), expected, code->target);
    EXPECT_EQ(std::memcmp(flags.as<void>(), positive.data(), positive.size()), 0);
  }
}

TEST(Matmul, TakesStaticRows) {
  auto codes = compile(kernelText("square", "matmul", R"(
    ^bb0(%a: tensor<21x40xf32>, %b: tensor<40x80xf32>):
    %0 = mt.matmul %a, %b : tensor<21x40xf32>, tensor<40x80xf32>
    mt.yield %0 : tensor<21x80xf32>)"));
  std::vector<float> a = randoms(21 * 40, 1), b = randoms(40 * 80, 2);
  Guarded ga = guarded(a), gb = guarded(b);
  for (auto &code : codes) {
    Guarded out(21 * 80 * 4);
    code->run("square", {5, 0, 5, 0, 0, nullptr, nullptr, 0}, {ga.as<void>(), gb.as<void>(), out.as<void>()}, 4);
    expectBits(out.as<float>(), product(a, b, 21, 40, 80), code->target);
  }
}

TEST(MatmulWgrad, EqualsTheTreeForAnyRowsAndShards) {
  // M, N
  std::vector<ProductShape> shapes = {{200, 128}, {256, 10}, {10, 256}, {3, 1},    {70, 100},
                                      {5, 17},    {1, 33},   {33, 64},  {260, 70}, {70, 330}};
  std::string text;
  for (ProductShape s : shapes)
    text += kernelText("t" + std::to_string(s.depth) + "x" + std::to_string(s.columns), "matmul_wgrad",
                       "^bb0(%x: " + tensor("?", s.depth) + ", %y: " + tensor("?", s.columns) +
                           "):\n%0 = mt.matmul %x, %y transpose_a : " + tensor("?", s.depth) + ", " +
                           tensor("?", s.columns) + "\nmt.yield %0 : " + tensor(std::to_string(s.depth), s.columns));
  for (bool fast : {false, true})
    for (int64_t shardRows : {1, 4, 13, 64, 300}) {
      auto codes = compile(text, {shardRows, 8, fast});
      for (ProductShape s : shapes)
        for (int64_t rows : {1, 5, 26, 32, 100, 400}) {
          if (rows > shardRows * 8 || (rows > 32 && s.depth > 100 && shardRows != 64))
            continue;
          std::string name = "t" + std::to_string(s.depth) + "x" + std::to_string(s.columns);
          std::vector<float> x = randoms(rows * s.depth, rows), y = randoms(rows * s.columns, 7),
                             expected(s.depth * s.columns);
          int64_t shard = fast ? rows : shardRows;
          for (int64_t i = 0; i < s.depth; ++i)
            for (int64_t j = 0; j < s.columns; ++j)
              expected[i * s.columns + j] = tree(0, fast ? 1 : 8, (rows + shard - 1) / shard, [&](int64_t index) {
                float sum = 0;
                for (int64_t k = index * shard; k < std::min(rows, (index + 1) * shard); ++k)
                  sum = std::fma(x[k * s.depth + i], y[k * s.columns + j], sum);
                return sum;
              });
          Guarded gx = guarded(x), gy = guarded(y);
          for (auto &code : codes) {
            Guarded out(expected.size() * 4);
            code->run(name, {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, {gx.as<void>(), gy.as<void>(), out.as<void>()},
                      rows % 3 + 1);
            expectBits(out.as<float>(), expected,
                       code->target + " " + name + " rows " + std::to_string(rows) + " shard " +
                           std::to_string(shardRows));
          }
        }
    }
}

// Kernels of one object whose samples have different numbers of rows.
TEST(MatmulWgrad, SumsSamplesOfSeveralRows) {
  constexpr int64_t m = 20, n = 64, shardRows = 1, shards = 8;
  std::string text;
  for (int64_t lines : {1, 2, 3}) {
    std::string rows = lines == 1 ? "?" : "?x" + std::to_string(lines), x = tensor(rows, m), y = tensor(rows, n);
    std::string each = lines == 1 ? tensor(std::to_string(m), n) : tensor("?x" + std::to_string(m), n);
    text += kernelText("t" + std::to_string(lines), "matmul_wgrad",
                       "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.matmul %x, %y transpose_a : " + x + ", " + y +
                           (lines == 1 ? "" : "\n%1 = mt.reduce sum, %0 over [0] : " + each) + "\nmt.yield %" +
                           (lines == 1 ? "0" : "1") + " : " + tensor(std::to_string(m), n));
  }
  auto codes = compile(text, {shardRows, shards, false});
  for (int64_t lines : {1, 2, 3})
    for (int64_t rows : {5, 8}) {
      std::vector<float> x = randoms(rows * lines * m, 1), y = randoms(rows * lines * n, 2), expected(m * n);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          expected[i * n + j] = tree(0, shards, rows, [&](int64_t index) {
            float sum = 0;
            for (int64_t k = index * lines; k < (index + 1) * lines; ++k)
              sum = std::fma(x[k * m + i], y[k * n + j], sum);
            return sum;
          });
      Guarded gx = guarded(x), gy = guarded(y);
      for (auto &code : codes) {
        Guarded out(expected.size() * 4);
        code->run("t" + std::to_string(lines), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                  {gx.as<void>(), gy.as<void>(), out.as<void>()}, 1);
        expectBits(out.as<float>(), expected,
                   code->target + " lines " + std::to_string(lines) + " rows " + std::to_string(rows));
      }
    }
}

// Sides that are the first elements of longer lines, which lie further apart: of short shards and of long ones, and of
// a result that is computed transposed.
TEST(MatmulWgrad, ReadsTheFirstElementsOfLines) {
  constexpr int64_t more = 4, shards = 4;
  for (int64_t shardRows : {3, 70}) {
    std::vector<ProductShape> shapes = {{20, 64}, {40, 5}};
    std::string text;
    for (ProductShape s : shapes) {
      std::string x = tensor("?", s.depth), y = tensor("?", s.columns);
      std::string wideX = tensor("?", s.depth + more), wideY = tensor("?", s.columns + more);
      text += kernelText("t" + std::to_string(s.columns), "matmul_wgrad",
                         "^bb0(%x: " + wideX + ", %y: " + wideY + "):\n%0 = mt.slice %x starts = [0] sizes = [" +
                             std::to_string(s.depth) + "] : " + wideX + "\n%1 = mt.slice %y starts = [0] sizes = [" +
                             std::to_string(s.columns) + "] : " + wideY + "\n%2 = mt.matmul %0, %1 transpose_a : " + x +
                             ", " + y + "\nmt.yield %2 : " + tensor(std::to_string(s.depth), s.columns));
    }
    auto codes = compile(text, {shardRows, shards, false});
    for (ProductShape s : shapes) {
      int64_t rows = shards * shardRows - 1, left = s.depth + more, right = s.columns + more;
      std::vector<float> x = randoms(rows * left, 1), y = randoms(rows * right, 2), expected(s.depth * s.columns);
      for (int64_t i = 0; i < s.depth; ++i)
        for (int64_t j = 0; j < s.columns; ++j)
          expected[i * s.columns + j] = tree(0, shards, shards, [&](int64_t index) {
            float sum = 0;
            for (int64_t k = index * shardRows; k < std::min(rows, (index + 1) * shardRows); ++k)
              sum = std::fma(x[k * left + i], y[k * right + j], sum);
            return sum;
          });
      Guarded gx = guarded(x), gy = guarded(y);
      for (auto &code : codes) {
        Guarded out(expected.size() * 4);
        code->run("t" + std::to_string(s.columns), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                  {gx.as<void>(), gy.as<void>(), out.as<void>()}, 2);
        expectBits(out.as<float>(), expected,
                   code->target + " columns " + std::to_string(s.columns) + " shard " + std::to_string(shardRows));
      }
    }
  }
}

TEST(Reduce, EqualsTheTree) {
  auto codes = compile(kernelText("sums", "reduce", R"(
    ^bb0(%a: tensor<?x100xf32>, %b: tensor<?xf32>, %c: tensor<?x2x64xf32>):
    %0 = mt.reduce sum, %a over [0] : tensor<?x100xf32>
    %1 = mt.reduce sum, %b over [0] : tensor<?xf32>
    %2 = mt.reduce sum, %c over [0] : tensor<?x2x64xf32>
    mt.yield %0, %1, %2 : tensor<100xf32>, tensor<f32>, tensor<2x64xf32>)"),
                       {5, 8, false});
  for (int64_t rows : {1, 4, 5, 11, 23, 40}) {
    std::vector<std::vector<float>> in = {randoms(rows * 100, 1), randoms(rows, 2), randoms(rows * 128, 3)};
    for (auto &code : codes) {
      std::vector<Guarded> memory;
      std::vector<int64_t> sizes = {100, 1, 128};
      for (auto &values : in)
        memory.push_back(guarded(values));
      for (int64_t size : sizes)
        memory.emplace_back(size * 4);
      std::vector<void *> buffers;
      for (Guarded &one : memory)
        buffers.push_back(one.as<void>());
      code->run("sums", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, buffers, 2);
      for (int which = 0; which < 3; ++which) {
        std::vector<float> expected(sizes[which]);
        for (int64_t j = 0; j < sizes[which]; ++j)
          expected[j] = tree(0, 8, (rows + 4) / 5, [&](int64_t index) {
            float sum = 0;
            for (int64_t k = index * 5; k < std::min(rows, (index + 1) * 5); ++k)
              sum += in[which][k * sizes[which] + j];
            return sum;
          });
        expectBits(static_cast<float *>(buffers[3 + which]), expected,
                   code->target + " operand " + std::to_string(which));
      }
    }
  }
}

} // namespace
