// SPDX-License-Identifier: Apache-2.0
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Types.h"

using namespace mlir;
using namespace mlir::mt;

namespace {
// Axes of a product: leading axes, equal or missing on the right, then (rows x inner) . (inner x columns).
struct Axes {
  int64_t leading; // number of leading axes of the left operand
  bool batched;    // whether the right operand has them too
  int64_t aRow, aInner, bInner, bColumn;

  Axes(int64_t aRank, int64_t bRank, bool transposeA, bool transposeB)
      : leading(aRank - 2), batched(bRank > 2), aRow(aRank - 2 + transposeA), aInner(aRank - 1 - transposeA),
        bInner(bRank - 2 + transposeB), bColumn(bRank - 1 - transposeB) {}
};
} // namespace

static Axes axesOf(MatmulOp op) {
  return Axes(tensorOf(op.getLhs()).getRank(), tensorOf(op.getRhs()).getRank(), op.getTransposeA(), op.getTransposeB());
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  RankedTensorType a = tensorOf(adaptor.getLhs()), b = tensorOf(adaptor.getRhs());
  if (a.getRank() < 2 || b.getRank() < 2)
    return emitOptionalError(location, "expected operands of rank 2 or more, found ", a, " and ", b);
  if (b.getRank() != 2 && b.getRank() != a.getRank())
    return emitOptionalError(location, "expected a right operand of rank 2 or ", a.getRank(), ", found rank ",
                             b.getRank());
  Axes axes(a.getRank(), b.getRank(), adaptor.getTransposeA(), adaptor.getTransposeB());
  for (int64_t axis = 0; axes.batched && axis < axes.leading; ++axis)
    if (a.getDimSize(axis) != b.getDimSize(axis))
      return emitOptionalError(location, "expected equal sizes on leading axis ", axis, ", found ", a, " and ", b);
  if (a.getDimSize(axes.aInner) != b.getDimSize(axes.bInner))
    return emitOptionalError(
        location, "expected equal contracted sizes, found ",
        ShapedType::isDynamic(a.getDimSize(axes.aInner)) ? "?" : std::to_string(a.getDimSize(axes.aInner)), " in ", a,
        " and ", ShapedType::isDynamic(b.getDimSize(axes.bInner)) ? "?" : std::to_string(b.getDimSize(axes.bInner)),
        " in ", b);
  SmallVector<int64_t> shape(a.getShape().take_front(axes.leading));
  shape.push_back(a.getDimSize(axes.aRow));
  shape.push_back(b.getDimSize(axes.bColumn));
  for (size_t axis = 1; axis < shape.size(); ++axis)
    if (ShapedType::isDynamic(shape[axis]))
      return emitOptionalError(location, "expected the batch axis first in the result, found it on axis ", axis);
  types.push_back(RankedTensorType::get(shape, computedType(a.getElementType())));
  return success();
}

bool MatmulOp::readsBuffers() { return tensorOf(getRhs()).getRank() == 2; }
bool MatmulOp::takesEpilogue() { return true; }

// A multiplication and an addition count two. If the batch axis is contracted, the FLOPs are per sample.
int64_t MatmulOp::getFlops() {
  int64_t inner = tensorOf(getLhs()).getDimSize(axesOf(*this).aInner);
  return 2 * elementsPerRow(getType()) * (ShapedType::isDynamic(inner) ? 1 : inner);
}

// Loops over the result's axes, then over the contracted axis.
SmallVector<utils::IteratorType> MatmulOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> loops(tensorOf(getResult()).getRank(), utils::IteratorType::parallel);
  loops.push_back(utils::IteratorType::reduction);
  return loops;
}
SmallVector<shard::ReductionKind> MatmulOp::getReductionLoopIteratorKinds() { return {shard::ReductionKind::Sum}; }
SmallVector<AffineMap> MatmulOp::getIndexingMaps() {
  int64_t rank = tensorOf(getResult()).getRank();
  Axes axes = axesOf(*this);
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, getContext()); };
  SmallVector<AffineExpr> a(tensorOf(getLhs()).getRank()), b(tensorOf(getRhs()).getRank()), result;
  for (int64_t axis = 0; axis < axes.leading; ++axis) {
    a[axis] = loop(axis);
    if (axes.batched)
      b[axis] = loop(axis);
  }
  a[axes.aRow] = loop(rank - 2);
  a[axes.aInner] = b[axes.bInner] = loop(rank);
  b[axes.bColumn] = loop(rank - 1);
  for (int64_t axis = 0; axis < rank; ++axis)
    result.push_back(loop(axis));
  auto map = [&](ArrayRef<AffineExpr> axes) { return AffineMap::get(rank + 1, 0, axes, getContext()); };
  return {map(a), map(b), map(result)};
}

LogicalResult MatmulOp::interpret(const EvalContext &context, ArrayRef<Tensor> operands,
                                  SmallVectorImpl<Tensor> &results) {
  const Tensor &a = operands[0], &b = operands[1];
  Axes axes = axesOf(*this);
  Tensor result(concreteShape(tensorOf(getResult()), context.rows));
  int64_t m = a.shape[axes.aRow], k = a.shape[axes.aInner], n = b.shape[axes.bColumn];
  int64_t aRowStep = getTransposeA() ? 1 : k, aStep = getTransposeA() ? m : 1;
  int64_t bStep = getTransposeB() ? 1 : n, bColumnStep = getTransposeB() ? k : 1;
  int64_t matrices = m * n == 0 ? 0 : result.size() / (m * n);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    const double *left = a.data.data() + matrix * m * k, *right = b.data.data() + (axes.batched ? matrix * k * n : 0);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < k; ++r)
          sum += left[i * aRowStep + r * aStep] * right[r * bStep + j * bColumnStep];
        result.data[(matrix * m + i) * n + j] = sum;
      }
  }
  results.push_back(std::move(result));
  return success();
}

// C = A B: dA = dC B^T and dB = A^T dC, without a transpose op. If A has leading axes and B has none, dB contracts the
// leading axes as well: their indices are further rows of A.
void MatmulOp::buildGradient(OpBuilder &builder, ValueRange resultGradients, SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0];
  if (!dy) {
    operandGradients.append(2, {});
    return;
  }
  Location location = getLoc();
  bool ta = getTransposeA(), tb = getTransposeB();
  Value a = getLhs(), b = getRhs();
  auto product = [&](Value x, Value y, bool tx, bool ty) {
    return MatmulOp::create(builder, location, x, y, tx, ty).getResult();
  };
  bool shared = tensorOf(a).getRank() > 2 && tensorOf(b).getRank() == 2;
  if (!ta || !shared)
    operandGradients.push_back(ta ? product(b, dy, tb, true) : product(dy, b, false, !tb));
  else
    operandGradients.push_back(product(dy, b, false, !tb));
  if (ta && shared) {
    // dA = (dC B^T)^T, for a transposed A and a B without leading axes.
    SmallVector<int64_t> swap;
    for (int64_t axis = 0; axis < tensorOf(a).getRank(); ++axis)
      swap.push_back(axis);
    std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
    operandGradients.back() = TransposeOp::create(builder, location, operandGradients.back(), swap);
    a = TransposeOp::create(builder, location, a, swap);
    ta = false;
  }
  if (shared) {
    auto flat = [&](Value value) {
      RankedTensorType type = tensorOf(value);
      int64_t last = type.getShape().back(), rows = isSplit(type) ? ShapedType::kDynamic : elementsPerRow(type) / last;
      return ReshapeOp::create(builder, location, type.clone({rows, last}), value).getResult();
    };
    if (isSplit(a.getType())) {
      // Each sample has several rows: their products are summed within the sample, then over the batch.
      Value each = tb ? product(dy, a, true, false) : product(a, dy, true, false);
      if (int64_t rank = tensorOf(each).getRank(); rank > 3)
        each =
            ReduceOp::create(builder, location, Reduction::sum, each, llvm::to_vector(llvm::seq<int64_t>(1, rank - 2)));
      operandGradients.push_back(ReduceOp::create(builder, location, Reduction::sum, each, {0}));
      return;
    }
    a = flat(a);
    dy = flat(dy);
  }
  operandGradients.push_back(tb ? product(dy, a, true, ta) : product(a, dy, !ta, false));
}
