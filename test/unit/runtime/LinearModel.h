// SPDX-License-Identifier: Apache-2.0
//
// The model of TestPlan.h in plain C++, with the sums of docs/exactness.md: what its runs are compared to, bit by bit.
#pragma once

#include "TestPlan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace mtrun::test {

// One batch of random samples.
struct Samples {
  Samples(const TestPlanShape &shape, unsigned seed)
      : features(shape.features), x(shape.batch * shape.features), y(shape.batch), weights(shape.batch) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (auto *values : {&x, &y, &weights})
      for (float &value : *values)
        value = uniform(random);
  }

  // Rows from `row` on become NaN.
  void spoilFrom(uint64_t row) {
    float nan = std::numeric_limits<float>::quiet_NaN();
    std::fill(x.begin() + static_cast<std::ptrdiff_t>(row * features), x.end(), nan);
    std::fill(y.begin() + static_cast<std::ptrdiff_t>(row), y.end(), nan);
    std::fill(weights.begin() + static_cast<std::ptrdiff_t>(row), weights.end(), nan);
  }

  uint64_t features;
  std::vector<float> x, y, weights; // (batch, features), (batch), (batch)
};

struct LinearModel {
  explicit LinearModel(const TestPlanShape &shape) : shape(shape), w(shape.features) {}

  void initialise(uint64_t seed) {
    for (uint64_t i = 0; i < shape.features; ++i) {
      uint64_t bits = seed * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
      bits ^= bits >> 31;
      bits *= 0x94d049bb133111ebu;
      w[i] = static_cast<float>(static_cast<int64_t>(bits >> 40)) / 16777216.0f - 0.5f;
    }
  }

  float predict(const Samples &samples, uint64_t row) const {
    float sum = b;
    for (uint64_t i = 0; i < shape.features; ++i)
      sum += samples.x[row * shape.features + i] * w[i];
    return sum;
  }

  void step(const Samples &samples, uint64_t n, bool weighted) {
    std::vector<float> difference(n), ones(n, 1.0f);
    const float *weights = weighted ? samples.weights.data() : ones.data();
    for (uint64_t row = 0; row < n; ++row)
      difference[row] = (predict(samples, row) - samples.y[row]) * weights[row];
    std::vector<float> gradient(shape.features + 1);
    for (uint64_t i = 0; i <= shape.features; ++i)
      gradient[i] = treeSum(n, [&](uint64_t row) {
        return (i < shape.features ? samples.x[row * shape.features + i] : 1.0f) * difference[row];
      });
    float sum = treeSum(n, [&](uint64_t row) { return difference[row]; });
    float weight = treeSum(n, [&](uint64_t row) { return weights[row]; });
    losses.push_back(sum / weight);
    losses.push_back(weight);
    for (uint64_t i = 0; i < shape.features; ++i)
      w[i] -= rate * gradient[i] / static_cast<float>(n);
    b -= rate * gradient[shape.features] / static_cast<float>(n);
    ++iteration;
  }

  bool operator==(const LinearModel &other) const {
    return std::memcmp(w.data(), other.w.data(), w.size() * sizeof(float)) == 0 &&
           std::memcmp(&b, &other.b, sizeof(b)) == 0 && iteration == other.iteration && losses == other.losses;
  }

  TestPlanShape shape;
  std::vector<float> w;
  float b = 0.25f, rate = 0.125f;
  int32_t iteration = 0;
  std::vector<double> losses; // loss and weight of each step

private:
  // Shard by shard, then level by level: the tree as a table instead of a recursion.
  template <typename Value> float treeSum(uint64_t n, Value value) const {
    uint64_t shardRows = (shape.batch + shape.shards - 1) / shape.shards;
    std::vector<float> nodes;
    for (uint64_t first = 0; first < n; first += shardRows) {
      float sum = 0;
      for (uint64_t row = first; row < std::min(first + shardRows, n); ++row)
        sum += value(row);
      nodes.push_back(sum);
    }
    while (nodes.size() > 1) {
      std::vector<float> parents;
      for (size_t i = 0; i < nodes.size(); i += 2)
        parents.push_back(i + 1 < nodes.size() ? nodes[i] + nodes[i + 1] : nodes[i]);
      nodes = parents;
    }
    return nodes[0];
  }
};

} // namespace mtrun::test
