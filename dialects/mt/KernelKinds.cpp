// SPDX-License-Identifier: Apache-2.0
//
// The contract of each kernel kind, in words and as a verifier, and the ops that start a kernel of the kind. At the
// end, the table of all kinds.
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Attention.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Types.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::mt {

static OperandRange yieldsOf(Block &body) { return body.getTerminator()->getOperands(); }
static bool areArguments(ValueRange values) { return llvm::all_of(values, llvm::IsaPred<BlockArgument>); }

// The op of type Op whose result is the body's only result; null for any other body.
template <typename Op> static Op onlyResult(Block &body) {
  return yieldsOf(body).size() == 1 ? yieldsOf(body).front().getDefiningOp<Op>() : Op();
}

bool isPointwise(Operation &op) {
  return isa<ElementwiseOpInterface, ConstantOp, BatchSizeOp>(op) || op.hasTrait<Repeats>();
}

Operation *productOf(Block &body) {
  for (Operation &op : body)
    if (auto product = dyn_cast<KernelOpInterface>(op); product && product.takesEpilogue())
      return &op;
  return nullptr;
}

// Number of products that a value adds up, if only additions read them; 0 for any other value.
static size_t summedProducts(Value value) {
  Operation *op = value.getDefiningOp();
  auto product = dyn_cast_or_null<KernelOpInterface>(op);
  if (product && product.takesEpilogue())
    return 1;
  size_t sum = 0;
  if (!isa_and_nonnull<AddOp>(op))
    return 0;
  for (Value operand : op->getOperands()) {
    size_t here = operand.hasOneUse() && operand.getType() == value.getType() ? summedProducts(operand) : 0;
    if (!here)
      return 0;
    sum += here;
  }
  return sum;
}

SummedProducts summedProductsOf(Block &body) {
  SummedProducts result;
  for (Operation &op : body)
    if (auto product = dyn_cast<KernelOpInterface>(op); product && product.takesEpilogue())
      result.products.push_back(&op);
  if (result.products.empty())
    return result;
  Value sum = result.products.front()->getResult(0);
  while (summedProducts(sum) < result.products.size() && sum.hasOneUse() && isa<AddOp>(*sum.user_begin()) &&
         summedProducts((*sum.user_begin())->getResult(0)))
    sum = (*sum.user_begin())->getResult(0);
  if (summedProducts(sum) == result.products.size())
    result.sum = sum;
  return result;
}

// ---- rows: any ops on samples; operands split or replicated, results split; each row is independent of the others

static LogicalResult verifyRows(Block &body, KernelError error) {
  for (Value yield : yieldsOf(body))
    if (!isSplit(yield.getType()))
      return error() << "expected results with a batch axis in a kernel of kind rows, found " << yield.getType();
  for (Operation &op : body.without_terminator())
    if (!isSplit(op.getResult(0).getType()) && llvm::any_of(op.getOperandTypes(), isSplit))
      return error() << "expected rows that are independent in a kernel of kind rows, found '" << op.getName()
                     << "' of several";
  return success();
}

// ---- single: any ops, in one tile; no split values

static LogicalResult verifySingle(Block &body, KernelError error) {
  auto verify = [&](Value value) -> LogicalResult {
    if (isSplit(value.getType()))
      return error() << "expected no batch axis in a kernel of kind single, found " << value.getType();
    return success();
  };
  for (Value argument : body.getArguments())
    if (failed(verify(argument)))
      return failure();
  for (Operation &op : body.without_terminator())
    for (Value result : op.getResults())
      if (failed(verify(result)))
        return failure();
  return success();
}

// ---- elementwise: operands of rank 0 or all of one replicated shape, results of that shape; element-wise ops only

// Random numbers for the initial value of a variable are an elementwise kernel. Other random numbers are drawn inside
// of rows and single kernels.
std::optional<KernelKind> RandomUniformOp::getKernelKind() {
  bool alone = !getStep() && !isSplit(getType()) && tensorOf(getResult()).getRank() > 0;
  return alone ? std::optional(KernelKind::elementwise) : std::nullopt;
}
bool RandomUniformOp::readsBuffers() { return false; }

static LogicalResult verifyElementwise(Block &body, KernelError error) {
  if (yieldsOf(body).empty())
    return error() << "expected a result in a kernel of kind elementwise, found none";
  RankedTensorType shape = tensorOf(yieldsOf(body).front());
  auto fits = [&](Value value) { return tensorOf(value).getShape() == shape.getShape(); };
  for (Value yield : yieldsOf(body))
    if (!fits(yield) || isSplit(yield.getType()))
      return error() << "expected results of one shape without a batch axis in a kernel of kind elementwise, found "
                     << yield.getType();
  for (Value argument : body.getArguments())
    if (!fits(argument) && tensorOf(argument).getRank() != 0)
      return error() << "expected operands of rank 0 or of the results' shape in a kernel of kind elementwise, found "
                     << argument.getType();
  for (Operation &op : body.without_terminator()) {
    auto constant = dyn_cast<ConstantOp>(op);
    bool varies = constant && !cast<DenseElementsAttr>(constant.getValue()).isSplat();
    auto random = dyn_cast<RandomUniformOp>(op);
    if (varies || !((random && !random.getStep()) || isPointwise(op)))
      return error() << "expected element-wise operations only in a kernel of kind elementwise, found '" << op.getName()
                     << "'";
  }
  return success();
}

// One op for which `isProduct` holds, with two operands, or the sum of several (summedProductsOf), followed by
// element-wise ops on its result.
static LogicalResult verifyProduct(Block &body, KernelError error, StringRef expected,
                                   llvm::function_ref<bool(Operation &)> isProduct) {
  auto products = llvm::make_filter_range(body.without_terminator(), [&](Operation &op) { return isProduct(op); });
  SummedProducts all = summedProductsOf(body);
  if (products.empty() || !all.sum || static_cast<size_t>(llvm::range_size(products)) != all.products.size())
    return error() << "expected one " << expected;
  Operation &product = *products.begin();
  auto matmul = dyn_cast<MatmulOp>(product);
  SliceOp slice = matmul ? slicedSide(matmul) : SliceOp(); // a slice of a matrix is read in place
  if (!areArguments(product.getOperand(0)) || !areArguments(slice ? slice.getOperand() : product.getOperand(1)))
    return error() << "expected one " << expected;
  for (Operation *other : ArrayRef(all.products).drop_front())
    if (slice || !areArguments(other->getOperands()))
      return error() << "expected one " << expected;
  ArrayRef<int64_t> shape = tensorOf(product.getResult(0)).getShape();
  auto fits = [&](Value value) {
    ArrayRef<int64_t> other = tensorOf(value).getShape();
    bool ofLines = other.size() == shape.size() && other.back() == 1 && other.drop_back() == shape.drop_back();
    bool ofImages = isSplit(value.getType()) && other.size() == 4 && shape.size() == 4 && other[1] == 1 &&
                    other[2] == 1 && other.back() == shape.back();
    return other == shape || ofLines || ofImages ||
           (!isSplit(value.getType()) && elementsPerRow(value.getType()) == 1) ||
           (other.size() == 1 && other.back() == shape.back());
  };
  for (Operation &op : body.without_terminator()) {
    if (llvm::is_contained(all.products, &op) || &op == slice)
      continue;
    if (!isPointwise(op))
      return error() << "expected element-wise operations only after a kernel's product, found '" << op.getName()
                     << "'";
    if (isa<ElementwiseOpInterface>(op) && !llvm::all_of(op.getOperands(), fits))
      return error() << "expected operands of a result's shape, of its last axis, of one element per line or of "
                        "one element after a kernel's product, found another of '"
                     << op.getName() << "'";
  }
  for (Value yield : yieldsOf(body))
    if (tensorOf(yield).getShape() != shape)
      return error() << "expected results of the product's shape, found " << yield.getType();
  return success();
}

// ---- matmul: one mt.matmul (for GPUs alone: a sum of several) without transpose_a, (rows x K) . (K x N) or (N x K)^T,
// then element-wise ops on rows x N; results rows x N. The rows are split or static, of one or several axes. The right
// side is a matrix or an mt.slice of a matrix, which the kernel reads in place (Blocks.h)

// A product that contracts the batch axis has kind matmul_wgrad.
std::optional<KernelKind> MatmulOp::getKernelKind() {
  auto isMatrix = [](Value value) { return tensorOf(value).getRank() == 2; };
  if (!isMatrix(getRhs()) || (getTransposeA() && !isMatrix(getLhs())))
    return std::nullopt;
  bool overBatch = getTransposeA() && (isSplit(getLhs().getType()) || isSplit(getRhs().getType()));
  return overBatch ? KernelKind::matmul_wgrad : KernelKind::matmul;
}

static LogicalResult verifyMatmul(Block &body, KernelError error) {
  return verifyProduct(body, error, "mt.matmul of two operands, without transpose_a, in a kernel of kind matmul",
                       [](Operation &op) {
                         auto matmul = dyn_cast<MatmulOp>(op);
                         return matmul && !matmul.getTransposeA() && tensorOf(matmul.getRhs()).getRank() == 2;
                       });
}

// ---- conv: one mt.conv2d or mt.conv2d_input_gradient (for GPUs alone: a sum of several) with two operands, then
// element-wise ops on its result. Their other operands have the type of the result, [F], for GPUs alone [? x 1 x 1 x
// F], or one element

std::optional<KernelKind> Conv2DOp::getKernelKind() { return KernelKind::conv; }
std::optional<KernelKind> Conv2DInputGradientOp::getKernelKind() { return KernelKind::conv; }

static LogicalResult verifyConv(Block &body, KernelError error) {
  return verifyProduct(body, error, "convolution of two operands in a kernel of kind conv", [](Operation &op) {
    auto own = dyn_cast<KernelOpInterface>(op);
    return own && own.getKernelKind() == KernelKind::conv;
  });
}

// ---- matmul_wgrad: one mt.matmul with transpose_a, (? x M)^T . (? x N), or (? x T x M)^T . (? x T x N) and sums over
// T and ?. Each shard is summed in order, then the shards in tree order. A side may be an mt.slice of the first
// elements of each row. By an mt.concat with slices of the rest, the kernel may write the product over a part of an
// operand; the result is then in the operand's buffer (Blocks.h)

Value holderOf(Value side) {
  auto slice = side.getDefiningOp<SliceOp>();
  if (!slice || !slice.getStrides().empty() || !isSplit(slice.getType()) ||
      !llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; }))
    return side;
  Value whole = slice.getOperand();
  ArrayRef<int64_t> all = tensorOf(whole).getShape(), shape = tensorOf(side).getShape();
  return all.drop_back() == shape.drop_back() ? whole : side;
}

BatchProduct batchProductOf(Value result) {
  std::optional<PlacedPart> placed = placedPartOf(result);
  int64_t stride = tensorOf(result).getShape().back();
  Value sum = placed ? placed->part : result;
  while (auto reduce = sum.getDefiningOp<ReduceOp>())
    sum = reduce.getOperand();
  return {sum.getDefiningOp<MatmulOp>(), placed ? placed->from * (placed->axis == 0 ? stride : 1) : 0, stride};
}

static LogicalResult verifyMatmulWgrad(Block &body, KernelError error) {
  Value sum = yieldsOf(body).size() == 1 ? yieldsOf(body).front() : Value();
  if (std::optional<PlacedPart> placed = sum ? placedPartOf(sum) : std::nullopt; placed && areArguments(placed->whole))
    sum = placed->part;
  while (auto reduce = sum ? sum.getDefiningOp<ReduceOp>() : ReduceOp())
    sum = reduce.getKind() == Reduction::sum ? reduce.getOperand() : Value();
  auto product = sum ? sum.getDefiningOp<MatmulOp>() : MatmulOp();
  if (!product || !product.getTransposeA() || product.getTransposeB() ||
      !areArguments({holderOf(product.getLhs()), holderOf(product.getRhs())}))
    return error() << "expected one mt.matmul transpose_a of two operands in a kernel of kind matmul_wgrad";
  return success();
}

// ---- reduce: only mt.reduce sum over dims [0], of split operands or of element-wise ops on values that have as many
// elements per row as the sum, or one; shards are summed in order, then in tree order

std::optional<KernelKind> ReduceOp::getKernelKind() {
  bool overBatch = isSplit(getOperand().getType()) && !isSplit(getType());
  return overBatch ? std::optional(KernelKind::reduce) : std::nullopt;
}

// Whether a value is an operand, or its elements are computed from operands that have `count` elements per row, or one.
static bool isSummed(Value value, int64_t count) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<ConstantOp>(op))
    return tensorOf(value).getRank() == 0;
  bool fits = elementsPerRow(value.getType()) == count || tensorOf(value).getRank() == 0;
  return fits && (!op || (isa<ElementwiseOpInterface>(op) &&
                          llvm::all_of(op->getOperands(), [&](Value operand) { return isSummed(operand, count); })));
}

static LogicalResult verifyReduce(Block &body, KernelError error) {
  for (Value yield : yieldsOf(body)) {
    auto reduce = yield.getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getKind() != Reduction::sum || !isSplit(reduce.getOperand().getType()) ||
        reduce.getDims() != ArrayRef<int64_t>{0} || !isSummed(reduce.getOperand(), elementsPerRow(yield.getType())))
      return error() << "expected sums over the rows of operands, or of elements computed from them, only in a kernel "
                        "of kind reduce";
  }
  return success();
}

// ---- transpose: one mt.transpose by [1, 0] of a replicated matrix

std::optional<KernelKind> TransposeOp::getKernelKind() {
  bool isMatrix = tensorOf(getOperand()).getRank() == 2 && !isSplit(getOperand().getType());
  return isMatrix ? std::optional(KernelKind::transpose) : std::nullopt;
}

static LogicalResult verifyTranspose(Block &body, KernelError error) {
  auto transpose = onlyResult<TransposeOp>(body);
  if (!transpose || !areArguments(transpose.getOperand()) || !transpose.getKernelKind() ||
      transpose.getPermutation() != ArrayRef<int64_t>{1, 0})
    return error() << "expected one mt.transpose by [1, 0] of a replicated matrix in a kernel of kind transpose";
  return success();
}

// ---- conv_wgrad: one mt.conv2d_kernel_gradient with two operands, summed over the batch: each shard in order, then
// the shards in tree order; no epilogue

std::optional<KernelKind> Conv2DKernelGradientOp::getKernelKind() {
  return isSplit(getType()) ? std::nullopt : std::optional(KernelKind::conv_wgrad);
}

static LogicalResult verifyConvWgrad(Block &body, KernelError error) {
  auto gradient = onlyResult<Conv2DKernelGradientOp>(body);
  if (!gradient || !areArguments(gradient->getOperands()))
    return error() << "expected one mt.conv2d_kernel_gradient of two operands in a kernel of kind conv_wgrad";
  return success();
}

// ---- scatter_add: one mt.scatter_add of split operands; the shards are added in tree order; no epilogue

std::optional<KernelKind> ScatterAddOp::getKernelKind() {
  return isSplit(getIds().getType()) ? std::optional(KernelKind::scatter_add) : std::nullopt;
}

static LogicalResult verifyScatterAdd(Block &body, KernelError error) {
  auto scatter = onlyResult<ScatterAddOp>(body);
  if (!scatter || !areArguments(scatter->getOperands()) || !scatter.getKernelKind())
    return error() << "expected one mt.scatter_add of two split operands in a kernel of kind scatter_add";
  return success();
}

// The ops of one attention, each of a different type or operand; their operands are arguments, and their results are
// the kernel's results.
static LogicalResult verifyAttentionOps(Block &body, KernelError error, StringRef expected,
                                        llvm::function_ref<int64_t(Operation &)> numberOf) {
  SmallVector<Operation *> ops;
  SmallVector<int64_t> numbers;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(&op);
    numbers.push_back(numberOf(op));
  }
  bool holds = !ops.empty() && llvm::all_of(numbers, [](int64_t number) { return number >= 0; });
  for (Operation *op : ops)
    holds = holds && areArguments(op->getOperands()) && isSplit(op->getResult(0).getType()) &&
            isSameAttention(ops.front(), op) && llvm::count(numbers, numberOf(*op)) == 1;
  for (Value yield : yieldsOf(body))
    holds = holds && !isa<BlockArgument>(yield);
  if (!holds)
    return error() << "expected " << expected << " of the same split operands";
  return success();
}

// ---- attention: one mt.attention, one mt.attention_log_sums, or both with the same queries, keys and attributes;
// split

std::optional<KernelKind> AttentionOp::getKernelKind() { return KernelKind::attention; }
std::optional<KernelKind> AttentionLogSumsOp::getKernelKind() { return KernelKind::attention; }

static LogicalResult verifyAttention(Block &body, KernelError error) {
  return verifyAttentionOps(body, error,
                            "one mt.attention, one mt.attention_log_sums or both in a kernel of kind "
                            "attention,",
                            [](Operation &op) -> int64_t {
                              auto attention = dyn_cast<AttentionOp>(op);
                              return attention ? 0 : isa<AttentionLogSumsOp>(op) ? 1 : -1;
                            });
}

// ---- attention_gradient: one or several mt.attention_gradient with the same operands and attributes; split

std::optional<KernelKind> AttentionGradientOp::getKernelKind() { return KernelKind::attention_gradient; }

static LogicalResult verifyAttentionGradient(Block &body, KernelError error) {
  return verifyAttentionOps(body, error, "gradients of one mt.attention in a kernel of kind attention_gradient,",
                            [](Operation &op) -> int64_t {
                              auto gradient = dyn_cast<AttentionGradientOp>(op);
                              return gradient ? static_cast<int64_t>(gradient.getOf()) : -1;
                            });
}

// One row per kind, in the order of the enumerators.
static constexpr KernelKindInfo kinds[] = {
    {KernelKind::rows, verifyRows, InPlace::lastReader, /*runsAgain=*/true, /*isProduct=*/false, /*isGradient=*/false},
    {KernelKind::single, verifySingle, InPlace::never, false, false, false},
    {KernelKind::elementwise, verifyElementwise, InPlace::always, false, false, false},
    {KernelKind::matmul, verifyMatmul, InPlace::epilogue, true, true, false},
    {KernelKind::matmul_wgrad, verifyMatmulWgrad, InPlace::part, false, true, true},
    {KernelKind::reduce, verifyReduce, InPlace::never, false, false, false},
    {KernelKind::transpose, verifyTranspose, InPlace::never, false, false, false},
    {KernelKind::conv, verifyConv, InPlace::epilogue, true, true, false},
    {KernelKind::conv_wgrad, verifyConvWgrad, InPlace::never, false, true, true},
    {KernelKind::scatter_add, verifyScatterAdd, InPlace::never, false, false, true},
    {KernelKind::attention, verifyAttention, InPlace::never, true, false, false},
    {KernelKind::attention_gradient, verifyAttentionGradient, InPlace::never, true, false, false},
};
static_assert(std::size(kinds) == getMaxEnumValForKernelKind() + 1);
static_assert([] {
  for (size_t i = 0; i < std::size(kinds); ++i)
    if (kinds[i].kind != static_cast<KernelKind>(i))
      return false;
  return true;
}());

const KernelKindInfo &infoOf(KernelKind kind) { return kinds[static_cast<size_t>(kind)]; }

FailureOr<SmallVector<Operation *>> elementReaders(Value operand, Operation *except) {
  ArrayRef<int64_t> shape = tensorOf(operand).getShape();
  llvm::SmallSetVector<Operation *, 16> readers;
  SmallVector<Value> values{operand};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      bool pointwise = isa<ElementwiseOpInterface>(user) && tensorOf(user->getResult(0)).getShape() == shape;
      if (!pointwise && !isa<ReduceOp>(user))
        return failure();
      if (readers.insert(user) && pointwise && user != except)
        values.push_back(user->getResult(0));
    }
  return llvm::to_vector(readers);
}

// Depth of each op: the largest number of non-element-wise ops on a path to it. Generated code finishes a
// non-element-wise op before it starts the ops that read its result.
static llvm::DenseMap<Operation *, unsigned> depthsOf(Block &body) {
  llvm::DenseMap<Operation *, unsigned> depths;
  for (Operation &op : body) {
    unsigned depth = 0;
    for (Value operand : op.getOperands())
      if (Operation *from = operand.getDefiningOp())
        depth = std::max(depth, depths.lookup(from) + !isPointwise(*from));
    depths[&op] = depth;
  }
  return depths;
}

// Whether an element-wise op computes `result`, and no reader of the operand has a larger depth than that op.
static bool isLastReader(Block &body, Value operand, Value result) {
  Operation *last = result.getDefiningOp();
  if (!last || !isa<ElementwiseOpInterface>(last))
    return false;
  FailureOr<SmallVector<Operation *>> readers = elementReaders(operand, last);
  if (failed(readers))
    return false;
  llvm::DenseMap<Operation *, unsigned> depths = depthsOf(body);
  return llvm::all_of(*readers, [&](Operation *reader) { return depths.lookup(reader) <= depths.lookup(last); });
}

bool mayOverwrite(KernelKind kind, Block &body, unsigned argument, unsigned result) {
  Value operand = body.getArgument(argument);
  if (operand.getType() != yieldsOf(body)[result].getType())
    return false;
  switch (infoOf(kind).inPlace) {
  case InPlace::never:
    return false;
  case InPlace::always:
    return true;
  case InPlace::part: {
    std::optional<PlacedPart> placed = placedPartOf(yieldsOf(body)[result]);
    return placed && placed->whole == operand;
  }
  case InPlace::epilogue:
    return yieldsOf(body).size() == 1 && llvm::all_of(operand.getUsers(), llvm::IsaPred<ElementwiseOpInterface>);
  case InPlace::lastReader:
    return isLastReader(body, operand, yieldsOf(body)[result]);
  }
  llvm_unreachable("all rules are listed");
}

} // namespace mlir::mt
