// SPDX-License-Identifier: Apache-2.0
//
// Kernels of kind rows and single.
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace codegentest;

namespace {

// The sum of a row: 16 lanes, folded 8, 4, 2, 1.
float laneSum(const float *row, int64_t n) {
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i)
    lanes[i % 16] += row[i];
  for (int width = 8; width >= 1; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  return lanes[0];
}

TEST(Rows, ReducesByLanes) {
  for (int64_t n : {1, 10, 16, 37, 128}) {
    std::string type = "tensor<?x" + std::to_string(n) + "xf32>";
    auto codes =
        compile(kernelText("center", "rows",
                           "^bb0(%x: " + type + "):\n%0 = mt.reduce sum, %x over [1] : " + type +
                               "\n%1 = mt.reshape %0 : tensor<?xf32> to tensor<?x1xf32>\n%2 = mt.sub %x, %1 : " + type +
                               ", tensor<?x1xf32>\n%3 = mt.reduce max, %2 over [1] : " + type +
                               "\nmt.yield %2, %3, %0 : " + type + ", tensor<?xf32>, tensor<?xf32>"));
    for (int64_t rows : {1, 3, 9}) {
      std::vector<float> x = randoms(rows * n, 3);
      Guarded in = guarded(x);
      for (auto &code : codes) {
        Guarded out(x.size() * 4), most(rows * 4), sums(rows * 4);
        code->run("center", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                  {in.as<void>(), out.as<void>(), most.as<void>(), sums.as<void>()}, 2);
        for (int64_t row = 0; row < rows; ++row) {
          float sum = laneSum(&x[row * n], n), largest = -INFINITY;
          ASSERT_EQ(sums.as<float>()[row], sum) << code->target << " n " << n;
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(out.as<float>()[row * n + i], x[row * n + i] - sum);
            largest = std::max(largest, x[row * n + i] - sum);
          }
          ASSERT_EQ(most.as<float>()[row], largest);
        }
      }
    }
  }
}

// The lanes after the last element, 0 / 0, are no part of the sum.
TEST(Rows, SumsQuotients) {
  for (int64_t n : {1, 2, 3, 4, 8, 20}) {
    std::string type = "tensor<?x" + std::to_string(n) + "xf32>";
    auto codes =
        compile(kernelText("quotients", "rows",
                           "^bb0(%x: " + type + ", %y: " + type + "):\n%0 = mt.div %x, %y : " + type + ", " + type +
                               "\n%1 = mt.reduce sum, %0 over [1] : " + type + "\nmt.yield %1 : tensor<?xf32>"));
    std::vector<float> x = randoms(2 * n, 1), y = randoms(2 * n, 2), quotients(2 * n);
    for (int64_t i = 0; i < 2 * n; ++i)
      quotients[i] = x[i] / y[i];
    Guarded left = guarded(x), right = guarded(y);
    for (auto &code : codes) {
      Guarded sums(2 * 4);
      code->run("quotients", {2, 0, 2, 0, 0, nullptr, nullptr, 0}, {left.as<void>(), right.as<void>(), sums.as<void>()},
                1);
      for (int64_t row = 0; row < 2; ++row)
        ASSERT_EQ(sums.as<float>()[row], laneSum(&quotients[row * n], n)) << code->target << " n " << n;
    }
  }
}

// What a row computes in between took megabytes of stack, which a thread of a host's may not have.
TEST(Rows, KeepsLargeTemporariesOffTheStack) {
  auto codes = compile(kernelText("turn", "rows", R"(
    ^bb0(%x: tensor<?x300x200xf32>):
    %0 = mt.transpose %x by [0, 2, 1] : tensor<?x300x200xf32>
    %1 = mt.neg %0 : tensor<?x200x300xf32>
    %2 = mt.transpose %1 by [0, 2, 1] : tensor<?x200x300xf32>
    mt.yield %2 : tensor<?x300x200xf32>)"));
  constexpr int64_t rows = 2, size = 300 * 200;
  std::vector<float> x = randoms(rows * size, 1);
  Guarded in = guarded(x);
  for (auto &code : codes) {
    EXPECT_GE(code->scratchBytes("turn"), size * 4);
    Guarded out(x.size() * 4);
    code->run("turn", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, {in.as<void>(), out.as<void>()}, 1);
    for (int64_t i = 0; i < rows * size; ++i)
      ASSERT_EQ(out.as<float>()[i], -x[i]) << i;
  }
}

// A product may have one element, which no loop shards in a register.
TEST(Rows, MultipliesToOneElement) {
  auto codes = compile(kernelText("dot", "rows", R"(
    ^bb0(%x: tensor<?x1x5xf32>, %y: tensor<?x5x1xf32>):
    %0 = mt.matmul %x, %y : tensor<?x1x5xf32>, tensor<?x5x1xf32>
    %1 = mt.neg %0 : tensor<?x1x1xf32>
    mt.yield %1 : tensor<?x1x1xf32>)"));
  std::vector<float> x = randoms(15, 1), y = randoms(15, 2);
  Guarded left = guarded(x), right = guarded(y);
  for (auto &code : codes) {
    Guarded out(3 * 4);
    code->run("dot", {3, 0, 3, 0, 0, nullptr, nullptr, 0}, {left.as<void>(), right.as<void>(), out.as<void>()}, 1);
    for (int64_t row = 0; row < 3; ++row) {
      float sum = 0;
      for (int64_t k = row * 5; k < row * 5 + 5; ++k)
        sum = std::fma(x[k], y[k], sum);
      ASSERT_EQ(out.as<float>()[row], -sum) << code->target;
    }
  }
}

// Sums over pixels, channel by channel, of operands that repeat for each pixel: pixel i is element i of the sum.
TEST(Rows, SumsOverPixels) {
  for (int64_t channels : {3, 16, 70, 128}) {
    std::string c = std::to_string(channels), x = "tensor<?x5x7x" + c + "xf32>", m = "tensor<" + c + "xf32>",
                sums = "tensor<?x" + c + "xf32>";
    auto codes = compile(kernelText(
        "sums", "rows",
        "^bb0(%x: " + x + ", %m: " + m + "):\n%0 = mt.sub %x, %m : " + x + ", " + m + "\n%1 = mt.square %0 : " + x +
            "\n%2 = mt.reduce sum, %1 over [1, 2] : " + x + "\n%3 = mt.reduce max, %0 over [1, 2] : " + x +
            "\n%4 = mt.reduce sum, %1 over [1, 2, 3] : " + x + "\nmt.yield %0, %2, %3, %4 : " + x + ", " + sums + ", " +
            sums + ", tensor<?xf32>"));
    int64_t rows = 3, pixels = 35, size = pixels * channels;
    std::vector<float> x0 = randoms(rows * size, 1), mean = randoms(channels, 2);
    Guarded in = guarded(x0), means = guarded(mean);
    for (auto &code : codes) {
      Guarded out(rows * size * 4), total(rows * channels * 4), most(rows * channels * 4), all(rows * 4);
      code->run("sums", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
                {in.as<void>(), means.as<void>(), out.as<void>(), total.as<void>(), most.as<void>(), all.as<void>()},
                2);
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<float> squares;
        for (int64_t i = 0; i < size; ++i) {
          float centred = x0[row * size + i] - mean[i % channels];
          ASSERT_EQ(out.as<float>()[row * size + i], centred);
          squares.push_back(centred * centred);
        }
        ASSERT_EQ(all.as<float>()[row], laneSum(squares.data(), size)) << code->target << " channels " << channels;
        for (int64_t channel = 0; channel < channels; ++channel) {
          std::vector<float> line;
          float largest = -INFINITY;
          for (int64_t pixel = 0; pixel < pixels; ++pixel) {
            line.push_back(squares[pixel * channels + channel]);
            largest = std::max(largest, out.as<float>()[row * size + pixel * channels + channel]);
          }
          ASSERT_EQ(total.as<float>()[row * channels + channel], laneSum(line.data(), pixels))
              << code->target << " channels " << channels;
          ASSERT_EQ(most.as<float>()[row * channels + channel], largest);
        }
      }
    }
  }
}

// Of fewer than 16 pixels, to the bit of 16 partial sums: of zeros of either sign, infinities and NaN too.
TEST(Rows, SumsOverFewPixels) {
  for (int64_t pixels : {1, 2, 3, 7, 16}) {
    constexpr int64_t channels = 20, rows = 3;
    std::string x = "tensor<?x" + std::to_string(pixels) + "x20xf32>";
    auto codes = compile(kernelText(
        "sums", "rows",
        "^bb0(%x: " + x + "):\n%0 = mt.neg %x : " + x + "\n%1 = mt.reduce sum, %0 over [1] : " + x +
            "\n%2 = mt.reduce max, %0 over [1] : " + x + "\nmt.yield %1, %2 : tensor<?x20xf32>, tensor<?x20xf32>"));
    std::vector<float> given = randoms(rows * pixels * channels, 1);
    for (size_t i = 0; i < given.size(); i += 3)
      given[i] = i % 2 ? 0.0f : -0.0f;
    given[1] = INFINITY;
    given[4] = NAN;
    Guarded in = guarded(given);
    for (auto &code : codes) {
      Guarded sums(rows * channels * 4), most(rows * channels * 4);
      code->run("sums", {rows, 0, rows, 0, 0, nullptr, nullptr, 0}, {in.as<void>(), sums.as<void>(), most.as<void>()},
                2);
      for (int64_t i = 0; i < rows * channels; ++i) {
        std::vector<float> line;
        float largest = -INFINITY;
        for (int64_t pixel = 0; pixel < pixels; ++pixel) {
          line.push_back(-given[(i / channels * pixels + pixel) * channels + i % channels]);
          largest = std::isnan(line.back()) || largest < line.back() ? line.back() : largest;
        }
        float sum = laneSum(line.data(), pixels), found = sums.as<float>()[i];
        ASSERT_TRUE(std::isnan(sum) ? std::isnan(found) : std::memcmp(&found, &sum, 4) == 0)
            << code->target << " pixels " << pixels << " element " << i << ": expected " << sum << ", found " << found;
        found = most.as<float>()[i];
        ASSERT_TRUE(std::isnan(largest) ? std::isnan(found) : found == largest) << code->target << " element " << i;
      }
    }
  }
}

TEST(Rows, ComputesACrossEntropy) {
  auto codes = compile(kernelText("loss", "rows", R"(
    ^bb0(%x: tensor<?x10xf32>, %y: tensor<?xi32>):
    %m = mt.reduce max, %x over [1] : tensor<?x10xf32>
    %m1 = mt.reshape %m : tensor<?xf32> to tensor<?x1xf32>
    %s = mt.sub %x, %m1 : tensor<?x10xf32>, tensor<?x1xf32>
    %e = mt.exp %s : tensor<?x10xf32>
    %t = mt.reduce sum, %e over [1] : tensor<?x10xf32>
    %l = mt.log %t : tensor<?xf32>
    %l1 = mt.reshape %l : tensor<?xf32> to tensor<?x1xf32>
    %p = mt.sub %s, %l1 : tensor<?x10xf32>, tensor<?x1xf32>
    %i = mt.iota dim = 0 : tensor<10xi32>
    %y1 = mt.reshape %y : tensor<?xi32> to tensor<?x1xi32>
    %h = mt.compare eq, %i, %y1 : tensor<10xi32>, tensor<?x1xi32>
    %z = mt.constant dense<0.0> : tensor<f32>
    %k = mt.select %h, %p, %z : tensor<?x10xi1>, tensor<?x10xf32>, tensor<f32>
    %r = mt.reduce sum, %k over [1] : tensor<?x10xf32>
    %n = mt.neg %r : tensor<?xf32>
    %a = mt.argmax %x : tensor<?x10xf32>
    %c = mt.compare eq, %a, %y : tensor<?xi32>, tensor<?xi32>
    %f = mt.cast %c : tensor<?xi1> to tensor<?xf32>
    mt.yield %n, %f : tensor<?xf32>, tensor<?xf32>)"));
  int64_t rows = 21;
  std::vector<float> x = randoms(rows * 10, 5);
  std::vector<int32_t> y(rows);
  for (int64_t i = 0; i < rows; ++i)
    y[i] = i * 3 % 10;
  Guarded in = guarded(x), labels = guarded(y);
  std::vector<float> first;
  for (auto &code : codes) {
    Guarded loss(rows * 4), hits(rows * 4);
    code->run("loss", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
              {in.as<void>(), labels.as<void>(), loss.as<void>(), hits.as<void>()}, 4);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      int best = 0;
      for (int i = 0; i < 10; ++i) {
        sum += std::exp(static_cast<double>(x[row * 10 + i]));
        if (x[row * 10 + i] > x[row * 10 + best])
          best = i;
      }
      EXPECT_NEAR(loss.as<float>()[row], std::log(sum) - x[row * 10 + y[row]], 1e-6);
      EXPECT_EQ(hits.as<float>()[row], best == y[row] ? 1.0f : 0.0f);
    }
    std::vector<float> bits(loss.as<float>(), loss.as<float>() + rows);
    if (first.empty())
      first = bits;
    EXPECT_EQ(std::memcmp(first.data(), bits.data(), rows * 4), 0);
  }
}

TEST(Rows, VectorisesOverRowsWhereARowIsOneElement) {
  auto codes = compile(kernelText("seed", "rows", R"(
    ^bb0(%w: tensor<?xf32>, %s: tensor<f32>):
    %n = mt.batch_size
    %0 = mt.div %w, %n : tensor<?xf32>, tensor<f32>
    %1 = mt.mul %0, %s : tensor<?xf32>, tensor<f32>
    mt.yield %1 : tensor<?xf32>)"));
  for (int64_t rows : {1, 15, 16, 40, 100}) {
    std::vector<float> w = randoms(rows, 5);
    Guarded in = guarded(w), s = guarded(std::vector<float>{3.0f});
    for (auto &code : codes) {
      Guarded out(rows * 4);
      code->run("seed", {rows, 0, 123, 0, 0, nullptr, nullptr, 0}, {in.as<void>(), s.as<void>(), out.as<void>()}, 2);
      for (int64_t i = 0; i < rows; ++i)
        ASSERT_EQ(out.as<float>()[i], w[i] / 123.0f * 3.0f);
    }
  }
}

TEST(Rows, MovesDataInsideARow) {
  auto codes = compile(kernelText("moves", "rows", R"(
    ^bb0(%x: tensor<?x3x5xf32>, %w: tensor<5x4xf32>, %b: tensor<3x1xf32>):
    %0 = mt.transpose %x by [0, 2, 1] : tensor<?x3x5xf32>
    %1 = mt.matmul %x, %w : tensor<?x3x5xf32>, tensor<5x4xf32>
    %2 = mt.add %1, %b : tensor<?x3x4xf32>, tensor<3x1xf32>
    %3 = mt.reduce sum, %x over [1] : tensor<?x3x5xf32>
    %4 = mt.matmul %2, %x transpose_a : tensor<?x3x4xf32>, tensor<?x3x5xf32>
    mt.yield %0, %2, %3, %4 : tensor<?x5x3xf32>, tensor<?x3x4xf32>, tensor<?x5xf32>, tensor<?x4x5xf32>)"));
  int64_t rows = 7;
  std::vector<float> x = randoms(rows * 15, 1), w = randoms(20, 2), b = randoms(3, 3);
  Guarded gx = guarded(x), gw = guarded(w), gb = guarded(b);
  for (auto &code : codes) {
    Guarded transposed(rows * 60), sums(rows * 48), columns(rows * 20), products(rows * 80);
    code->run("moves", {rows, 0, rows, 0, 0, nullptr, nullptr, 0},
              {gx.as<void>(), gw.as<void>(), gb.as<void>(), transposed.as<void>(), sums.as<void>(), columns.as<void>(),
               products.as<void>()},
              3);
    for (int64_t r = 0; r < rows; ++r) {
      const float *in = &x[r * 15];
      for (int i = 0; i < 5; ++i) {
        for (int j = 0; j < 3; ++j)
          ASSERT_EQ(transposed.as<float>()[r * 15 + i * 3 + j], in[j * 5 + i]);
        ASSERT_EQ(columns.as<float>()[r * 5 + i], (in[i] + in[10 + i]) + in[5 + i]); // lanes 0 and 2 meet first
      }
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) {
          float sum = 0;
          for (int k = 0; k < 5; ++k)
            sum = std::fma(in[i * 5 + k], w[k * 4 + j], sum);
          ASSERT_EQ(sums.as<float>()[r * 12 + i * 4 + j], sum + b[i]);
        }
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 5; ++j) {
          float sum = 0;
          for (int k = 0; k < 3; ++k)
            sum = std::fma(sums.as<float>()[r * 12 + k * 4 + i], in[k * 5 + j], sum);
          ASSERT_EQ(products.as<float>()[r * 20 + i * 5 + j], sum);
        }
    }
  }
}

TEST(Whole, UpdatesInPlaceAfterAllReads) {
  auto codes = compile(kernelText("norm", "single", R"(
    ^bb0(%v: tensor<40xf32>):
    %0 = mt.reduce sum, %v over [0] : tensor<40xf32>
    %1 = mt.sub %v, %0 : tensor<40xf32>, tensor<f32>
    %2 = mt.reduce max, %v over [0] : tensor<40xf32>
    %3 = mt.add %1, %2 : tensor<40xf32>, tensor<f32>
    mt.yield %1, %3 : tensor<40xf32>, tensor<40xf32>)"));
  std::vector<float> v = randoms(40, 1);
  float sum = laneSum(v.data(), 40), most = *std::max_element(v.begin(), v.end());
  for (auto &code : codes) {
    Guarded variable = guarded(v), other(160);
    code->run("norm", {0, 0, 0, 0, 0, nullptr, nullptr, 0},
              {variable.as<void>(), variable.as<void>(), other.as<void>()});
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(variable.as<float>()[i], v[i] - sum);
      ASSERT_EQ(other.as<float>()[i], v[i] - sum + most);
    }
  }
}

// Philox 4x32-10 as the op's description has it.
float uniform(uint64_t seed, uint64_t element, uint32_t step, const char *stream) {
  uint32_t hash = 2166136261u;
  for (const char *c = stream; *c; ++c)
    hash = (hash ^ static_cast<uint8_t>(*c)) * 16777619u;
  uint64_t index = element / 4;
  uint32_t c[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step, hash};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
                        static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    std::memcpy(c, next, sizeof(c));
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return static_cast<float>(c[element % 4] >> 8) * 0x1p-24f;
}

TEST(Random, DependsOnTheGlobalRow) {
  auto codes = compile(kernelText("dropout", "rows", R"(
    ^bb0(%x: tensor<?x21xf32>, %i: tensor<i32>):
    %0 = mt.random_uniform "drop" step(%i) : tensor<?x21xf32>
    mt.yield %0 : tensor<?x21xf32>)") +
                       kernelText("init", "single", R"(
    ^bb0:
    %0 = mt.random_uniform "dense/kernel" : tensor<7x9xf32>
    mt.yield %0 : tensor<7x9xf32>)"));
  uint64_t seed = 0x123456789ABCDEFull;
  for (auto &code : codes) {
    Guarded x = guarded(randoms(5 * 21, 1)), step = guarded(std::vector<int32_t>{9}), out(5 * 21 * 4), init(63 * 4);
    code->run("dropout", {5, 1000, 5, 0, seed, nullptr, nullptr, 0}, {x.as<void>(), step.as<void>(), out.as<void>()});
    for (int64_t i = 0; i < 5 * 21; ++i)
      ASSERT_EQ(out.as<float>()[i], uniform(seed, 1000 * 21 + i, 9, "drop")) << i;
    code->run("init", {0, 0, 0, 0, seed, nullptr, nullptr, 0}, {init.as<void>()});
    for (int64_t i = 0; i < 63; ++i)
      ASSERT_EQ(init.as<float>()[i], uniform(seed, i, 0, "dense/kernel")) << i;
  }
}

} // namespace
