// SPDX-License-Identifier: Apache-2.0
//
// Reference evaluation of composites in double precision, row by row. Tests compare the decompositions with it.
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Numbers.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::mt;

using Row = ArrayRef<double>;

static SmallVector<double> softmaxRow(Row a) {
  double largest = a[firstLargest(a)], sum = 0;
  SmallVector<double> row;
  for (double x : a)
    sum += row.emplace_back(std::exp(x - largest));
  for (double &x : row)
    x /= sum;
  return row;
}

static double logSumExp(Row a) {
  double largest = a[firstLargest(a)], sum = 0;
  for (double x : a)
    sum += std::exp(x - largest);
  return largest + std::log(sum);
}

static double clip(double p) { return std::clamp<double>(p, 1e-7f, static_cast<float>(1 - 1e-7)); }

// Logarithm of the probability of class c.
static double logProbability(Row p, size_t c, bool logits) {
  return logits ? p[c] - logSumExp(p) : std::log(clip(p[c] / std::accumulate(p.begin(), p.end(), 0.0)));
}

// Calls `function` for each row of the predictions' last axis; its values are the elements of the result.
static Tensor perRow(const Tensor &predictions, llvm::function_ref<double(Row, int64_t)> function) {
  Tensor result(ArrayRef<int64_t>(predictions.shape).drop_back());
  int64_t extent = predictions.shape.back();
  for (int64_t i = 0; i < result.size(); ++i)
    result.data[i] = function(Row(predictions.data.data() + i * extent, extent), i);
  return result;
}

static Row rowOf(const Tensor &tensor, int64_t row) {
  int64_t extent = tensor.shape.back();
  return Row(tensor.data.data() + row * extent, extent);
}

static Tensor mapRows(const Tensor &a, llvm::function_ref<SmallVector<double>(Row)> function) {
  Tensor result(a.shape);
  int64_t extent = a.shape.back();
  for (int64_t at = 0; at < a.size(); at += extent)
    llvm::copy(function(Row(a.data.data() + at, extent)), result.data.begin() + at);
  return result;
}

LogicalResult SoftmaxOp::interpret(const EvalContext &, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {
  results.push_back(mapRows(operands[0], softmaxRow));
  return success();
}

LogicalResult LogSoftmaxOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                      SmallVectorImpl<Tensor> &results) {
  results.push_back(mapRows(operands[0], [](Row a) {
    SmallVector<double> row(a);
    for (double &x : row)
      x -= logSumExp(a);
    return row;
  }));
  return success();
}

LogicalResult OneHotOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  Tensor result(concreteShape(cast<RankedTensorType>(getType()), context.rows));
  int64_t extent = result.shape.back();
  for (auto [row, label] : llvm::enumerate(operands[0].data))
    if (label >= 0 && label < extent)
      result.data[row * extent + static_cast<int64_t>(label)] = 1;
  results.push_back(std::move(result));
  return success();
}

LogicalResult SparseCategoricalCrossentropyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                                         SmallVectorImpl<Tensor> &results) {
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double label = operands[1].data[row];
    return label >= 0 && label < p.size() ? -logProbability(p, static_cast<size_t>(label), getFromLogits()) : 0.0;
  }));
  return success();
}

LogicalResult CategoricalCrossentropyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                                   SmallVectorImpl<Tensor> &results) {
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double sum = 0, s = getLabelSmoothing().convertToDouble();
    for (auto [c, t] : llvm::enumerate(rowOf(operands[1], row)))
      sum -= (t * (1 - s) + s / p.size()) * logProbability(p, c, getFromLogits());
    return sum;
  }));
  return success();
}

LogicalResult BinaryCrossentropyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                              SmallVectorImpl<Tensor> &results) {
  double s = getLabelSmoothing().convertToDouble();
  auto each = [&](double p, double target) {
    double t = target * (1 - s) + s / 2;
    if (getFromLogits())
      return larger(p, 0.0) - p * t + std::log1p(std::exp(-std::fabs(p)));
    return -(t * std::log(clip(p)) + (1 - t) * std::log(1 - clip(p)));
  };
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double sum = 0;
    for (auto [x, t] : llvm::zip(p, rowOf(operands[1], row)))
      sum += each(x, t);
    return sum / p.size();
  }));
  return success();
}

// The mean over the last axis of a function of prediction and target.
static Tensor meanRow(ArrayRef<Tensor> operands, llvm::function_ref<double(double, double)> each) {
  return perRow(operands[0], [&](Row p, int64_t row) {
    double sum = 0;
    for (auto [x, t] : llvm::zip(p, rowOf(operands[1], row)))
      sum += each(x, t);
    return sum / p.size();
  });
}

LogicalResult MeanSquaredErrorOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                            SmallVectorImpl<Tensor> &results) {
  results.push_back(meanRow(operands, [](double p, double t) { return (p - t) * (p - t); }));
  return success();
}
LogicalResult MeanAbsoluteErrorOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                             SmallVectorImpl<Tensor> &results) {
  results.push_back(meanRow(operands, [](double p, double t) { return std::fabs(p - t); }));
  return success();
}
LogicalResult BinaryAccuracyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                          SmallVectorImpl<Tensor> &results) {
  results.push_back(meanRow(operands, [](double p, double t) -> double { return (p > 0.5) == t; }));
  return success();
}

static double argmax(Row a) { return firstLargest(a); }

LogicalResult SparseCategoricalAccuracyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                                     SmallVectorImpl<Tensor> &results) {
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) { return argmax(p) == operands[1].data[row]; }));
  return success();
}
LogicalResult CategoricalAccuracyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                               SmallVectorImpl<Tensor> &results) {
  results.push_back(
      perRow(operands[0], [&](Row p, int64_t row) { return argmax(p) == argmax(rowOf(operands[1], row)); }));
  return success();
}

#define MT_MEAN_LOSS(OP, EACH)                                                                                         \
  LogicalResult OP::interpret(const EvalContext &, ArrayRef<Tensor> operands, SmallVectorImpl<Tensor> &results) {      \
    results.push_back(meanRow(operands, [&](double p, double t) -> double { return EACH; }));                          \
    return success();                                                                                                  \
  }
static double huber(double error, double delta) {
  return error <= delta ? error * error / 2 : delta * error - delta * delta / 2;
}
static double margin(double p, double t) { return larger(1 - (t == 0 ? -1 : t) * p, 0.0); }
static double logOf(double x) { return std::log(larger(x, 1e-7f) + 1); }
MT_MEAN_LOSS(HuberOp, huber(std::fabs(p - t), getDelta().convertToDouble()))
MT_MEAN_LOSS(HingeOp, margin(p, t))
MT_MEAN_LOSS(SquaredHingeOp, margin(p, t) * margin(p, t))
MT_MEAN_LOSS(PoissonOp, p - t * std::log(p + 1e-7f))
MT_MEAN_LOSS(LogCoshOp, std::fabs(p - t) + std::log1p(std::exp(-2 * std::fabs(p - t))) - M_LN2)
MT_MEAN_LOSS(MeanAbsolutePercentageErrorOp, 100 * std::fabs(t - p) / larger(std::fabs(t), 1e-7f))
MT_MEAN_LOSS(MeanSquaredLogarithmicErrorOp, (logOf(p) - logOf(t)) * (logOf(p) - logOf(t)))
#undef MT_MEAN_LOSS

LogicalResult CategoricalHingeOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                            SmallVectorImpl<Tensor> &results) {
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double positive = 0, negative = -INFINITY;
    for (auto [x, t] : llvm::zip(p, rowOf(operands[1], row))) {
      positive += x * t;
      negative = larger(negative, x * (1 - t));
    }
    return larger(negative - positive + 1, 0.0);
  }));
  return success();
}

LogicalResult KlDivergenceOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                        SmallVectorImpl<Tensor> &results) {
  auto bounded = [](double x) { return std::clamp<double>(x, 1e-7f, 1); };
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double sum = 0;
    for (auto [x, t] : llvm::zip(p, rowOf(operands[1], row)))
      sum += bounded(t) * std::log(bounded(t) / bounded(x));
    return sum;
  }));
  return success();
}

LogicalResult CosineSimilarityOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                            SmallVectorImpl<Tensor> &results) {
  results.push_back(perRow(operands[0], [&](Row p, int64_t row) {
    double product = 0, pp = 0, tt = 0;
    for (auto [x, t] : llvm::zip(p, rowOf(operands[1], row))) {
      product += x * t;
      pp += x * x;
      tt += t * t;
    }
    return -product / (larger(std::sqrt(pp), 1e-7) * larger(std::sqrt(tt), 1e-7));
  }));
  return success();
}

// Whether fewer than k elements are larger than the label's element.
static bool isAmongTop(Row p, double label, int64_t k) {
  double chosen = label >= 0 && label < p.size() ? p[static_cast<size_t>(label)] : 0;
  return llvm::count_if(p, [&](double x) { return x > chosen; }) < k;
}
LogicalResult SparseTopKCategoricalAccuracyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                                         SmallVectorImpl<Tensor> &results) {
  results.push_back(
      perRow(operands[0], [&](Row p, int64_t row) { return isAmongTop(p, operands[1].data[row], getK()); }));
  return success();
}
LogicalResult TopKCategoricalAccuracyOp::interpret(const EvalContext &, ArrayRef<Tensor> operands,
                                                   SmallVectorImpl<Tensor> &results) {
  results.push_back(
      perRow(operands[0], [&](Row p, int64_t row) { return isAmongTop(p, argmax(rowOf(operands[1], row)), getK()); }));
  return success();
}
