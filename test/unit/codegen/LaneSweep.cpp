// SPDX-License-Identifier: Apache-2.0
#include "test/unit/codegen/LaneSweep.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace codegentest;

const std::vector<LaneFunction> &codegentest::laneFunctions() {
  static const std::vector<LaneFunction> functions = {
      {"exp", [](double a) { return std::exp(a); }, 2},     {"log", [](double a) { return std::log(a); }, 2},
      {"log1p", [](double a) { return std::log1p(a); }, 2}, {"tanh", [](double a) { return std::tanh(a); }, 2},
      {"erf", [](double a) { return std::erf(a); }, 2},     {"sqrt", [](double a) { return std::sqrt(a); }, 0.5},
      {"floor", [](double a) { return std::floor(a); }, 0},
  };
  return functions;
}

std::string codegentest::laneKernels() {
  std::string text;
  for (const LaneFunction &function : laneFunctions())
    text += kernelText(function.name, "elementwise",
                       std::string("^bb0(%a: tensor<16xf32>):\n%0 = mt.") + function.name +
                           " %a : tensor<16xf32>\nmt.yield %0 : tensor<16xf32>");
  return text +
         kernelText("pow", "elementwise",
                    "^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):\n%0 = mt.pow %a, %b : tensor<16xf32>, "
                    "tensor<16xf32>\nmt.yield %0 : tensor<16xf32>") +
         kernelText("erf_inv", "elementwise",
                    "^bb0(%a: tensor<16xf32>):\n%0 = mt.erf_inv %a : tensor<16xf32>\nmt.yield %0 : tensor<16xf32>");
}

double codegentest::ulpError(float actual, double exact) {
  float nearest = static_cast<float>(exact);
  if (std::isnan(nearest) || std::isnan(actual))
    return std::isnan(nearest) && std::isnan(actual) ? 0 : INFINITY;
  if (actual == nearest)
    return std::signbit(actual) == std::signbit(nearest) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(actual))
    // Next to the largest float a rounding decides.
    return std::fabs(exact) > 3.4028233e38 && std::fabs(actual) > 3.4028233e38f ? 1 : INFINITY;
  int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(static_cast<double>(actual) - exact) / std::ldexp(1.0, exponent - 23);
}

Sweep codegentest::sweep(const Code &code, const LaneFunction &function, uint64_t stride) {
  Sweep result;
  std::vector<float> in, out;
  auto flush = [&] {
    out.resize(in.size());
    code.run(function.name, {0, 0, 0, static_cast<int64_t>(in.size()), 0, nullptr, nullptr, 0},
             {in.data(), out.data()});
    for (size_t i = 0; i < in.size(); ++i) {
      double error = ulpError(out[i], function.exact(in[i]));
      if (std::isinf(error)) {
        ++result.wrong;
        result.wrongAt = in[i];
      } else if (error > result.worst) {
        result.worst = error;
        result.at = in[i];
      }
    }
    in.clear();
  };
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += stride) {
    float value;
    uint32_t narrow = bits;
    std::memcpy(&value, &narrow, 4);
    in.push_back(value);
    if (in.size() == 1 << 16)
      flush();
  }
  flush();
  return result;
}
