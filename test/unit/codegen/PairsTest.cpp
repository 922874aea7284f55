// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 operands: each element is the chain of pairs that docs/precision.md names, to the bit and on every
// target, with subnormal numbers taken as zero in the chain and kept in the tree.
#include "test/unit/codegen/ConvReference.h"
#include "test/unit/codegen/Expected.h"
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <immintrin.h>

namespace codegentest::pairs {
namespace {

using Half = uint16_t;

float widened(Half bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

const Options everyTarget{1, 8, false, /*dots=*/true};

// Random bf16 numbers below `scale`.
std::vector<Half> halves(size_t n, unsigned seed, float scale = 1) {
  std::vector<Half> made;
  for (float value : randoms(n, seed)) {
    float scaled = value * scale;
    uint32_t bits;
    std::memcpy(&bits, &scaled, 4);
    made.push_back(static_cast<Half>(bits >> 16));
  }
  return made;
}

// One chain.
class Chain {
public:
  void add(Half x, Half y) {
    if (alone) {
      terms.push_back({widened(x), widened(y)});
      std::swap(terms[terms.size() - 1], terms[terms.size() - 2]);
    } else {
      terms.push_back({widened(x), widened(y)});
    }
    alone = !alone;
  }
  // The last term has no partner.
  void end() { alone = false; }
  __attribute__((target("fma"), noinline)) float value() const {
    unsigned control = _mm_getcsr();
    _mm_setcsr(control | 0x8040); // FTZ and DAZ
    __m128 sum = _mm_setzero_ps();
    for (auto [x, y] : terms)
      sum = _mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(y), sum);
    float made = _mm_cvtss_f32(sum);
    _mm_setcsr(control);
    return made;
  }

private:
  std::vector<std::pair<float, float>> terms; // in the order of the FMAs
  bool alone = false;
};

std::string tensor(const std::string &rows, int64_t columns, const std::string &element = "bf16") {
  return "tensor<" + rows + "x" + std::to_string(columns) + "x" + element + ">";
}
std::string tensor(const std::string &first, int64_t a, int64_t b, int64_t c, const std::string &element = "bf16") {
  return "tensor<" + first + "x" + std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c) + "x" +
         element + ">";
}

struct ProductShape {
  int64_t depth, columns;
};

// Scales of the operands: of the second one, products and sums are near the smallest normal number.
constexpr float scales[] = {1, 0x1p-63f};

TEST(Pairs, OfMatrixProducts) {
  std::vector<ProductShape> shapes = {{256, 64}, {33, 10}, {10, 130}, {1, 1}, {71, 100}, {2500, 16}};
  std::string text;
  for (ProductShape s : shapes)
    for (bool transposed : {false, true}) {
      std::string x = tensor("?", s.depth), y = tensor("?", s.columns, "f32");
      std::string w =
          transposed ? tensor(std::to_string(s.columns), s.depth) : tensor(std::to_string(s.depth), s.columns);
      text += kernelText("m" + std::to_string(s.depth) + (transposed ? "t" : ""), "matmul",
                         "^bb0(%x: " + x + ", %w: " + w + "):\n%0 = mt.matmul %x, %w " +
                             (transposed ? "transpose_b" : "") + " : " + x + ", " + w + "\nmt.yield %0 : " + y);
    }
  auto codes = compile(text, everyTarget);
  for (ProductShape s : shapes)
    for (float scale : scales) {
      std::vector<Half> w = halves(s.depth * s.columns, 2, scale), transposed(w.size());
      for (int64_t i = 0; i < s.depth; ++i)
        for (int64_t j = 0; j < s.columns; ++j)
          transposed[j * s.depth + i] = w[i * s.columns + j];
      Guarded weights[] = {guarded(w), guarded(transposed)};
      for (int64_t rows : {1, 7, 130}) {
        std::vector<Half> x = halves(rows * s.depth, rows, scale);
        std::vector<float> expected;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < s.columns; ++j) {
            Chain chain;
            for (int64_t k = 0; k < s.depth; ++k)
              chain.add(x[i * s.depth + k], w[k * s.columns + j]);
            expected.push_back(chain.value());
          }
        Guarded input = guarded(x);
        for (auto &code : codes)
          for (bool isTransposed : {false, true})
            for (int64_t shares : {1, 3}) {
              Guarded output(expected.size() * 4);
              std::string name = "m" + std::to_string(s.depth) + (isTransposed ? "t" : "");
              code->run(name, {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                        {input.as<void>(), weights[isTransposed].as<void>(), output.as<void>()}, shares);
              expectBits(output.as<float>(), expected, code->target + " " + name + " rows " + std::to_string(rows));
            }
      }
    }
}

TEST(Pairs, OfWeightGradients) {
  std::vector<ProductShape> shapes = {{100, 64}, {256, 10}, {10, 80}, {3, 1}, {71, 33}};
  std::string text;
  for (ProductShape s : shapes)
    text +=
        kernelText("t" + std::to_string(s.depth), "matmul_wgrad",
                   "^bb0(%x: " + tensor("?", s.depth) + ", %y: " + tensor("?", s.columns) +
                       "):\n%0 = mt.matmul %x, %y transpose_a : " + tensor("?", s.depth) + ", " +
                       tensor("?", s.columns) + "\nmt.yield %0 : " + tensor(std::to_string(s.depth), s.columns, "f32"));
  for (bool fast : {false, true})
    for (int64_t shardRows : {1, 3, 8, 17, 150}) {
      auto codes = compile(text, {shardRows, 8, fast, /*dots=*/true});
      for (ProductShape s : shapes)
        for (int64_t rows : {int64_t(1), shardRows * 8, shardRows * 5 - 1}) {
          int64_t shard = fast ? std::max<int64_t>(rows, 1) : shardRows, used = (rows + shard - 1) / shard;
          if (rows < 1)
            continue;
          float scale = scales[shardRows % 2];
          std::vector<Half> x = halves(rows * s.depth, 3, scale), y = halves(rows * s.columns, 4, scale);
          std::vector<float> expected;
          for (int64_t i = 0; i < s.depth; ++i)
            for (int64_t j = 0; j < s.columns; ++j)
              expected.push_back(tree(0, fast ? 1 : 8, used, [&](int64_t index) {
                Chain chain;
                for (int64_t n = index * shard; n < std::min(rows, (index + 1) * shard); ++n)
                  chain.add(x[n * s.depth + i], y[n * s.columns + j]);
                return chain.value();
              }));
          Guarded gx = guarded(x), gy = guarded(y);
          for (auto &code : codes)
            for (int64_t shares : {1, 3}) {
              Guarded out(expected.size() * 4);
              code->run("t" + std::to_string(s.depth), {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                        {gx.as<void>(), gy.as<void>(), out.as<void>()}, shares);
              expectBits(out.as<float>(), expected,
                         code->target + " t" + std::to_string(s.depth) + " shards of " + std::to_string(shardRows) +
                             " rows " + std::to_string(rows));
            }
        }
    }
}

// Odd and even numbers of channels and filters, groups, strides, one and several panels and blocks, few filters.
const std::vector<ConvolutionShape> shapes = {
    {28, 28, 1, 3, 3, 12, {1, 1}, {1, 1, 1, 1}},
    {13, 13, 12, 6, 6, 24, {2, 2}},
    {7, 9, 5, 3, 2, 17, {2, 1}, {1, 0, 0, 1}},
    {11, 5, 3, 3, 3, 70, {1, 1}, {2, 0, 1, 1}, {2, 1}},
    {8, 8, 64, 3, 3, 64, {1, 1}, {1, 1, 1, 1}},
    {4, 4, 33, 1, 1, 100},
    {10, 10, 12, 3, 3, 18, {2, 2}, {0, 1, 0, 1}, {1, 1}, 3},
    {9, 7, 15, 3, 3, 9, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3},
    {5, 6, 6, 2, 3, 12, {1, 2}, {1, 0, 1, 1}, {1, 1}, 6},
    {4, 40, 16, 3, 3, 14},
    {1, 300, 3, 1, 5, 8, {1, 1}, {0, 0, 2, 2}},
    {9, 20, 16, 3, 3, 16, {1, 1}, {1, 1, 1, 1}},
};

std::string list(const int64_t *numbers, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}
std::string attributes(const ConvolutionShape &s) {
  return " strides = " + list(s.stride, 2) + " padding = " + list(s.padding, 4) + " dilation = " + list(s.dilation, 2) +
         " groups = " + std::to_string(s.groups) + " : ";
}

class PairsOfConv : public testing::TestWithParam<size_t> {
protected:
  const ConvolutionShape &s = shapes[GetParam()];
  const int64_t channels = s.c / s.groups, filters = s.f / s.groups;

  std::string images(const char *element = "bf16") { return tensor("?", s.h, s.w, s.c, element); }
  std::string outputs(const char *element = "bf16") { return tensor("?", s.oh(), s.ow(), s.f, element); }
  std::string kernel(const char *element = "bf16") {
    return tensor(std::to_string(s.kh), s.kw, s.c / s.groups, s.f, element);
  }
  // Position of the source that output (i, j) reads with a tap; -1: outside.
  int64_t source(int64_t i, int64_t j, int64_t kh, int64_t kw) const {
    int64_t row = i * s.stride[0] + kh * s.dilation[0] - s.padding[0],
            column = j * s.stride[1] + kw * s.dilation[1] - s.padding[2];
    return row < 0 || row >= s.h || column < 0 || column >= s.w ? -1 : row * s.w + column;
  }
  int64_t weight(int64_t kh, int64_t kw, int64_t c, int64_t f) const {
    return ((kh * s.kw + kw) * channels + c) * s.f + f;
  }
};

TEST_P(PairsOfConv, Forward) {
  auto codes = compile(kernelText("forward", "conv",
                                  "^bb0(%x: " + images() + ", %w: " + kernel() + "):\n%0 = mt.conv2d %x, %w" +
                                      attributes(s) + images() + ", " + kernel() + "\nmt.yield %0 : " + outputs("f32")),
                       everyTarget);
  int64_t rows = 2;
  std::vector<Half> x = halves(rows * s.images(), 1), w = halves(s.kernel(), 2);
  std::vector<float> expected;
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t at = 0; at < s.oh() * s.ow(); ++at)
      for (int64_t f = 0; f < s.f; ++f) {
        Chain chain;
        for (int64_t kh = 0; kh < s.kh; ++kh)
          for (int64_t c = 0; c < channels; c += 2)
            for (int64_t kw = 0; kw < s.kw; ++kw)
              if (int64_t pixel = source(at / s.ow(), at % s.ow(), kh, kw); pixel >= 0) {
                for (int64_t next = c; next < std::min(c + 2, channels); ++next)
                  chain.add(x[n * s.images() + pixel * s.c + f / filters * channels + next],
                            w[weight(kh, kw, next, f)]);
                chain.end();
              }
        expected.push_back(chain.value());
      }
  Guarded input = guarded(x), weights = guarded(w);
  for (auto &code : codes)
    for (int64_t shares : {1, 3}) {
      Guarded output(expected.size() * 4);
      code->run("forward", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                {input.as<void>(), weights.as<void>(), output.as<void>()}, shares);
      expectBits(output.as<float>(), expected, code->target);
    }
}

TEST_P(PairsOfConv, InputGradient) {
  auto codes = compile(kernelText("gradient", "conv",
                                  "^bb0(%y: " + outputs() + ", %w: " + kernel() +
                                      "):\n%0 = mt.conv2d_input_gradient %y, %w" + attributes(s) + outputs() + ", " +
                                      kernel() + " to " + images("f32") + "\nmt.yield %0 : " + images("f32")),
                       everyTarget);
  int64_t rows = 2;
  std::vector<Half> y = halves(rows * s.outputs(), 1), w = halves(s.kernel(), 2);
  std::vector<Chain> chains(rows * s.images());
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t i = 0; i < s.oh(); ++i)
      for (int64_t f = 0; f < s.f; f += f % filters + 2 < filters ? 2 : filters - f % filters)
        for (int64_t j = 0; j < s.ow(); ++j)
          for (int64_t tap = 0; tap < s.kh * s.kw; ++tap)
            if (int64_t pixel = source(i, j, tap / s.kw, tap % s.kw); pixel >= 0)
              for (int64_t c = 0; c < channels; ++c) {
                int64_t group = f / filters;
                Chain &chain = chains[n * s.images() + pixel * s.c + group * channels + c];
                for (int64_t next = f; next < std::min(f + 2, (group + 1) * filters); ++next)
                  chain.add(y[n * s.outputs() + (i * s.ow() + j) * s.f + next],
                            w[weight(tap / s.kw, tap % s.kw, c, next)]);
                chain.end();
              }
  std::vector<float> expected;
  for (Chain &chain : chains)
    expected.push_back(chain.value());
  Guarded input = guarded(y), weights = guarded(w);
  for (auto &code : codes)
    for (int64_t shares : {1, 3}) {
      Guarded output(expected.size() * 4);
      code->run("gradient", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                {input.as<void>(), weights.as<void>(), output.as<void>()}, shares);
      expectBits(output.as<float>(), expected, code->target);
    }
}

TEST_P(PairsOfConv, KernelGradient) {
  std::string text = kernelText("tree", "conv_wgrad",
                                "^bb0(%x: " + images() + ", %y: " + outputs() +
                                    "):\n%0 = mt.conv2d_kernel_gradient %x, %y" + attributes(s) + images() + ", " +
                                    outputs() + " to " + kernel("f32") + "\nmt.yield %0 : " + kernel("f32"));
  int64_t shardRows = 3;
  auto codes = compile(text, {shardRows, 8, false, /*dots=*/true});
  for (int64_t rows : {1, 8}) {
    std::vector<Half> x = halves(rows * s.images(), 3), y = halves(rows * s.outputs(), 4);
    int64_t used = (rows + shardRows - 1) / shardRows;
    std::vector<float> expected;
    for (int64_t at = 0; at < s.kernel(); ++at) {
      int64_t f = at % s.f, c = at / s.f % channels, tap = at / s.f / channels, group = f / filters;
      expected.push_back(tree(0, 8, used, [&](int64_t shard) {
        Chain chain;
        int64_t end = std::min(rows, (shard + 1) * shardRows);
        for (int64_t n = shard * shardRows; n < end; n += 2)
          for (int64_t position = 0; position < s.oh() * s.ow(); ++position)
            if (int64_t pixel = source(position / s.ow(), position % s.ow(), tap / s.kw, tap % s.kw); pixel >= 0) {
              for (int64_t next = n; next < std::min(n + 2, end); ++next)
                chain.add(x[next * s.images() + pixel * s.c + group * channels + c],
                          y[next * s.outputs() + position * s.f + f]);
              chain.end();
            }
        return chain.value();
      }));
    }
    Guarded gx = guarded(x), gy = guarded(y);
    for (auto &code : codes)
      for (int64_t shares : {1, 4}) {
        Guarded out(expected.size() * 4);
        code->run("tree", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, {gx.as<void>(), gy.as<void>(), out.as<void>()},
                  shares);
        expectBits(out.as<float>(), expected, code->target + " rows " + std::to_string(rows));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairsOfConv, testing::Range<size_t>(0, shapes.size()));

} // namespace
} // namespace codegentest::pairs
