// SPDX-License-Identifier: Apache-2.0
#include "compiler/differentiate/CentredSums.h"

#include "dialects/mt/Elementwise.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
namespace {

using mt::tensorOf;

// A sum over the batch, and before that over axes of each sample.
struct BatchSum {
  Value operand;
  SmallVector<int64_t> dims = {};
  bool operator==(const BatchSum &other) const { return operand == other.operand && dims == other.dims; }
};

std::optional<BatchSum> batchSumOf(Value value) {
  auto outer = value.getDefiningOp<mt::ReduceOp>();
  if (!outer || outer.getKind() != mt::Reduction::sum || outer.getDims() != ArrayRef<int64_t>{0} ||
      !mt::isSplit(outer.getOperand().getType()))
    return std::nullopt;
  auto inner = outer.getOperand().getDefiningOp<mt::ReduceOp>();
  if (inner && inner.getKind() == mt::Reduction::sum)
    return BatchSum{inner.getOperand(), SmallVector<int64_t>(inner.getDims())};
  return BatchSum{outer.getOperand()};
}

// The k of k * (number of samples); 0: the value is something else.
double timesBatchSize(Value value) {
  if (value.getDefiningOp<mt::BatchSizeOp>())
    return 1;
  auto product = value.getDefiningOp<mt::MulOp>();
  for (int side = 0; product && side < 2; ++side)
    if (SplatElementsAttr factor = mt::splatOf(product->getOperand(1 - side)))
      return timesBatchSize(product->getOperand(side)) * factor.getSplatValue<APFloat>().convertToDouble();
  return 0;
}

// The sum whose mean a value is; none: it is no mean over the batch.
std::optional<BatchSum> meanOf(Value value) {
  auto quotient = value.getDefiningOp<mt::DivOp>();
  std::optional<BatchSum> sum = quotient ? batchSumOf(quotient.getLhs()) : std::nullopt;
  if (!sum)
    return std::nullopt;
  double elements = 1;
  for (int64_t axis : sum->dims)
    elements *= static_cast<double>(tensorOf(sum->operand).getDimSize(axis));
  return timesBatchSize(quotient.getRhs()) == elements ? sum : std::nullopt;
}

// Whether a factor is the same for all that is summed: a number, or one for each index of the last axis, which is kept.
bool isFactor(Value value, const BatchSum &sum) {
  auto type = tensorOf(value);
  int64_t rank = tensorOf(sum.operand).getRank();
  bool keepsLast = !llvm::is_contained(sum.dims, rank - 1) && rank > 1;
  return !mt::isSplit(type) && (type.getRank() == 0 || (type.getRank() == 1 && keepsLast));
}

// Whether what is summed is a multiple of differences from their own mean: k * (x - mean(x)).
bool isCentred(BatchSum sum) {
  for (;;) {
    Operation *op = sum.operand.getDefiningOp();
    if (isa_and_present<mt::NegOp>(op))
      sum.operand = op->getOperand(0);
    else if (auto quotient = dyn_cast_if_present<mt::DivOp>(op); quotient && isFactor(quotient.getRhs(), sum))
      sum.operand = quotient.getLhs();
    else if (auto product = dyn_cast_if_present<mt::MulOp>(op); product && isFactor(product.getRhs(), sum))
      sum.operand = product.getLhs();
    else if (product && isFactor(product.getLhs(), sum))
      sum.operand = product.getRhs();
    else if (auto difference = dyn_cast_if_present<mt::SubOp>(op)) {
      BatchSum inner{difference.getLhs(), sum.dims};
      return isFactor(difference.getRhs(), sum) && mt::isSplit(inner.operand.getType()) &&
             meanOf(difference.getRhs()) == inner;
    } else {
      return false;
    }
  }
}

// The value that a reader of zeros is, which may be the zeros: multiples of zeros are zeros, and a sum with them is the
// other value. Null: something else.
Value valueWith(Value zeros, Operation *reader) {
  bool isFirst = reader->getOperand(0) == zeros;
  if (isa<mt::NegOp, mt::MulOp>(reader) || (isa<mt::DivOp>(reader) && isFirst && reader->getOperand(1) != zeros))
    return zeros;
  if (isa<mt::AddOp>(reader) || (isa<mt::SubOp>(reader) && !isFirst))
    return reader->getOperand(isFirst ? 1 : 0);
  return {};
}

void spreadZeros(Value zeros) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *reader : llvm::to_vector(zeros.getUsers())) {
      if (reader->getNumResults() != 1 || reader->use_empty())
        continue;
      Value value = valueWith(zeros, reader), result = reader->getResult(0);
      if (!value || value.getType() != result.getType())
        continue;
      result.replaceAllUsesWith(value);
      changed = true;
    }
  }
}

} // namespace

bool dropCentredSums(mt::ProgramOp program) {
  bool dropped = false;
  for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<mt::ReduceOp>())) {
    std::optional<BatchSum> sum = batchSumOf(op.getResult());
    if (!sum || op.getResult().use_empty() || !mt::isReal(tensorOf(op.getResult()).getElementType()) ||
        !isCentred(*sum))
      continue;
    OpBuilder builder(op);
    auto type = tensorOf(op.getResult());
    Value zeros = mt::ConstantOp::create(
        builder, op.getLoc(), DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(type.getElementType(), 0))));
    op.getResult().replaceAllUsesWith(zeros);
    spreadZeros(zeros);
    dropped = true;
  }
  return dropped;
}

} // namespace mtc
