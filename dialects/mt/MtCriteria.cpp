// SPDX-License-Identifier: Apache-2.0
//
// Gradients and decompositions of criteria. MtCriteriaEvaluate.cpp has the reference evaluation, written independently.
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Expr.h"
#include "dialects/mt/Kinks.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

static double lastExtent(const Expr &a) { return a.type().getShape().back(); }

// Bounds of clipped probabilities, from Keras' epsilon.
static constexpr double low = 1e-7, high = 1 - 1e-7;

static Expr softmax(const Expr &a) {
  Expr e = exp(a - maxLast(a));
  return e / sumLast(e);
}
static Expr logSoftmax(const Expr &a) {
  Expr shifted = a - maxLast(a);
  return shifted - log(sumLast(exp(shifted)));
}
// A mask of i1: true at the class of the label.
static Expr labelMask(const Expr &labels, int64_t classes) {
  OpBuilder &builder = labels.getBuilder();
  auto type = RankedTensorType::get({classes}, builder.getI32Type());
  return unsqueezeLast(labels) == labels.make(IotaOp::create(builder, labels.getLocation(), type, 0));
}
static Expr clip(const Expr &a) { return minimum(maximum(a, low), high); }
// 1 if the gradient passes through clip, else 0.
static Expr clipPasses(const Expr &a) { return select(a >= low, select(a <= high, Expr(1.0), Expr(0.0)), 0.0); }

Value SoftmaxOp::decompose(OpBuilder &builder) { return softmax(Expr(builder, getLoc(), getOperand())).value(); }
void SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                              SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.push_back({});
  Expr y(builder, getLoc(), getResult()), dy(builder, getLoc(), resultGradients[0]);
  operandGradients.push_back((y * (dy - sumLast(dy * y))).value());
}

Value LogSoftmaxOp::decompose(OpBuilder &builder) { return logSoftmax(Expr(builder, getLoc(), getOperand())).value(); }
void LogSoftmaxOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                 SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.push_back({});
  Expr y(builder, getLoc(), getResult()), dy(builder, getLoc(), resultGradients[0]);
  operandGradients.push_back((dy - exp(y) * sumLast(dy)).value());
}

Value OneHotOp::decompose(OpBuilder &builder) {
  return toFloat(labelMask(Expr(builder, getLoc(), getLabels()), tensorOf(getResult()).getShape().back())).value();
}

// ---- Logits that are computed by blocks of classes (Blocks.h)

namespace {
// The logits of `size` classes from class `from` on, and the other values of these classes that the block's turn reads.
class ClassBlock {
public:
  ClassBlock(const Expr &logits, int64_t from, int64_t size, Turn turn) : from(from), size(size), turn(turn) {
    predicted = part(logits.getBuilder(), logits.getLocation(), logits.value());
  }

  int64_t first() const { return from; }
  Expr logits() const { return *predicted; }
  // A mask of i1: true at the class of the label. Each turn builds its own mask, because computing it again is cheaper
  // than storing it.
  Expr isLabel(const Expr &labels) const {
    Expr mask = labelMask(from ? labels - static_cast<double>(from) : labels, size);
    setTurn(mask.value().getDefiningOp(), turn);
    return mask;
  }
  // The block's part of targets of the logits' shape. If the targets are a one-hot encoding, it is built from the
  // labels.
  Expr targets(Value values) const {
    OpBuilder &builder = predicted->getBuilder();
    Location location = predicted->getLocation();
    if (auto hot = values.getDefiningOp<OneHotOp>())
      return toFloat(isLabel(Expr(builder, location, hot.getLabels())));
    return part(builder, location, values);
  }

private:
  int64_t from, size;
  Turn turn;
  std::optional<Expr> predicted;

  Expr part(OpBuilder &builder, Location location, Value whole) const {
    // lists of mt.slice do not contain the batch axis
    ArrayRef<int64_t> shape = tensorOf(whole).getShape().drop_front();
    SmallVector<int64_t> starts(shape.size(), 0), sizes(shape);
    starts.back() = from;
    sizes.back() = size;
    auto slice = SliceOp::create(builder, location, whole, starts, sizes, ArrayRef<int64_t>{});
    setTurn(slice, turn);
    return Expr(builder, location, slice);
  }
};

// The logarithm of the sum of e^logit over a row is top + rest.
struct LogSum {
  Expr top, rest;
};
} // namespace

// The blocks in order of their classes. `again`: the blocks of the backward pass, whose turns go from the last block to
// the first; the logits of the last block are still in memory.
static SmallVector<ClassBlock> classBlocks(const Expr &p, LogitBlocks form, bool again = false) {
  int64_t classes = static_cast<int64_t>(lastExtent(p)), last = llvm::divideCeil(classes, form.size) - 1;
  SmallVector<ClassBlock> blocks;
  for (int64_t i = 0; i <= last; ++i)
    blocks.push_back(ClassBlock(p, i * form.size, std::min(form.size, classes - i * form.size),
                                {form.sequence, again ? 2 * last - i : i}));
  return blocks;
}

static Expr sumOf(ArrayRef<ClassBlock> blocks, llvm::function_ref<Expr(const ClassBlock &)> partOf) {
  Expr sum = partOf(blocks[0]);
  for (const ClassBlock &block : blocks.drop_front())
    sum = sum + partOf(block);
  return sum;
}

static LogSum logSum(ArrayRef<ClassBlock> blocks) {
  // The bound keeps a block whose logits are all -inf from giving a NaN.
  SmallVector<Expr> tops =
      llvm::map_to_vector(blocks, [](const ClassBlock &block) { return maximum(maxLast(block.logits()), -3.0e38); });
  Expr top = tops[0];
  for (const Expr &other : ArrayRef(tops).drop_front())
    top = maximum(top, other);
  const Expr *own = tops.begin();
  Expr sum = sumOf(blocks, [&](const ClassBlock &block) {
    Expr part = sumLast(exp(block.logits() - *own)) * exp(*own - top);
    ++own;
    return part;
  });
  return {top, log(sum)};
}

// The logit of the label.
static Expr labelLogit(ArrayRef<ClassBlock> blocks, const Expr &labels) {
  return sumOf(blocks,
               [&](const ClassBlock &block) { return sumLast(select(block.isLabel(labels), block.logits(), 0.0)); });
}

static Value sparseLoss(const Expr &p, const Expr &labels, LogitBlocks form) {
  SmallVector<ClassBlock> blocks = classBlocks(p, form);
  LogSum sum = logSum(blocks);
  return squeezeLast(sum.rest - (labelLogit(blocks, labels) - sum.top)).value();
}

// Number of logits that are larger than the label's logit. The label's logit is known after all blocks, so the logits
// are counted when the backward pass computes the blocks again.
static Expr countAboveLabel(const Expr &p, const Expr &labels, LogitBlocks form) {
  Expr chosen = labelLogit(classBlocks(p, form), labels);
  return sumOf(classBlocks(p, form, /*again=*/true),
               [&](const ClassBlock &block) { return sumLast(toFloat(block.logits() > chosen)); });
}

static Value denseLoss(const Expr &p, llvm::function_ref<Expr(const ClassBlock &)> targetsOf, LogitBlocks form) {
  SmallVector<ClassBlock> blocks = classBlocks(p, form);
  LogSum sum = logSum(blocks);
  Expr all = sumOf(blocks, [&](const ClassBlock &block) { return sumLast(targetsOf(block)); });
  Expr chosen = sumOf(blocks, [&](const ClassBlock &block) { return sumLast(targetsOf(block) * block.logits()); });
  return squeezeLast(all * sum.rest - (chosen - all * sum.top)).value();
}

// Gradient (softmax(p) sum(t) - t) dy of the cross-entropy. `one` states that sum(t) is 1.
static Value gradientByBlocks(const Expr &p, llvm::function_ref<Expr(const ClassBlock &)> targetsOf, const Expr &dy,
                              LogitBlocks form, bool one) {
  SmallVector<ClassBlock> blocks = classBlocks(p, form);
  LogSum sum = logSum(blocks);
  std::optional<Expr> all;
  if (!one)
    all = sumOf(blocks, [&](const ClassBlock &block) { return sumLast(targetsOf(block)); });
  SmallVector<Value> parts;
  for (const ClassBlock &block : classBlocks(p, form, /*again=*/true)) {
    Expr probability = exp(block.logits() - sum.top - sum.rest);
    parts.push_back((((all ? probability * *all : probability) - targetsOf(block)) * dy).value());
  }
  auto whole = ConcatOp::create(p.getBuilder(), p.getLocation(), parts, p.type().getRank() - 1);
  setBlocks(whole, form);
  return whole;
}

// Index of the first largest logit, or of the first NaN, as f32. It is built of comparisons and a minimum, because an
// mt.argmax would keep the gradient of a block from overwriting the block's logits.
static Expr argmaxByBlocks(const Expr &p, LogitBlocks form) {
  auto indexIn = [](const ClassBlock &block) {
    Expr p = block.logits();
    OpBuilder &builder = p.getBuilder();
    RankedTensorType type = p.type();
    auto index = p.make(IotaOp::create(builder, p.getLocation(),
                                       RankedTensorType::get(type.getShape().take_back(), type.getElementType()), 0));
    // If an element is NaN, the maximum is NaN and equals no element: the index of the first NaN is used instead.
    Expr at = select(!(p == maxLast(p)), select(p == p, lastExtent(p), index), index);
    Expr found = p.make(ReduceOp::create(builder, p.getLocation(), Reduction::min, at.value(), {type.getRank() - 1}));
    return block.first() ? found + static_cast<double>(block.first()) : found;
  };
  SmallVector<ClassBlock> blocks = classBlocks(p, form);
  Expr largest = squeezeLast(maxLast(blocks[0].logits())), found = indexIn(blocks[0]);
  for (const ClassBlock &block : ArrayRef(blocks).drop_front()) {
    Expr own = squeezeLast(maxLast(block.logits()));
    Expr index = indexIn(block);
    found = select(own > largest, index, select(own == own, found, select(largest == largest, index, found)));
    largest = maximum(largest, own);
  }
  return found;
}

// ---- Cross-entropy

Value SparseCategoricalCrossentropyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), labels(builder, getLoc(), getTargets());
  if (std::optional<LogitBlocks> form = mlir::mt::blocksOf(getOperation()))
    return sparseLoss(p, labels, *form);
  Expr mask = labelMask(labels, p.type().getShape().back());
  Expr logarithm = getFromLogits() ? logSoftmax(p) : log(clip(p / sumLast(p)));
  return (-squeezeLast(sumLast(select(mask, logarithm, 0.0)))).value();
}

// t (1 - s) + s / classes.
static Expr smoothed(const Expr &t, const llvm::APFloat &smoothing, double classes) {
  double s = smoothing.convertToDouble();
  return s == 0 ? t : t * (1 - s) + s / classes;
}

// The smoothed targets of a block of classes.
static Expr targetsOf(CategoricalCrossentropyOp op, const ClassBlock &block) {
  return smoothed(block.targets(op.getTargets()), op.getLabelSmoothing(),
                  static_cast<double>(tensorOf(op.getPredictions()).getShape().back()));
}

Value CategoricalCrossentropyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions());
  if (std::optional<LogitBlocks> form = mlir::mt::blocksOf(getOperation()))
    return denseLoss(p, [&](const ClassBlock &block) { return targetsOf(*this, block); }, *form);
  Expr t = smoothed(Expr(builder, getLoc(), getTargets()), getLabelSmoothing(), lastExtent(p));
  Expr logarithm = getFromLogits() ? logSoftmax(p) : log(clip(p / sumLast(p)));
  return (-squeezeLast(sumLast(t * logarithm))).value();
}

// dL/dp of -sum t log p. For logits it is softmax(p) sum(t) - t. Probabilities are differentiated through the clip and
// through q = p / s.
static Expr categoricalGradient(const Expr &p, const Expr &t, const Expr &dy, bool logits, bool oneHot) {
  if (logits)
    return (oneHot ? softmax(p) - t : softmax(p) * sumLast(t) - t) * dy;
  Expr s = sumLast(p), q = p / s;
  Expr dq = -(t * dy * clipPasses(q) / clip(q));
  return (dq - sumLast(dq * q)) / s;
}

void SparseCategoricalCrossentropyOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                                    SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(2, {});
  Expr p(builder, getLoc(), getPredictions()), labels(builder, getLoc(), getTargets());
  if (std::optional<LogitBlocks> form = mlir::mt::blocksOf(getOperation())) {
    auto targets = [&](const ClassBlock &block) { return toFloat(block.isLabel(labels)); };
    Expr dy = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0]));
    operandGradients.append({gradientByBlocks(p, targets, dy, *form, /*one=*/true), Value()});
    return;
  }
  Expr t = toFloat(labelMask(labels, p.type().getShape().back()));
  Expr dy = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0]));
  operandGradients.push_back(categoricalGradient(p, t, dy, getFromLogits(), /*oneHot=*/true).value());
  operandGradients.push_back({});
}

void CategoricalCrossentropyOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                              SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(2, {});
  Expr p(builder, getLoc(), getPredictions());
  if (std::optional<LogitBlocks> form = mlir::mt::blocksOf(getOperation())) {
    auto targets = [&](const ClassBlock &block) { return targetsOf(*this, block); };
    Expr dy = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0]));
    operandGradients.append({gradientByBlocks(p, targets, dy, *form, /*one=*/false), Value()});
    return;
  }
  Expr t = smoothed(Expr(builder, getLoc(), getTargets()), getLabelSmoothing(), lastExtent(p));
  Expr dy = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0]));
  operandGradients.push_back(categoricalGradient(p, t, dy, getFromLogits(), /*oneHot=*/false).value());
  Expr logarithm = getFromLogits() ? logSoftmax(p) : log(clip(p / sumLast(p)));
  operandGradients.push_back((logarithm * dy * (getLabelSmoothing().convertToDouble() - 1.0)).value());
}

// The form for logits, max(p, 0) - p t + log1p(e^-|p|), does not overflow.
Value BinaryCrossentropyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions());
  Expr t = smoothed(Expr(builder, getLoc(), getTargets()), getLabelSmoothing(), 2);
  Expr c = getFromLogits() ? p : clip(p);
  Expr each =
      getFromLogits() ? maximum(p, 0.0) - p * t + log1p(exp(-abs(p))) : -(t * log(c) + (1.0 - t) * log(1.0 - c));
  return (squeezeLast(sumLast(each)) / lastExtent(p)).value();
}
void BinaryCrossentropyOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                         SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(2, {});
  Expr p(builder, getLoc(), getPredictions());
  Expr t = smoothed(Expr(builder, getLoc(), getTargets()), getLabelSmoothing(), 2);
  Expr each = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0])) / lastExtent(p);
  double kept = 1 - getLabelSmoothing().convertToDouble();
  if (getFromLogits()) {
    operandGradients.push_back(((sigmoid(p) - t) * each).value());
    operandGradients.push_back((p * each * -kept).value());
    return;
  }
  Expr c = clip(p);
  operandGradients.push_back(((c - t) / (c * (1.0 - c)) * clipPasses(p) * each).value());
  operandGradients.push_back(((log(1.0 - c) - log(c)) * each * kept).value());
}

Value MeanSquaredErrorOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  return (squeezeLast(sumLast(square(p - t))) / lastExtent(p)).value();
}
void MeanSquaredErrorOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                       SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(2, {});
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  Expr each = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0])) * (2 / lastExtent(p));
  Expr dp = (p - t) * each;
  operandGradients.push_back(dp.value());
  operandGradients.push_back((-dp).value());
}

Value MeanAbsoluteErrorOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  return (squeezeLast(sumLast(abs(p - t))) / lastExtent(p)).value();
}
void MeanAbsoluteErrorOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  if (!resultGradients[0])
    return operandGradients.append(2, {});
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  Expr each = unsqueezeLast(Expr(builder, getLoc(), resultGradients[0])) / lastExtent(p);
  Expr dp = gradientOfDistance(p, t, each);
  operandGradients.push_back(dp.value());
  operandGradients.push_back((-dp).value());
}

static Expr argmax(const Expr &a) { return a.make(ArgmaxOp::create(a.getBuilder(), a.getLocation(), a.value())); }

Value SparseCategoricalAccuracyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), labels(builder, getLoc(), getTargets());
  if (std::optional<LogitBlocks> form = mlir::mt::blocksOf(getOperation()))
    return toFloat(argmaxByBlocks(p, *form) == toFloat(labels)).value();
  return toFloat(argmax(p) == labels).value();
}
Value CategoricalAccuracyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  return toFloat(argmax(p) == argmax(t)).value();
}
Value BinaryAccuracyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  Expr hits = toFloat(toFloat(p > 0.5) == t);
  return (squeezeLast(sumLast(hits)) / lastExtent(p)).value();
}

static Expr isAmongTop(const Expr &p, const Expr &labels, int64_t k, std::optional<LogitBlocks> form) {
  if (form)
    return toFloat(squeezeLast(countAboveLabel(p, labels, *form)) < static_cast<double>(k));
  Expr chosen = sumLast(select(labelMask(labels, p.type().getShape().back()), p, 0.0));
  return toFloat(squeezeLast(sumLast(toFloat(p > chosen))) < static_cast<double>(k));
}
Value SparseTopKCategoricalAccuracyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), labels(builder, getLoc(), getTargets());
  return isAmongTop(p, labels, getK(), mlir::mt::blocksOf(getOperation())).value();
}
Value TopKCategoricalAccuracyOp::decompose(OpBuilder &builder) {
  Expr p(builder, getLoc(), getPredictions()), t(builder, getLoc(), getTargets());
  return isAmongTop(p, argmax(t), getK(), mlir::mt::blocksOf(getOperation())).value();
}
