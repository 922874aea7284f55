// SPDX-License-Identifier: Apache-2.0
//
// exp, log, tanh ... in compiled code: small errors, right specials, the same bits on every target. `lane-sweep` covers
// all floats.
#include "test/unit/codegen/LaneSweep.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace codegentest;

namespace {

class Lanes : public testing::Test {
protected:
  static std::vector<std::unique_ptr<Code>> &codes() {
    static auto made = compile(laneKernels());
    return made;
  }
  static std::vector<float> apply(const Code &code, const char *name, std::vector<std::vector<float>> operands) {
    std::vector<float> out(operands[0].size());
    std::vector<void *> buffers;
    for (auto &operand : operands)
      buffers.push_back(operand.data());
    buffers.push_back(out.data());
    code.run(name, {0, 0, 0, static_cast<int64_t>(out.size()), 0, nullptr, nullptr, 0}, buffers);
    return out;
  }
};

TEST_F(Lanes, AreWithinTheirLimits) {
  for (const LaneFunction &function : laneFunctions()) {
    Sweep found = sweep(*codes().front(), function, 4093);
    EXPECT_LE(found.worst, function.limit) << function.name << " at " << found.at;
    EXPECT_EQ(found.wrong, 0u) << function.name << " at " << found.wrongAt;
  }
}

std::vector<float> specials() {
  float inf = std::numeric_limits<float>::infinity();
  return {0.0f,     -0.0f, 1.0f,    -1.0f,   inf,  -inf, NAN,  1e-45f, -1e-45f, 1e-38f, 3.4e38f,
          -3.4e38f, 88.8f, -103.9f, -104.5f, 0.5f, 2.0f, 3.0f, -2.0f,  -3.0f,   0.3f,   1.5f};
}

TEST_F(Lanes, TakeSpecialValues) {
  for (const LaneFunction &function : laneFunctions()) {
    std::vector<float> in = specials(), out = apply(*codes().front(), function.name, {in});
    for (size_t i = 0; i < in.size(); ++i)
      EXPECT_LE(ulpError(out[i], function.exact(in[i])), function.limit)
          << function.name << "(" << in[i] << ") = " << out[i];
  }
}

TEST_F(Lanes, RaiseToPowers) {
  std::vector<float> a, b;
  for (float x : specials())
    for (float y : specials()) {
      a.push_back(x);
      b.push_back(y);
    }
  for (float base : randoms(4000, 1))
    for (float power : {-7.0f, -1.5f, 0.9f, 0.999f, 2.0f, 11.0f, 100.0f}) {
      a.push_back(std::fabs(base) * (power > 50 ? 1.5f : 4.0f));
      b.push_back(power);
    }
  for (int step = 1; step < 3000; ++step) {
    a.push_back(0.999f);
    b.push_back(step);
  }
  std::vector<float> out = apply(*codes().front(), "pow", {a, b});
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LE(ulpError(out[i], std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))), 1.0)
        << "pow(" << a[i] << ", " << b[i] << ") = " << out[i];
}

TEST_F(Lanes, InvertErf) {
  std::vector<float> in;
  for (int i = -9999; i < 10000; ++i)
    in.push_back(i / 10000.0f);
  std::vector<float> out = apply(*codes().front(), "erf_inv", {in});
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_NEAR(std::erf(static_cast<double>(out[i])), in[i], 6e-7 * std::max(std::fabs(in[i]), 1e-3f)) << in[i];
  std::vector<float> ends = apply(*codes().front(), "erf_inv", {{1.0f, -1.0f, 2.0f, NAN}});
  EXPECT_TRUE(std::isinf(ends[0]) && ends[0] > 0 && std::isinf(ends[1]) && ends[1] < 0);
  EXPECT_TRUE(std::isnan(ends[2]) && std::isnan(ends[3]));
}

TEST_F(Lanes, HaveTheSameBitsOnEveryTarget) {
  std::vector<float> in;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 65521) {
    float value;
    uint32_t narrow = bits;
    std::memcpy(&value, &narrow, 4);
    if (!std::isnan(value))
      in.push_back(value);
  }
  std::vector<float> powers = randoms(in.size(), 3);
  for (const char *name : {"exp", "log", "log1p", "tanh", "erf", "erf_inv", "pow"}) {
    std::vector<std::vector<float>> operands = {in};
    if (std::string(name) == "pow")
      operands.push_back(powers);
    std::vector<float> first = apply(*codes().front(), name, operands);
    for (auto &code : codes()) {
      std::vector<float> other = apply(*code, name, operands);
      for (size_t i = 0; i < in.size(); ++i)
        ASSERT_TRUE(std::memcmp(&first[i], &other[i], 4) == 0 || (std::isnan(first[i]) && std::isnan(other[i])))
            << name << "(" << in[i] << ")";
    }
  }
}

} // namespace
