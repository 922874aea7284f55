// SPDX-License-Identifier: Apache-2.0
//
// mt-block-logits: computes logits of which only blocks are read block by block, and rewrites the ops that read the
// gradient of the logits, which is a concatenation of blocks:
//
//   a block of a product (and a bias)          -> the product with a part of the matrix (and a part of the bias)
//   gradient x matrix^T                        -> a sum of products, in the order of turns
//   input^T x gradient, sums of the gradient   -> a concatenation of products, or of sums
//   the first elements of these                -> a smaller last product or sum (for padded classes)
//
// Every op that reads a block gets the turn of the block.
#include "compiler/Passes.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_BLOCKLOGITS
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;

// The product with the same attributes and other operands.
Value productLike(OpBuilder &builder, mt::MatmulOp product, Value left, Value right) {
  auto part =
      mt::MatmulOp::create(builder, product.getLoc(), left, right, product.getTransposeA(), product.getTransposeB());
  mt::setPrecision(part, mt::precisionOf(product));
  return part;
}

// Slice of `size` elements from index `from` on along an axis; the value has no batch axis.
Value partOf(OpBuilder &builder, Value whole, int64_t axis, int64_t from, int64_t size) {
  SmallVector<int64_t> starts(tensorOf(whole).getRank(), 0), sizes(tensorOf(whole).getShape());
  starts[axis] = from;
  sizes[axis] = size;
  return mt::SliceOp::create(builder, whole.getLoc(), whole, starts, sizes, ArrayRef<int64_t>{});
}

// Slice of the first `size` elements along an axis. For a product or a sum, slices the operand instead, which the
// kernel reads in place.
Value cropped(OpBuilder &builder, Value whole, int64_t axis, int64_t size) {
  if (auto sum = whole.getDefiningOp<mt::ReduceOp>()) {
    for (int64_t dim : sum.getDims())
      axis += dim <= axis;
    Value part = cropped(builder, sum.getOperand(), axis, size);
    return mt::ReduceOp::create(builder, sum.getLoc(), sum.getKind(), part, sum.getDims());
  }
  if (auto product = whole.getDefiningOp<mt::MatmulOp>();
      product && product.getTransposeA() && !product.getTransposeB()) {
    bool left = axis + 1 < tensorOf(whole).getRank();
    Value side = left ? product.getLhs() : product.getRhs();
    Value part = cropped(builder, side, tensorOf(side).getRank() - 1, size);
    return productLike(builder, product, left ? part : product.getLhs(), left ? product.getRhs() : part);
  }
  SmallVector<int64_t> sizes(tensorOf(whole).getShape());
  sizes[axis] = size;
  ArrayRef<int64_t> named = ArrayRef(sizes).drop_front(mt::isSplit(whole.getType()) ? 1 : 0);
  SmallVector<int64_t> starts(named.size(), 0);
  return mt::SliceOp::create(builder, whole.getLoc(), whole, starts, named, ArrayRef<int64_t>{});
}

// Values whose concatenation along an axis is one value.
struct Parts {
  SmallVector<Value> values;
  int64_t axis;
};

class Blocking {
public:
  explicit Blocking(mt::ProgramOp program) : body(&program.getBody().front()) {}

  void run() {
    for (auto slice : llvm::make_early_inc_range(body->getOps<mt::SliceOp>()))
      if (mt::turnOf(slice))
        computeBlock(slice);
    SmallVector<mt::ConcatOp> gradients;
    for (auto concat : body->getOps<mt::ConcatOp>())
      if (mt::blocksOf(concat))
        gradients.push_back(concat);
    for (mt::ConcatOp gradient : gradients) {
      form = *mt::blocksOf(gradient);
      pushDown(gradient.getResult(),
               {SmallVector<Value>(gradient.getOperands()), static_cast<int64_t>(gradient.getDim())});
    }
    markTurns();
  }

private:
  Block *body;
  mt::LogitBlocks form{};

  void computeBlock(mt::SliceOp slice);
  void pushDown(Value whole, const Parts &parts);
  std::optional<Parts> productsOf(mt::MatmulOp product, Value whole, const Parts &parts);
  static std::optional<Parts> firstParts(mt::SliceOp slice, const Parts &parts);
  Value sumOfProducts(mt::MatmulOp product, const Parts &parts);
  void markTurns();
};

// Replaces a slice of logits along the classes.
void Blocking::computeBlock(mt::SliceOp slice) {
  OpBuilder builder(slice);
  int64_t from = slice.getStarts().back(), size = slice.getSizes().back();
  auto add = slice.getOperand().getDefiningOp<mt::AddOp>();
  auto productOf = [](Value value) { return value.getDefiningOp<mt::MatmulOp>(); };
  mt::MatmulOp product = !add                      ? productOf(slice.getOperand())
                         : productOf(add.getLhs()) ? productOf(add.getLhs())
                                                   : productOf(add.getRhs());
  if (!product)
    return; // a slice of the targets
  Value matrix = partOf(builder, product.getRhs(), product.getTransposeB() ? 0 : 1, from, size);
  Value result = productLike(builder, product, product.getLhs(), matrix);
  mt::setTurn(result.getDefiningOp(), mt::turnOf(slice));
  if (add) {
    Value bias = add.getLhs() == product.getResult() ? add.getRhs() : add.getLhs();
    result = mt::AddOp::create(builder, add.getLoc(), result, partOf(builder, bias, 0, from, size));
  }
  slice.replaceAllUsesWith(result);
  slice.erase();
}

// For a product of the gradient of the logits and the matrix: sums the products of the parts, from the last block to
// the first: the backward pass computes the products in this order.
Value Blocking::sumOfProducts(mt::MatmulOp product, const Parts &parts) {
  OpBuilder builder(product);
  Value sum;
  int64_t end = tensorOf(product.getLhs()).getShape().back();
  for (Value part : llvm::reverse(parts.values)) {
    int64_t size = tensorOf(part).getShape().back();
    end -= size;
    Value matrix = partOf(builder, product.getRhs(), product.getTransposeB() ? 1 : 0, end, size);
    Value term = productLike(builder, product, part, matrix);
    sum = sum ? mt::AddOp::create(builder, product.getLoc(), sum, term).getResult() : term;
  }
  return sum;
}

// For a product of the transposed gradient and the input, or of the transposed input and the gradient: the products of
// the parts, which are rows or columns of the result.
std::optional<Parts> Blocking::productsOf(mt::MatmulOp product, Value whole, const Parts &parts) {
  bool left = product.getLhs() == whole;
  if (left == (product.getRhs() == whole) || !product.getTransposeA() || product.getTransposeB())
    return std::nullopt;
  OpBuilder builder(product);
  Parts products{{}, tensorOf(product.getResult()).getRank() - (left ? 2 : 1)};
  for (Value part : parts.values)
    products.values.push_back(
        productLike(builder, product, left ? part : product.getLhs(), left ? product.getRhs() : part));
  return products;
}

// For a slice of all parts: the parts of the slice. Its last part may be shorter, if the last part contains padded
// classes.
std::optional<Parts> Blocking::firstParts(mt::SliceOp slice, const Parts &parts) {
  RankedTensorType all = tensorOf(slice.getOperand()), some = tensorOf(slice.getResult());
  int64_t last = tensorOf(parts.values.back()).getDimSize(parts.axis);
  int64_t missing = all.getDimSize(parts.axis) - some.getDimSize(parts.axis);
  bool first = slice.getStrides().empty() && llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; });
  for (int64_t i = 0; i < all.getRank(); ++i)
    first = first && (i == parts.axis || all.getDimSize(i) == some.getDimSize(i));
  if (!first || missing >= last)
    return std::nullopt;
  OpBuilder builder(slice);
  Parts next = parts;
  next.values.back() = cropped(builder, parts.values.back(), parts.axis, last - missing);
  return next;
}

// Changes the readers of `whole` to read its parts.
void Blocking::pushDown(Value whole, const Parts &parts) {
  SmallVector<Operation *> users(whole.user_begin(), whole.user_end());
  llvm::sort(users, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  users.erase(llvm::unique(users), users.end());
  Value joined;
  for (Operation *user : users) {
    OpBuilder builder(user);
    auto reduce = dyn_cast<mt::ReduceOp>(user);
    auto product = dyn_cast<mt::MatmulOp>(user);
    bool lastAxis = parts.axis + 1 == tensorOf(whole).getRank();
    std::optional<Parts> next;
    if (reduce && !llvm::is_contained(reduce.getDims(), parts.axis)) {
      next = Parts{{}, parts.axis - llvm::count_if(reduce.getDims(), [&](int64_t dim) { return dim < parts.axis; })};
      for (Value part : parts.values)
        next->values.push_back(
            mt::ReduceOp::create(builder, reduce.getLoc(), reduce.getKind(), part, reduce.getDims()));
    } else if (product && lastAxis && product.getLhs() == whole && product.getRhs() != whole &&
               !product.getTransposeA() && tensorOf(product.getRhs()).getRank() == 2) {
      product.replaceAllUsesWith(sumOfProducts(product, parts));
      product.erase();
      continue;
    } else if (product && lastAxis) {
      next = productsOf(product, whole, parts);
    } else if (auto slice = dyn_cast<mt::SliceOp>(user)) {
      next = firstParts(slice, parts);
    }
    if (next) {
      pushDown(user->getResult(0), *next);
      if (user->use_empty())
        user->erase();
      continue;
    }
    if (whole.getDefiningOp<mt::ConcatOp>())
      continue; // the concatenation may stay
    if (!joined) {
      auto concat = mt::ConcatOp::create(builder, whole.getLoc(), parts.values, parts.axis);
      mt::setBlocks(concat, form);
      joined = concat;
    }
    user->replaceUsesOfWith(whole, joined);
  }
}

void Blocking::markTurns() {
  llvm::DenseMap<Value, mt::Turn> blocks;
  for (Operation &op : *body) {
    std::optional<mt::Turn> turn = mt::turnOf(&op);
    for (Value operand : op.getOperands())
      if (auto found = blocks.find(operand); found != blocks.end())
        turn = turn ? std::max(*turn, found->second) : found->second;
    if (!turn || op.getNumResults() != 1 || isa<mt::ConcatOp>(op))
      continue;
    mt::setTurn(&op, turn);
    Value result = op.getResult(0);
    bool sums = isa<mt::MatmulOp>(op) &&
                llvm::any_of(op.getOperands(), [&](Value operand) { return blocks.contains(operand); });
    if (mt::isSplit(result.getType()) && !sums &&
        isa<mt::ElementwiseOpInterface, mt::MatmulOp, mt::BroadcastOp, mt::SliceOp>(op))
      blocks[result] = *turn;
  }
}

struct BlockLogits : impl::BlockLogitsBase<BlockLogits> {
  using BlockLogitsBase::BlockLogitsBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      bool any = llvm::any_of(program.getBody().front(), [](Operation &op) { return bool(mt::turnOf(&op)); });
      if (!any)
        continue;
      Blocking(program).run();
      simplify(program);
    }
  }
};

} // namespace
} // namespace mtc
