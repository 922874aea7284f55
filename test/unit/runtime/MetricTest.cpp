// SPDX-License-Identifier: Apache-2.0
//
// What metrics are of their sums: small cases by hand, most of them Keras' own examples.
#include "runtime/session/Metric.h"

#include <cmath>
#include <gtest/gtest.h>

namespace mtrun::test {
namespace {

namespace fb = ::mt::plan;

double valueOf(fb::Finalizer finalizer, std::vector<int64_t> shape, const std::vector<double> &sums, double weight = 1,
               std::vector<double> parameters = {}) {
  fb::MetricT metric;
  metric.name = "m";
  metric.finalizer = finalizer;
  metric.shape = std::move(shape);
  metric.parameters = std::move(parameters);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::CreateMetric(builder, &metric));
  const auto *table = flatbuffers::GetRoot<fb::Metric>(builder.GetBufferPointer());
  EXPECT_EQ(sumsOf(*table), sums.size());
  return metricValue(*table, sums.data(), weight);
}

TEST(Metric, HeightsOfCurves) {
  auto of = [](fb::Finalizer finalizer, double height) {
    return valueOf(finalizer, {2, 3}, {2, 1, 0, 2, 0, 0}, 1, {height});
  };
  EXPECT_EQ(of(fb::Finalizer::Roc, 1), 0.5);
  EXPECT_EQ(of(fb::Finalizer::Roc, 2), 1);
  EXPECT_EQ(of(fb::Finalizer::PrecisionRecall, 1), 0.25);
  EXPECT_EQ(of(fb::Finalizer::PrecisionRecall, 2), 1);
  EXPECT_EQ(of(fb::Finalizer::PrecisionRecallGain, 0), 0.5);
  EXPECT_EQ(valueOf(fb::Finalizer::Roc, {2, 2, 3}, {2, 1, 0, 2, 0, 0, 2, 1, 0, 0, 0, 0}, 1, {0, 3, 1}), 0.5625);
}

TEST(Metric, RatesAtABound) {
  auto of = [](fb::Finalizer finalizer, double least) {
    return valueOf(finalizer, {2, 3}, {4, 3, 1, 4, 2, 0}, 1, {least});
  };
  EXPECT_EQ(of(fb::Finalizer::SensitivityAtSpecificity, 0.5), 0.75);
  EXPECT_EQ(of(fb::Finalizer::SensitivityAtSpecificity, 0.6), 0.25);
  EXPECT_EQ(of(fb::Finalizer::SpecificityAtSensitivity, 0.5), 0.5);
  EXPECT_EQ(of(fb::Finalizer::SpecificityAtSensitivity, 0.8), 0);
  EXPECT_EQ(of(fb::Finalizer::PrecisionAtRecall, 0.7), 0.6);
  EXPECT_EQ(of(fb::Finalizer::RecallAtPrecision, 0.9), 0.25);
}

TEST(Metric, Scores) {
  EXPECT_EQ(valueOf(fb::Finalizer::Sum, {}, {6}, 4), 6);
  EXPECT_EQ(valueOf(fb::Finalizer::F1Macro, {3, 1}, {2, 4, 3}, 1, {2}), 0.625);
  EXPECT_NEAR(valueOf(fb::Finalizer::Iou, {2, 2}, {1, 1, 1, 1}, 1, {0, 1}), 1.0 / 3, 1e-6);
  EXPECT_NEAR(valueOf(fb::Finalizer::Iou, {3, 3}, {2, 0, 0, 2, 0, 0, 0, 0, 0}, 1, {0, 2}), 0.5, 1e-6);
  EXPECT_EQ(valueOf(fb::Finalizer::R2, {4, 1}, {6, 14, 1, 3}, 3, {0, 0, 1}), 0.5);
  EXPECT_EQ(valueOf(fb::Finalizer::R2, {4, 1}, {6, 14, 1, 3}, 3, {0, 1, 1}), 0);
  EXPECT_EQ(valueOf(fb::Finalizer::R2, {4, 2}, {6, 6, 14, 12, 1, 1, 3, 3}, 3, {0, 0, 2}), 0.25); // equal targets: 0
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
