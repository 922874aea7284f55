// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Metric.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cmath>

namespace mtrun {

namespace fb = ::mt::plan;

namespace {

constexpr double kerasEpsilon = 1e-7; // keras.config.epsilon()

// The parameters of a metric.
struct Parameters {
  const flatbuffers::Vector<double> *values;
  size_t count;

  double at(size_t i, double otherwise) const { return i < count ? values->Get(static_cast<uint32_t>(i)) : otherwise; }
};

double quotient(double a, double b) { return b == 0 ? 0 : a / b; }

// The counts of one label at each threshold. All predictions are above the first threshold.
struct Curve {
  const double *truePositives, *falsePositives;
  size_t thresholds;

  double positives() const { return truePositives[0]; }
  double negatives() const { return falsePositives[0]; }
};

// How the height of a curve between two thresholds is taken, as in the parameters of a metric.
enum class Height { Mean, Lower, Higher };

struct Point {
  double x, y;
};

// True-positive rate over false-positive rate.
Point rocPoint(const Curve &c, size_t i) {
  return {quotient(c.falsePositives[i], c.negatives()), quotient(c.truePositives[i], c.positives())};
}

Point precisionPoint(const Curve &c, size_t i) {
  return {quotient(c.truePositives[i], c.positives()),
          quotient(c.truePositives[i], c.truePositives[i] + c.falsePositives[i])};
}

// P. Flach and M. Kull, Precision-recall-gain curves: PR analysis done right. Without a true positive, the gains of
// recall and of precision are 0 and 1, as in Keras.
Point gainPoint(const Curve &c, size_t i) {
  double hits = c.truePositives[i], scale = quotient(c.positives(), c.negatives());
  if (hits == 0)
    return {0, 1};
  return {std::max(1 - scale * (c.positives() - hits) / hits, 0.0), 1 - scale * c.falsePositives[i] / hits};
}

template <Point (*point)(const Curve &, size_t)> double areaUnder(const Curve &c, Height height) {
  double area = 0;
  for (size_t i = 0; i + 1 < c.thresholds; ++i) {
    Point from = point(c, i), to = point(c, i + 1);
    double taken = height == Height::Lower    ? std::min(from.y, to.y)
                   : height == Height::Higher ? std::max(from.y, to.y)
                                              : (from.y + to.y) / 2;
    area += (from.x - to.x) * taken;
  }
  return area;
}

// J. Davis and M. Goadrich, The relationship between precision-recall and ROC curves: between two thresholds the number
// of true positives grows linearly with the number of predicted positives P, so precision is slope + intercept / P.
double areaUnderPrecisionRecall(const Curve &c, Height height) {
  if (height != Height::Mean)
    return areaUnder<precisionPoint>(c, height);
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

// Returns the mean over labels, with the weights that follow the first parameter. Each label has a row of true
// positives and a row of false positives.
double meanArea(const double *sums, size_t labels, size_t thresholds, const Parameters &parameters,
                double (*area)(const Curve &, Height)) {
  auto height = static_cast<Height>(static_cast<int>(parameters.at(0, 0)));
  double total = 0, weights = 0;
  for (size_t label = 0; label < labels; ++label) {
    const double *row = sums + 2 * label * thresholds;
    double weight = parameters.at(1 + label, 1);
    total += weight * area({row, row + thresholds, thresholds}, height);
    weights += weight;
  }
  return quotient(total, weights);
}

// `sums` has three rows: counts of classes that are both predicted and true, predicted, and true.
double meanF1(const double *sums, size_t classes, bool weighted, double beta) {
  const double *both = sums, *predicted = sums + classes, *actual = sums + 2 * classes;
  double total = 0, weights = 0;
  for (size_t i = 0; i < classes; ++i) {
    double weight = weighted ? actual[i] : 1;
    total += weight * quotient((1 + beta * beta) * both[i], predicted[i] + beta * beta * actual[i]);
    weights += weight;
  }
  return quotient(total, weights);
}

// The highest rate among the thresholds at which another rate is `least` or more. The first column has all predictions.
double bestRate(fb::Finalizer finalizer, const double *sums, size_t columns, double least) {
  const double *hits = sums, *falsePositives = sums + columns;
  double best = 0;
  for (size_t i = 1; i < columns; ++i) {
    double sensitivity = quotient(hits[i], hits[0]),
           specificity = quotient(falsePositives[0] - falsePositives[i], falsePositives[0]),
           precision = quotient(hits[i], hits[i] + falsePositives[i]), wanted, bound;
    switch (finalizer) {
    case fb::Finalizer::SensitivityAtSpecificity:
      wanted = sensitivity, bound = specificity;
      break;
    case fb::Finalizer::SpecificityAtSensitivity:
      wanted = specificity, bound = sensitivity;
      break;
    case fb::Finalizer::PrecisionAtRecall:
      wanted = precision, bound = sensitivity;
      break;
    default:
      wanted = sensitivity, bound = precision;
    }
    // Keras compares numbers of single precision.
    if (static_cast<float>(bound) >= static_cast<float>(least))
      best = std::max(best, wanted);
  }
  return best;
}

// The mean of intersection over union of the classes that occur, as Keras has it.
double meanIou(const double *counts, size_t classes, const Parameters &ids) {
  double total = 0, occur = 0;
  for (size_t k = 0; k < ids.count; ++k) {
    auto id = static_cast<size_t>(ids.at(k, 0));
    double all = -counts[id * classes + id];
    for (size_t i = 0; i < classes; ++i)
      all += counts[id * classes + i] + counts[i * classes + id];
    if (all <= 1e-9)
      continue;
    total += counts[id * classes + id] / (all + kerasEpsilon);
    ++occur;
  }
  return total / (occur + kerasEpsilon);
}

// The coefficient of determination, as Keras has it. A column whose targets are all equal has no score that is finite:
// it counts as 0.
double determination(const double *sums, size_t columns, double samples, const Parameters &parameters) {
  const double *sum = sums, *squares = sums + columns, *residual = sums + 2 * columns, *weight = sums + 3 * columns;
  double scores = 0, weighted = 0, variances = 0;
  for (size_t i = 0; i < columns; ++i) {
    double variance = squares[i] - sum[i] * sum[i] / weight[i], score = 1 - residual[i] / variance;
    score = std::isinf(score) ? 0 : score;
    scores += score;
    weighted += variance * score;
    variances += variance;
  }
  double score = parameters.at(0, 0) == 0 ? scores / static_cast<double>(columns) : weighted / variances,
         regressors = parameters.at(1, 0), count = samples * parameters.at(2, 1);
  if (regressors == 0 || regressors >= count - 1)
    return score;
  return 1 - (1 - score) * (count - 1) / (count - regressors - 1);
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
  Parameters parameters = {metric.parameters(), count(metric.parameters())};
  switch (metric.finalizer()) {
  case fb::Finalizer::Mean:
    return sums[0] / weight;
  case fb::Finalizer::RootMean:
    return std::sqrt(sums[0] / weight);
  case fb::Finalizer::Roc:
    return meanArea(sums, sumsOf(metric) / (2 * last), last, parameters, areaUnder<rocPoint>);
  case fb::Finalizer::PrecisionRecall:
    return meanArea(sums, sumsOf(metric) / (2 * last), last, parameters, areaUnderPrecisionRecall);
  case fb::Finalizer::PrecisionRecallGain:
    return meanArea(sums, sumsOf(metric) / (2 * last), last, parameters, areaUnder<gainPoint>);
  case fb::Finalizer::F1Macro:
  case fb::Finalizer::F1Weighted:
    return meanF1(sums, last, metric.finalizer() == fb::Finalizer::F1Weighted, parameters.at(0, 1));
  case fb::Finalizer::Sum:
    return sums[0];
  case fb::Finalizer::Iou:
    return meanIou(sums, last, parameters);
  case fb::Finalizer::R2:
    return determination(sums, last, weight, parameters);
  default:
    return bestRate(metric.finalizer(), sums, last, parameters.at(0, 0));
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
