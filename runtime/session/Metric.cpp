// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Metric.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cmath>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

double quotient(double a, double b) { return b == 0 ? 0 : a / b; }

// The counts of one label at each threshold. All predictions are above the first threshold.
struct Curve {
  const double *truePositives, *falsePositives;
  size_t thresholds;

  double positives() const { return truePositives[0]; }
  double negatives() const { return falsePositives[0]; }
};

// Returns the area under the ROC curve (true-positive rate over false-positive rate) by the trapezoidal rule.
double areaUnderRoc(const Curve &c) {
  double area = 0;
  for (size_t i = 0; i + 1 < c.thresholds; ++i) {
    double width = quotient(c.falsePositives[i], c.negatives()) - quotient(c.falsePositives[i + 1], c.negatives());
    double heights = quotient(c.truePositives[i], c.positives()) + quotient(c.truePositives[i + 1], c.positives());
    area += width * heights / 2;
  }
  return area;
}

// J. Davis and M. Goadrich, The relationship between precision-recall and ROC curves: between two thresholds the number
// of true positives grows linearly with the number of predicted positives P, so precision is slope + intercept / P.
double areaUnderPrecisionRecall(const Curve &c) {
  double area = 0;
  for (size_t i = 0; i + 1 < c.thresholds; ++i) {
    double high = c.truePositives[i] + c.falsePositives[i], low = c.truePositives[i + 1] + c.falsePositives[i + 1];
    double gain = c.truePositives[i] - c.truePositives[i + 1];
    double slope = quotient(gain, std::max(high - low, 0.0)), intercept = c.truePositives[i + 1] - slope * low;
    double ratio = high > 0 && low > 0 ? high / low : 1;
    area += quotient(slope * (gain + intercept * std::log(ratio)), c.positives());
  }
  return area;
}

// Returns the mean over labels. Each label has a row of true positives and a row of false positives.
double meanArea(const double *sums, size_t labels, size_t thresholds, double (*area)(const Curve &)) {
  double total = 0;
  for (size_t label = 0; label < labels; ++label) {
    const double *row = sums + 2 * label * thresholds;
    total += area({row, row + thresholds, thresholds});
  }
  return quotient(total, static_cast<double>(labels));
}

// `sums` has three rows: counts of classes that are both predicted and true, predicted, and true.
double meanF1(const double *sums, size_t classes, bool weighted) {
  const double *both = sums, *predicted = sums + classes, *actual = sums + 2 * classes;
  double total = 0, weights = 0;
  for (size_t i = 0; i < classes; ++i) {
    double weight = weighted ? actual[i] : 1;
    total += weight * quotient(2 * both[i], predicted[i] + actual[i]);
    weights += weight;
  }
  return quotient(total, weights);
}

} // namespace

size_t sumsOf(const fb::Metric &metric) {
  size_t sums = 1;
  for (uint32_t i = 0; i < count(metric.shape()); ++i)
    sums *= static_cast<size_t>(metric.shape()->Get(i));
  return sums;
}

double metricValue(const fb::Metric &metric, const double *sums, double weight) {
  if (weight == 0)
    return 0;
  size_t last = count(metric.shape()) ? static_cast<size_t>(metric.shape()->Get(count(metric.shape()) - 1)) : 1;
  switch (metric.finalizer()) {
  case fb::Finalizer::RootMean:
    return std::sqrt(sums[0] / weight);
  case fb::Finalizer::Roc:
    return meanArea(sums, sumsOf(metric) / (2 * last), last, areaUnderRoc);
  case fb::Finalizer::PrecisionRecall:
    return meanArea(sums, sumsOf(metric) / (2 * last), last, areaUnderPrecisionRecall);
  case fb::Finalizer::F1Macro:
    return meanF1(sums, last, false);
  case fb::Finalizer::F1Weighted:
    return meanF1(sums, last, true);
  default:
    return sums[0] / weight;
  }
}

size_t sumsOf(const fb::Program &program) {
  size_t sums = 0;
  for (const fb::Metric *metric : Each(program.metrics()))
    sums += sumsOf(*metric);
  return sums;
}

double metricValue(const fb::Program &program, size_t metric, const double *sums, const double *weights) {
  const auto &metrics = *program.metrics();
  for (uint32_t i = 0; i < metric; ++i)
    sums += sumsOf(*metrics.Get(i));
  return metricValue(*metrics.Get(static_cast<uint32_t>(metric)), sums, weights[metric]);
}

} // namespace mtrun
