// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels, the sum kernel, transpositions.
#include "test/unit/codegen/Harness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <tuple>

using namespace codegentest;

namespace {

TEST(Map, UpdatesInPlaceForAnyCount) {
  auto codes = compile(kernelText("update", "elementwise", R"(
    ^bb0(%lr: tensor<f32>, %v: tensor<784x256xf32>, %g: tensor<784x256xf32>):
    %0 = mt.mul %g, %lr : tensor<784x256xf32>, tensor<f32>
    %1 = mt.sub %v, %0 : tensor<784x256xf32>, tensor<784x256xf32>
    mt.yield %1 : tensor<784x256xf32>)"));
  for (int64_t count : {1, 10, 16, 17, 256, 2048, 2049, 5000}) {
    std::vector<float> v = randoms(count, 1), g = randoms(count, 2), lr{0.125f};
    Guarded rate = guarded(lr), gradient = guarded(g);
    for (auto &code : codes) {
      Guarded variable = guarded(v);
      code->run("update", {0, 0, 0, count, 0, nullptr, nullptr, 0},
                {rate.as<void>(), variable.as<void>(), gradient.as<void>(), variable.as<void>()}, 2);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(variable.as<float>()[i], v[i] - g[i] * 0.125f) << code->target << " " << i << " of " << count;
    }
  }
}

TEST(Map, WritesScalars) {
  auto codes = compile(kernelText("step", "elementwise", R"(
    ^bb0(%i: tensor<i32>):
    %one = mt.constant dense<1> : tensor<i32>
    %0 = mt.add %i, %one : tensor<i32>, tensor<i32>
    mt.yield %0 : tensor<i32>)"));
  for (auto &code : codes) {
    Guarded i = guarded(std::vector<int32_t>{41});
    code->run("step", {0, 0, 0, 1, 0, nullptr, nullptr, 0}, {i.as<void>(), i.as<void>()});
    EXPECT_EQ(*i.as<int32_t>(), 42);
  }
}

// Nearest, ties to even; subnormal numbers stay, every NaN becomes the same one.
uint16_t nearestBf16(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Vectors with and without numbers that VCVTNEPS2BF16 rounds in another way, on every target.
TEST(Cast, RoundsToBf16) {
  auto codes = compile(kernelText("round", "elementwise", R"(
    ^bb0(%x: tensor<300000xf32>, %y: tensor<300000xf32>):
    %0 = mt.cast %x : tensor<300000xf32> to tensor<300000xbf16>
    %1 = mt.cast %0 : tensor<300000xbf16> to tensor<300000xf32>
    %2 = mt.compare lt, %x, %y : tensor<300000xf32>, tensor<300000xf32>
    %zero = mt.constant dense<0.0> : tensor<f32>
    %3 = mt.select %2, %1, %zero : tensor<300000xi1>, tensor<300000xf32>, tensor<f32>
    %4 = mt.cast %3 : tensor<300000xf32> to tensor<300000xbf16>
    mt.yield %0, %4 : tensor<300000xbf16>, tensor<300000xbf16>)"),
                       {1, 8, false, /*dots=*/true});
  std::vector<uint32_t> bits;
  for (uint32_t i = 0; i < 1u << 18; ++i) // all exponents and signs, ties and their neighbours
    bits.push_back((i >> 3) * 0x20021u + (i % 8 < 6 ? 0x8000u * (i % 3) + i % 2 : 0));
  for (uint32_t special : {0u, 1u, 0x8000u, 0x18000u, 0x7fffffu, 0x800000u, 0x807fffffu, 0x7f7f7fffu, 0x7f7f8000u,
                           0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7f800001u, 0x7fc12345u, 0xffffffffu})
    for (int i = 0; i < 17; ++i)
      bits.push_back(i % 3 ? special : 0x3f808000u);
  int64_t count = bits.size();
  std::vector<float> x(bits.size()), y(bits.size(), 1);
  std::memcpy(x.data(), bits.data(), bits.size() * 4);
  Guarded in = guarded(x), limit = guarded(y);
  for (auto &code : codes) {
    Guarded rounded(bits.size() * 2), chosen(bits.size() * 2);
    code->run("round", {0, 0, 0, count, 0, nullptr, nullptr, 0},
              {in.as<void>(), limit.as<void>(), rounded.as<void>(), chosen.as<void>()});
    for (int64_t i = 0; i < count; ++i) {
      uint16_t expected = nearestBf16(bits[i]);
      ASSERT_EQ(rounded.as<uint16_t>()[i], expected) << code->target << " " << std::hex << bits[i];
      ASSERT_EQ(chosen.as<uint16_t>()[i], x[i] < 1 ? expected : 0) << code->target << " " << std::hex << bits[i];
    }
  }
}

TEST(Sum, AddsInPlace) {
  auto codes = compile("");
  for (int64_t count : {1, 16, 100, 5000}) {
    std::vector<float> a = randoms(count, 1), b = randoms(count, 2);
    Guarded right = guarded(b);
    for (auto &code : codes) {
      Guarded left = guarded(a);
      code->run("mt_sum", {0, 0, 0, count, 0, nullptr, nullptr, 0},
                {left.as<void>(), right.as<void>(), left.as<void>()}, 3);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(left.as<float>()[i], a[i] + b[i]);
    }
  }
}

// A module that was compiled before is not compiled again, whatever the kernel is called and whatever other kernels
// there are.
TEST(Objects, DoNotDependOnWhatWasCompiledBefore) {
  auto scaled = [](const std::string &name, const std::string &factor) {
    return kernelText(name, "elementwise", R"(
    ^bb0(%x: tensor<100xf32>):
    %c = mt.constant dense<)" + factor + R"(> : tensor<f32>
    %0 = mt.mul %x, %c : tensor<100xf32>, tensor<f32>
    mt.yield %0 : tensor<100xf32>)");
  };
  std::string kernels = scaled("twice", "2.5") + scaled("again", "2.5") + scaled("thrice", "3.5");
  auto first = compile(kernels), other = compile(scaled("other", "3.5") + scaled("twice", "4.5"));
  auto last = compile(kernels);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i]->image, last[i]->image);
    EXPECT_EQ(first[i]->find("twice"), first[i]->find("again")) << "kernels of equal code are one";
    std::vector<float> x(100, 2);
    Guarded in = guarded(x), out = guarded(x);
    for (auto [code, name, factor] : {std::tuple{&first, "again", 2.5f},
                                      {&other, "other", 3.5f},
                                      {&other, "twice", 4.5f},
                                      {&last, "thrice", 3.5f}}) {
      (*code)[i]->run(name, {0, 0, 0, 100, 0, nullptr, nullptr, 0}, {in.as<void>(), out.as<void>()});
      EXPECT_EQ(out.as<float>()[99], 2 * factor) << name;
    }
  }
}

TEST(Transpose, MovesEveryElement) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{256, 64}, {17, 33}, {1, 5}, {40, 10}}) {
    std::string from = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
    std::string to = "tensor<" + std::to_string(columns) + "x" + std::to_string(rows) + "xf32>";
    auto codes = compile(
        kernelText("turn", "transpose",
                   "^bb0(%a: " + from + "):\n%0 = mt.transpose %a by [1, 0] : " + from + "\nmt.yield %0 : " + to));
    std::vector<float> a = randoms(rows * columns, 1);
    Guarded in = guarded(a);
    for (auto &code : codes) {
      Guarded out(a.size() * 4);
      code->run("turn", {0, 0, 0, 0, 0, nullptr, nullptr, 0}, {in.as<void>(), out.as<void>()}, 3);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          ASSERT_EQ(out.as<float>()[j * rows + i], a[i * columns + j]);
    }
  }
}

} // namespace
