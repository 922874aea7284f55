// SPDX-License-Identifier: Apache-2.0
//
// What metrics are of their sums: small cases by hand, most of them Keras' own examples.
#include "runtime/session/Metric.h"

#include <cmath>
#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

double valueOf(fb::Finalizer finalizer, std::vector<int64_t> shape, const std::vector<double> &sums,
               double weight = 1) {
  fb::MetricT metric;
  metric.name = "m";
  metric.finalizer = finalizer;
  metric.shape = std::move(shape);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::CreateMetric(builder, &metric));
  const auto *table = flatbuffers::GetRoot<fb::Metric>(builder.GetBufferPointer());
  EXPECT_EQ(sumsOf(*table), sums.size());
  return metricValue(*table, sums.data(), weight);
}

TEST(Metric, Means) {
  EXPECT_EQ(valueOf(fb::Finalizer::Mean, {}, {6}, 4), 1.5);
  EXPECT_EQ(valueOf(fb::Finalizer::RootMean, {}, {9}, 4), 1.5);
  EXPECT_EQ(valueOf(fb::Finalizer::Mean, {}, {0}, 0), 0);
}

// y = 0, 0, 1, 1 and p = 0, 0.5, 0.3, 0.9 with thresholds below 0, 0.5 and above 1.
TEST(Metric, AreaUnderRoc) {
  EXPECT_EQ(valueOf(fb::Finalizer::Roc, {2, 3}, {2, 1, 0, 2, 0, 0}), 0.75);
  // The mean over labels; one without negatives has no area.
  EXPECT_EQ(valueOf(fb::Finalizer::Roc, {2, 2, 3}, {2, 1, 0, 2, 0, 0, 2, 1, 0, 0, 0, 0}), 0.375);
}

// Of the same: from P = 4 to 1 precision is slope + intercept / P with slope 1/3 and intercept 2/3; from 1 to 0 it
// is 1.
TEST(Metric, AreaUnderPrecisionRecall) {
  double first = 1.0 / 3 * (1 + 2.0 / 3 * std::log(4.0)) / 2, second = 1.0 / 2;
  EXPECT_NEAR(valueOf(fb::Finalizer::PrecisionRecall, {2, 3}, {2, 1, 0, 2, 0, 0}), first + second, 1e-15);
  EXPECT_EQ(valueOf(fb::Finalizer::PrecisionRecall, {2, 3}, {0, 0, 0, 2, 1, 0}), 0);
}

// Classes with F1 of 1/2, 4/5, 2/3 and of nothing, which counts as 0.
TEST(Metric, F1) {
  std::vector<double> sums = {1, 2, 1, 0, 1, 3, 2, 0, 3, 2, 1, 0};
  EXPECT_NEAR(valueOf(fb::Finalizer::F1Macro, {3, 4}, sums), (0.5 + 0.8 + 2.0 / 3) / 4, 1e-15);
  EXPECT_NEAR(valueOf(fb::Finalizer::F1Weighted, {3, 4}, sums), (3 * 0.5 + 2 * 0.8 + 2.0 / 3) / 6, 1e-15);
}

} // namespace
} // namespace mtrun::test
