// SPDX-License-Identifier: Apache-2.0
//
// Reference evaluation of attention, its log sums and its gradients in double precision, by definition.
#include "dialects/mt/Attention.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Random.h"

using namespace mlir;
using namespace mlir::mt;

namespace {
// One head at one index of the axes before the positions, with the offsets of its rows.
struct Head {
  const mt::Attention &form;
  int64_t index, head; // the index of these axes, linearized
  int64_t sample, group;

  const double *line(const Tensor &tensor, int64_t positions, int64_t position, bool ofKeys, int64_t size) const {
    int64_t heads = ofKeys ? form.keyHeads : form.heads;
    int64_t number = ofKeys ? head / (form.heads / form.keyHeads) : head;
    return tensor.data.data() + ((index * positions + position) * heads + number) * size;
  }
  double *line(Tensor &tensor, int64_t positions, int64_t position, bool ofKeys, int64_t size) const {
    return const_cast<double *>(line(std::as_const(tensor), positions, position, ofKeys, size));
  }
  const double *query(const Tensor &q, int64_t t) const { return line(q, form.queries, t, false, form.keySize); }
  const double *key(const Tensor &k, int64_t s) const { return line(k, form.keys, s, true, form.keySize); }
  const double *value(const Tensor &v, int64_t s) const { return line(v, form.keys, s, true, form.valueSize); }
  int64_t logSum(int64_t t) const { return (index * form.heads + head) * form.queries + t; }

  bool isNear(int64_t t, int64_t s) const { return s >= form.firstKey(t) && s < form.endKey(t); }
  bool sees(const Tensor *mask, int64_t t, int64_t s) const {
    if (!isNear(t, s))
      return false;
    if (!mask)
      return true;
    mt::Attention::MaskSteps steps = form.maskSteps();
    return mask->data[sample * steps.sample + group * steps.group + head * steps.head + t * steps.query +
                      s * steps.key] != 0;
  }
};

double dot(const double *a, const double *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

void addTo(double *sums, const double *line, double factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    sums[i] += factor * line[i];
}

// Factors of the probabilities in train_step.
class Dropout {
public:
  template <typename Op> Dropout(Op op, const EvalContext &context, ArrayRef<Tensor> operands) : context(context) {
    if (!op.getStep())
      return;
    rate = op.getRate()->convertToDouble();
    auto word = [](const Tensor &number) { return static_cast<uint32_t>(static_cast<int64_t>(number.data[0])); };
    stream = op.getHash() ? word(operands[operands.size() - 2]) : hashStream(*op.getStream());
    step = word(operands.back());
  }
  double factor(const Head &head, int64_t t, int64_t s) const {
    if (rate == 0)
      return 1;
    int64_t index = (context.firstRow + head.sample) * head.form.groups + head.group;
    int64_t element = ((index * head.form.heads + head.head) * head.form.queries + t) * head.form.keys + s;
    return uniformElement(context.seed, stream, step, element) >= rate ? 1 / (1 - rate) : 0;
  }

private:
  const EvalContext &context;
  double rate = 0;
  uint32_t stream = 0, step = 0;
};
} // namespace

static void roundElements(Type type, Tensor &tensor) {
  Type element = cast<RankedTensorType>(type).getElementType();
  for (double &number : tensor.data)
    number = isHalf(element) ? mt::roundTo(element, number) : number;
}

static void forHeads(const mt::Attention &form, int64_t indices, llvm::function_ref<void(const Head &)> use) {
  for (int64_t index = 0; index < indices; ++index)
    for (int64_t head = 0; head < form.heads; ++head)
      use({form, index, head, index / form.groups, index % form.groups});
}
static int64_t indicesOf(const Tensor &query) {
  return query.size() / (query.shape[query.rank() - 1] * query.shape[query.rank() - 2]);
}

// Returns the log sum of a query, and its scores: -inf for each key that the query does not attend to.
static double scoresAt(const Head &head, const Tensor &q, const Tensor &k, const Tensor *mask, int64_t t,
                       std::vector<double> &scores) {
  const mt::Attention &form = head.form;
  double most = -INFINITY, sum = 0;
  scores.assign(form.keys, -INFINITY);
  for (int64_t s = 0; s < form.keys; ++s)
    if (head.sees(mask, t, s)) {
      scores[s] = form.scale * dot(head.query(q, t), head.key(k, s), form.keySize);
      most = std::max(most, scores[s]);
    }
  for (double score : scores)
    sum += score == -INFINITY ? 0 : std::exp(score - most);
  return sum == 0 ? 0 : most + std::log(sum);
}

LogicalResult AttentionOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                     SmallVectorImpl<Tensor> &results) {
  mt::Attention form(*this);
  const Tensor &q = operands[0], &k = operands[1], &v = operands[2], *mask = getMask() ? &operands[3] : nullptr;
  Dropout dropout(*this, context, operands);
  Tensor result(concreteShape(getType(), context.rows));
  std::vector<double> scores;
  forHeads(form, indicesOf(q), [&](const Head &head) {
    for (int64_t t = 0; t < form.queries; ++t) {
      double logSum = scoresAt(head, q, k, mask, t, scores);
      double *line = head.line(result, form.queries, t, false, form.valueSize);
      // The probability of a key that the mask hides is 0; the code multiplies it, so that a NaN in its value gives
      // NaN.
      for (int64_t s = 0; s < form.keys; ++s)
        if (head.isNear(t, s))
          addTo(line, head.value(v, s),
                (scores[s] == -INFINITY ? 0 : std::exp(scores[s] - logSum)) * dropout.factor(head, t, s),
                form.valueSize);
    }
  });
  roundElements(getType(), result);
  results.push_back(std::move(result));
  return success();
}

LogicalResult AttentionLogSumsOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                            SmallVectorImpl<Tensor> &results) {
  mt::Attention form(*this);
  Tensor result(concreteShape(getType(), context.rows));
  std::vector<double> scores;
  forHeads(form, indicesOf(operands[0]), [&](const Head &head) {
    for (int64_t t = 0; t < form.queries; ++t)
      result.data[head.logSum(t)] =
          scoresAt(head, operands[0], operands[1], getMask() ? &operands[2] : nullptr, t, scores);
  });
  results.push_back(std::move(result));
  return success();
}

LogicalResult AttentionGradientOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                             SmallVectorImpl<Tensor> &results) {
  mt::Attention form(*this);
  const Tensor &dy = operands[0], &q = operands[1], &k = operands[2], &v = operands[3], &y = operands[4];
  const Tensor *mask = getMask() ? &operands[6] : nullptr;
  Tensor result(concreteShape(getType(), context.rows));
  AttentionOperand of = getOf();
  Dropout dropout(*this, context, operands);
  forHeads(form, indicesOf(q), [&](const Head &head) {
    for (int64_t t = 0; t < form.queries; ++t) {
      const double *dyLine = head.line(dy, form.queries, t, false, form.valueSize);
      double delta = dot(dyLine, head.line(y, form.queries, t, false, form.valueSize), form.valueSize);
      for (int64_t s = 0; s < form.keys; ++s) {
        if (!head.isNear(t, s))
          continue;
        double score = form.scale * dot(head.query(q, t), head.key(k, s), form.keySize);
        double p = head.sees(mask, t, s) ? std::exp(score - operands[5].data[head.logSum(t)]) : 0;
        double kept = dropout.factor(head, t, s);
        double ds = form.scale * p * (kept * dot(dyLine, head.value(v, s), form.valueSize) - delta);
        if (of == AttentionOperand::query)
          addTo(head.line(result, form.queries, t, false, form.keySize), head.key(k, s), ds, form.keySize);
        else if (of == AttentionOperand::key)
          addTo(head.line(result, form.keys, s, true, form.keySize), head.query(q, t), ds, form.keySize);
        else
          addTo(head.line(result, form.keys, s, true, form.valueSize), dyLine, p * kept, form.valueSize);
      }
    }
  });
  roundElements(getType(), result);
  results.push_back(std::move(result));
  return success();
}
