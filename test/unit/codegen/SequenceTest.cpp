// SPDX-License-Identifier: Apache-2.0
//
// Samples of several rows: products with a matrix, the matrix' gradient, and products of matrices inside a sample, to
// the bit.
#include "test/unit/codegen/Expected.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

std::string tensor(std::initializer_list<int64_t> shape, bool split) {
  std::string text = split ? "tensor<?x" : "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

// An element at [i][j] of a matrix, perhaps one that lies transposed.
struct Matrix {
  const float *data;
  int64_t rows, columns;
  bool transposed;
  float at(int64_t i, int64_t j) const { return transposed ? data[j * rows + i] : data[i * columns + j]; }
};

// One FMA chain an element.
float chain(const Matrix &a, const Matrix &b, int64_t i, int64_t j) {
  float sum = 0;
  for (int64_t k = 0; k < a.columns; ++k)
    sum = std::fma(a.at(i, k), b.at(k, j), sum);
  return sum;
}

struct SequenceShape {
  int64_t lines, depth, columns;
  std::string name(const char *kind) const {
    return kind + std::to_string(lines) + "x" + std::to_string(depth) + "x" + std::to_string(columns);
  }
};
const std::vector<SequenceShape> sequences = {{1, 5, 3}, {3, 7, 70}, {6, 40, 1}, {8, 19, 33}, {21, 64, 64}};

TEST(Sequence, ProductsEqualTheChain) {
  std::string text;
  for (const SequenceShape &s : sequences)
    for (bool transposed : {false, true}) {
      std::string x = tensor({s.lines, s.depth}, true), y = tensor({s.lines, s.columns}, true),
                  w = transposed ? tensor({s.columns, s.depth}, false) : tensor({s.depth, s.columns}, false),
                  b = tensor({s.columns}, false);
      text += kernelText(s.name(transposed ? "t" : "p"), "matmul",
                         "^bb0(%x: " + x + ", %w: " + w + ", %b: " + b + ", %r: " + y + "):\n%0 = mt.matmul %x, %w " +
                             (transposed ? "transpose_b" : "") + " : " + x + ", " + w + "\n%1 = mt.add %0, %b : " + y +
                             ", " + b + "\n%2 = mt.mul %1, %r : " + y + ", " + y + "\nmt.yield %2 : " + y);
    }
  auto codes = compile(text);
  for (const SequenceShape &s : sequences)
    for (bool transposed : {false, true})
      for (int64_t rows : {1, 2, 3, 17}) {
        std::vector<float> x = randoms(rows * s.lines * s.depth, 1), w = randoms(s.depth * s.columns, 2),
                           b = randoms(s.columns, 3), r = randoms(rows * s.lines * s.columns, 4), expected(r.size());
        Matrix left{x.data(), rows * s.lines, s.depth, false}, right{w.data(), s.depth, s.columns, transposed};
        for (size_t i = 0; i < expected.size(); ++i)
          expected[i] = (chain(left, right, i / s.columns, i % s.columns) + b[i % s.columns]) * r[i];
        Guarded gx = guarded(x), gw = guarded(w), gb = guarded(b), gr = guarded(r);
        for (auto &code : codes)
          for (int64_t shares : {1, 2, 5}) {
            Guarded out(expected.size() * 4);
            code->run(s.name(transposed ? "t" : "p"), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                      {gx.as<void>(), gw.as<void>(), gb.as<void>(), gr.as<void>(), out.as<void>()}, shares);
            expectBits(out.as<float>(), expected,
                       code->target + " " + s.name(transposed ? "t" : "p") + " rows " + std::to_string(rows));
          }
      }
}

// Shards are of samples, chains of their rows in order; axes between are summed on the way.
TEST(Sequence, GradientsEqualTheTree) {
  std::string text;
  for (const SequenceShape &s : sequences) {
    std::string x = tensor({2, s.lines, s.depth}, true), y = tensor({2, s.lines, s.columns}, true),
                each = tensor({2, s.depth, s.columns}, true), sum = tensor({s.depth, s.columns}, true);
    text +=
        kernelText(s.name("g"), "matmul_wgrad",
                   "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.matmul %x, %y transpose_a : " + x + ", " + y +
                       "\n%1 = mt.reduce sum, %0 over [1] : " + each + "\n%2 = mt.reduce sum, %1 over [0] : " + sum +
                       "\nmt.yield %2 : " + tensor({s.depth, s.columns}, false));
  }
  for (bool fast : {false, true})
    for (int64_t shardRows : fast ? std::vector<int64_t>{3} : std::vector<int64_t>{1, 3, 40}) {
      auto codes = compile(text, {shardRows, 8, fast});
      for (const SequenceShape &s : sequences)
        for (int64_t rows : {1, 3, 8, 20}) {
          if (rows > shardRows * 8)
            continue;
          int64_t lines = 2 * s.lines, all = rows * lines, shard = (fast ? rows : shardRows) * lines;
          std::vector<float> x = randoms(all * s.depth, rows), y = randoms(all * s.columns, 7),
                             expected(s.depth * s.columns);
          for (int64_t i = 0; i < s.depth; ++i)
            for (int64_t j = 0; j < s.columns; ++j)
              expected[i * s.columns + j] = tree(0, fast ? 1 : 8, (all + shard - 1) / shard, [&](int64_t index) {
                float sum = 0;
                for (int64_t k = index * shard; k < std::min(all, (index + 1) * shard); ++k)
                  sum = std::fma(x[k * s.depth + i], y[k * s.columns + j], sum);
                return sum;
              });
          Guarded gx = guarded(x), gy = guarded(y);
          for (auto &code : codes) {
            Guarded out(expected.size() * 4);
            code->run(s.name("g"), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                      {gx.as<void>(), gy.as<void>(), out.as<void>()}, rows % 3 + 1);
            expectBits(out.as<float>(), expected,
                       code->target + " " + s.name("g") + " rows " + std::to_string(rows) + " shard " +
                           std::to_string(shardRows));
          }
        }
    }
}

// Two matrices a sample. Those of few elements are loops, the others tiles.
TEST(Sequence, MatricesOfASampleEqualTheChain) {
  const std::vector<SequenceShape> pairs = {{3, 5, 7}, {64, 16, 64}, {40, 70, 19}, {150, 9, 70}, {9, 300, 16}};
  std::string text;
  auto nameOf = [](const SequenceShape &s, int form) { return s.name("m") + "_" + std::to_string(form); };
  for (const SequenceShape &s : pairs)
    for (int form = 0; form < 4; ++form) {
      bool transposedA = form & 1, transposedB = form & 2;
      std::string x = transposedA ? tensor({2, s.depth, s.lines}, true) : tensor({2, s.lines, s.depth}, true),
                  y = transposedB ? tensor({2, s.columns, s.depth}, true) : tensor({2, s.depth, s.columns}, true);
      text += kernelText(nameOf(s, form), "rows",
                         "^bb0(%x: " + x + ", %y: " + y + "):\n%0 = mt.matmul %x, %y " +
                             (transposedA ? "transpose_a " : "") + (transposedB ? "transpose_b " : "") + ": " + x +
                             ", " + y + "\nmt.yield %0 : " + tensor({2, s.lines, s.columns}, true));
    }
  auto codes = compile(text);
  for (const SequenceShape &s : pairs)
    for (int form = 0; form < 4; ++form) {
      int64_t rows = 3, left = s.lines * s.depth, right = s.depth * s.columns, size = s.lines * s.columns;
      std::vector<float> x = randoms(rows * 2 * left, 1), y = randoms(rows * 2 * right, 2), expected;
      for (int64_t matrix = 0; matrix < rows * 2; ++matrix)
        for (int64_t i = 0; i < size; ++i)
          expected.push_back(chain({x.data() + matrix * left, s.lines, s.depth, bool(form & 1)},
                                   {y.data() + matrix * right, s.depth, s.columns, bool(form & 2)}, i / s.columns,
                                   i % s.columns));
      Guarded gx = guarded(x), gy = guarded(y);
      for (auto &code : codes) {
        Guarded out(expected.size() * 4);
        code->run(nameOf(s, form), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                  {gx.as<void>(), gy.as<void>(), out.as<void>()}, 2);
        expectBits(out.as<float>(), expected, code->target + " " + nameOf(s, form));
      }
    }
}

} // namespace
