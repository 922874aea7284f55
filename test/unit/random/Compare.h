// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_UNIT_RANDOM_COMPARE_H
#define TEST_UNIT_RANDOM_COMPARE_H

#include "compiler/interpret/Interpreter.h"
#include <cmath>
#include <cstdlib>

namespace mtc::test {

// How many random graphs to run: a fixed sample, or MTC_RANDOM_GRAPHS.
inline uint32_t graphCount(uint32_t sample) {
  const char *given = std::getenv("MTC_RANDOM_GRAPHS");
  return given ? std::atoi(given) : sample;
}

// All that a run computed.
struct Outcome {
  StepResults results;
  Tensors variables;
};

// The first difference beyond tolerance * max(1, |expected|), or "".
inline std::string difference(const Outcome &found, const Outcome &expected, double tolerance) {
  auto far = [&](double a, double b) { return !(std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b))); };
  auto say = [](const std::string &name, double a, double b) {
    return name + ": expected " + std::to_string(b) + ", found " + std::to_string(a);
  };
  for (const auto &[name, mean] : expected.results.means) {
    auto other = found.results.means.find(name);
    if (other == found.results.means.end())
      return name + " is missing";
    if (far(other->second.value, mean.value))
      return say(name, other->second.value, mean.value);
    if (far(other->second.weight, mean.weight))
      return say(name + " weight", other->second.weight, mean.weight);
  }
  auto compare = [&](const Tensors &a, const Tensors &b) -> std::string {
    for (const auto &[name, tensor] : b) {
      auto other = a.find(name);
      if (other == a.end() || other->second.size() != tensor.size())
        return name + " is missing or of another size";
      for (int64_t i = 0; i < tensor.size(); ++i)
        if (far(other->second.data[i], tensor.data[i]))
          return say(name + " element " + std::to_string(i), other->second.data[i], tensor.data[i]);
    }
    return "";
  };
  std::string outputs = compare(found.results.outputs, expected.results.outputs);
  return outputs.empty() ? compare(found.variables, expected.variables) : outputs;
}

} // namespace mtc::test

#endif
