// SPDX-License-Identifier: Apache-2.0
//
// mt-join-sums: a value with several readers, such as a variable that all steps of a loop read, has a gradient that is
// a sum of several terms. Terms of four kinds are joined into one:
//
//   parts of a value     mt.pads with zeros along one axis, three or more without a gap: one concatenation;
//   a matrix             products `transpose_a` of two split values: one product, summed over the batch. Its operands
//                        are the left and the right operands of the terms, stacked as rows in each sample;
//   a vector             sums over the batch: one sum over the stacked values;
//   a table              mt.scatter_adds: one, of the stacked ids and rows
//
// So one sum over the batch, with one all-reduce, replaces many. The rows of a sample are in the order of the parts to
// which they belong, or else in program order. Sums are taken in this order (docs/exactness.md).
//
// Before that, sums that are 0 go (CentredSums.h).
#include "compiler/Passes.h"
#include "compiler/differentiate/CentredSums.h"
#include "compiler/differentiate/Simplify.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Types.h"

using namespace mlir;

namespace mtc {
#define GEN_PASS_DEF_JOINSUMS
#include "compiler/Passes.h.inc"

namespace {

using mt::tensorOf;
constexpr int64_t dynamic = ShapedType::kDynamic;

// Fewer parts are not joined, because a concatenation would only copy values. Two sums over the batch are.
constexpr size_t fewestParts = 3, fewest = 2;

// Bytes for the whole batch of operands with several rows in each sample that are stacked: all of them are in memory at
// once, and copied. Larger ones cost more than the all-reduces that they save.
constexpr int64_t mostStacked = int64_t{64} << 20;

bool isSplitOf(Value value, int64_t rank) { return mt::isSplit(value.getType()) && tensorOf(value).getRank() == rank; }

// Whether the value is a split row of a product, [?, N].
bool isRow(Value value) { return isSplitOf(value, 2); }

mt::ReduceOp asBatchSum(Value value) {
  auto sum = value.getDefiningOp<mt::ReduceOp>();
  bool matches =
      sum && sum->hasOneUse() && sum.getKind() == mt::Reduction::sum && sum.getDims() == ArrayRef<int64_t>{0};
  return matches ? sum : mt::ReduceOp();
}

// A product of one row of each sample, [?, K] and [?, N]; or of several, [?, T, K] and [?, T, N], and its sum.
mt::MatmulOp asProduct(Value value) {
  mt::ReduceOp sum = asBatchSum(value);
  auto product = (sum ? sum.getOperand() : value).getDefiningOp<mt::MatmulOp>();
  int64_t rank = sum ? 3 : 2;
  bool matches = product && product->hasOneUse() && !mt::turnOf(product) && product.getTransposeA() &&
                 !product.getTransposeB() && isSplitOf(product.getLhs(), rank) && isSplitOf(product.getRhs(), rank);
  return matches ? product : mt::MatmulOp();
}

mt::ReduceOp asSum(Value value) {
  mt::ReduceOp sum = asBatchSum(value);
  return sum && isRow(sum.getOperand()) ? sum : mt::ReduceOp();
}

// The gradient of a lookup of a table. The tables of shards of a batch normalization, whose ids are computed from the
// numbers of the samples, stay as they are: each device reads its own rows of them (mt-partition).
mt::ScatterAddOp asRows(Value value) {
  auto rows = value.getDefiningOp<mt::ScatterAddOp>();
  if (!rows || !rows->hasOneUse() || !mt::isSplit(rows.getIds().getType()))
    return {};
  auto number = rows.getIds().getDefiningOp<mt::CastOp>();
  return number && number.getOperand().getDefiningOp<mt::FloorOp>() ? mt::ScatterAddOp() : rows;
}

// The one axis of a sample along which a value is placed among zeros; none for another mt.pad, or another value.
std::optional<int64_t> axisOfPart(Value value) {
  auto pad = value.getDefiningOp<mt::PadOp>();
  if (!pad || !pad->hasOneUse() || !pad.getValue().isZero() ||
      llvm::any_of(pad.getInterior(), [](int64_t interior) { return interior != 0; }))
    return std::nullopt;
  std::optional<int64_t> axis;
  for (size_t i = 0; i < pad.getLow().size(); ++i)
    if (pad.getLow()[i] != 0 || pad.getHigh()[i] != 0) {
      if (axis)
        return std::nullopt;
      axis = i;
    }
  return axis;
}

class Joining {
public:
  explicit Joining(mt::AddOp sum) : sum(sum), builder(sum) {}

  // Joins either parts, or products and sums over the batch. Returns whether it joined any; the sum is then rebuilt
  // from the terms that are left.
  bool run(bool parts) {
    collect(sum.getResult());
    if (terms.size() < fewest)
      return false;
    std::reverse(terms.begin(), terms.end());
    bool joined = parts ? joinParts() : joinProducts();
    if (!parts) {
      joined |= joinSums();
      joined |= joinRows();
    }
    if (!joined)
      return false;
    Value total = terms[0];
    for (Value term : ArrayRef(terms).drop_front())
      total = mt::AddOp::create(builder, sum.getLoc(), total, term);
    sum.replaceAllUsesWith(total);
    return true;
  }

private:
  mt::AddOp sum;
  OpBuilder builder;
  SmallVector<Value> terms; // in the order of the model; the backward pass adds them in reverse order

  // Collects the terms of a sum of values of one type, the last term first.
  void collect(Value value) {
    SmallVector<Value> pending{value};
    while (!pending.empty()) {
      Value next = pending.pop_back_val();
      auto add = next.getDefiningOp<mt::AddOp>();
      bool inner = add && (next == value || next.hasOneUse()) && add.getLhs().getType() == next.getType() &&
                   add.getRhs().getType() == next.getType();
      if (!inner)
        terms.push_back(next);
      else
        pending.append({add.getRhs(), add.getLhs()});
    }
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return tensorOf(value).getShape() == shape
               ? value
               : mt::ReshapeOp::create(builder, sum.getLoc(), tensorOf(value).clone(shape), value).getResult();
  }
  bool mayStack(ArrayRef<Value> values) {
    int64_t elements = 0;
    for (Value value : values)
      elements += mt::elementsPerRow(tensorOf(value));
    return mt::Compilation(sum).getBatch() * elements * static_cast<int64_t>(sizeof(float)) <= mostStacked;
  }
  // Stacks [?, N] and [?, T, N] to rows of each sample.
  Value stack(ArrayRef<Value> rows) {
    auto size = static_cast<int64_t>(rows.size());
    if (llvm::all_of(rows, isRow))
      return reshape(mt::ConcatOp::create(builder, sum.getLoc(), rows, 1),
                     {dynamic, size, tensorOf(rows[0]).getDimSize(1)});
    SmallVector<Value> each = llvm::map_to_vector(
        rows, [&](Value row) { return isRow(row) ? reshape(row, {dynamic, 1, tensorOf(row).getDimSize(1)}) : row; });
    return mt::ConcatOp::create(builder, sum.getLoc(), each, 1);
  }
  // Stacks ids [?, I...] to [?, T], or with `inner` dimensions the rows [?, I..., D...] to [?, T, D...].
  Value stackRows(ArrayRef<Value> values, ArrayRef<int64_t> inner) {
    SmallVector<Value> each = llvm::map_to_vector(values, [&](Value value) {
      ArrayRef<int64_t> lookups = tensorOf(value).getShape().drop_front().drop_back(inner.size());
      SmallVector<int64_t> shape{dynamic, llvm::product_of(lookups)};
      shape.append(inner.begin(), inner.end());
      return reshape(value, shape);
    });
    return mt::ConcatOp::create(builder, sum.getLoc(), each, 1);
  }

  // The order of the values in the first concatenation of exactly these values; if there is none, the order of the
  // list.
  SmallVector<size_t> knownOrder(ArrayRef<Value> values) {
    SmallVector<size_t> known = llvm::to_vector(llvm::seq<size_t>(0, values.size()));
    DenseMap<Value, size_t> positions;
    for (auto [i, value] : llvm::enumerate(values))
      positions[value] = i;
    mt::ConcatOp first;
    for (Operation *user : values[0].getUsers()) {
      auto concat = dyn_cast<mt::ConcatOp>(user);
      bool same = concat && positions.size() == values.size() && concat.getOperands().size() == values.size() &&
                  llvm::all_of(concat.getOperands(), [&](Value operand) { return positions.contains(operand); });
      if (same && (!first || concat->isBeforeInBlock(first)))
        first = concat;
    }
    if (first)
      known = llvm::map_to_vector(first.getOperands(), [&](Value operand) { return positions.lookup(operand); });
    return known;
  }
  static SmallVector<Value> ordered(ArrayRef<Value> values, ArrayRef<size_t> order) {
    return llvm::map_to_vector(order, [&](size_t position) { return values[position]; });
  }

  // Each replaces several terms by one term.
  bool joinParts();
  static int64_t startOf(mt::PadOp part, int64_t axis);
  static int64_t endOf(mt::PadOp part, int64_t axis);
  Value joinRun(ArrayRef<mt::PadOp> run, int64_t axis);
  bool joinProducts();
  bool joinSums();
  bool joinRows();
  bool replace(ArrayRef<Value> left, Value joined) {
    terms.assign(left.begin(), left.end());
    terms.push_back(joined);
    return true;
  }
};

bool Joining::joinParts() {
  SmallVector<Value> left;
  SmallVector<mt::PadOp> parts;
  std::optional<int64_t> axis; // of the first part
  for (Value term : terms)
    if (std::optional<int64_t> found = axisOfPart(term); found && *found == axis.value_or(*found)) {
      axis = found;
      parts.push_back(term.getDefiningOp<mt::PadOp>());
    } else {
      left.push_back(term);
    }
  if (parts.size() < fewestParts)
    return false;
  llvm::stable_sort(parts, [&](mt::PadOp a, mt::PadOp b) { return startOf(a, *axis) < startOf(b, *axis); });
  // Joins each run of parts between which there is no gap.
  bool joined = false;
  for (ArrayRef<mt::PadOp> rest = parts; !rest.empty();) {
    size_t size = 1;
    while (size < rest.size() && startOf(rest[size], *axis) == endOf(rest[size - 1], *axis))
      ++size;
    ArrayRef<mt::PadOp> run = rest.take_front(size);
    rest = rest.drop_front(size);
    if (size < fewestParts) {
      for (mt::PadOp part : run)
        left.push_back(part);
      continue;
    }
    left.push_back(joinRun(run, *axis));
    joined = true;
  }
  if (joined)
    terms = std::move(left);
  return joined;
}

// Where the part starts and ends along an axis of a sample.
int64_t Joining::startOf(mt::PadOp part, int64_t axis) { return part.getLow()[axis]; }
int64_t Joining::endOf(mt::PadOp part, int64_t axis) {
  return tensorOf(part.getResult()).getDimSize(axis + mt::isSplit(part.getType())) - part.getHigh()[axis];
}

Value Joining::joinRun(ArrayRef<mt::PadOp> run, int64_t axis) {
  mt::PadOp first = run.front(), last = run.back();
  SmallVector<Value> values = llvm::map_to_vector(run, [](mt::PadOp part) -> Value { return part.getOperand(); });
  Value whole = mt::ConcatOp::create(builder, sum.getLoc(), values, axis + mt::isSplit(sum.getType()));
  if (first.getLow()[axis] == 0 && last.getHigh()[axis] == 0)
    return whole;
  SmallVector<int64_t> low(first.getLow()), high(last.getHigh());
  return mt::PadOp::create(builder, sum.getLoc(), whole, low, high, ArrayRef<int64_t>{}, APFloat(0.0f));
}

bool Joining::joinProducts() {
  SmallVector<Value> left, several;
  SmallVector<Value> lhs, rhs;
  StringAttr precision;
  for (Value term : terms)
    if (mt::MatmulOp product = asProduct(term); product && !isRow(product.getLhs()))
      several.append({product.getLhs(), product.getRhs()});
  bool rowsOnly = !mayStack(several);
  for (Value term : terms) {
    mt::MatmulOp product = asProduct(term);
    if (!product || (rowsOnly && !isRow(product.getLhs())) || (!lhs.empty() && mt::precisionOf(product) != precision)) {
      left.push_back(term);
      continue;
    }
    precision = mt::precisionOf(product);
    lhs.push_back(product.getLhs());
    rhs.push_back(product.getRhs());
  }
  if (lhs.size() < fewest)
    return false;
  SmallVector<size_t> order = knownOrder(rhs);
  auto each = mt::MatmulOp::create(builder, sum.getLoc(), stack(ordered(lhs, order)), stack(ordered(rhs, order)),
                                   /*transpose_a=*/true, /*transpose_b=*/false);
  mt::setPrecision(each, precision);
  return replace(left, mt::ReduceOp::create(builder, sum.getLoc(), mt::Reduction::sum, each, ArrayRef<int64_t>{0}));
}

bool Joining::joinSums() {
  SmallVector<Value> left;
  SmallVector<Value> rows;
  for (Value term : terms)
    if (mt::ReduceOp reduce = asSum(term))
      rows.push_back(reduce.getOperand());
    else
      left.push_back(term);
  if (rows.size() < fewest)
    return false;
  Value stacked = stack(ordered(rows, knownOrder(rows)));
  Value each = mt::ReduceOp::create(builder, sum.getLoc(), mt::Reduction::sum, stacked, ArrayRef<int64_t>{1});
  return replace(left, mt::ReduceOp::create(builder, sum.getLoc(), mt::Reduction::sum, each, ArrayRef<int64_t>{0}));
}

bool Joining::joinRows() {
  SmallVector<Value> left, ids, rows;
  for (Value term : terms) {
    mt::ScatterAddOp lookup = asRows(term);
    if (!lookup || (!ids.empty() && tensorOf(ids[0]).getElementType() != tensorOf(lookup.getIds()).getElementType())) {
      left.push_back(term);
      continue;
    }
    ids.push_back(lookup.getIds());
    rows.push_back(lookup.getUpdates());
  }
  if (ids.size() < fewest || !mayStack(rows))
    return false;
  auto table = tensorOf(sum.getResult());
  return replace(left, mt::ScatterAddOp::create(builder, sum.getLoc(), table, stackRows(ids, {}),
                                                stackRows(rows, table.getShape().drop_front())));
}

struct JoinSums : impl::JoinSumsBase<JoinSums> {
  using JoinSumsBase::JoinSumsBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      if (dropCentredSums(program))
        simplify(program);
      // Parts come first: they create the concatenations that determine the order of the products.
      for (bool parts : {true, false}) {
        SmallVector<mt::AddOp> sums;
        for (auto add : program.getBody().front().getOps<mt::AddOp>())
          if (!isInner(add))
            sums.push_back(add);
        bool joined = false;
        for (mt::AddOp add : sums)
          joined |= Joining(add).run(parts);
        if (joined)
          simplify(program);
      }
    }
  }

  // Whether the addition is part of a longer sum.
  static bool isInner(mt::AddOp add) {
    if (!add->hasOneUse())
      return false;
    auto user = dyn_cast<mt::AddOp>(*add->user_begin());
    return user && user.getType() == add.getType() && user.getLhs().getType() == add.getType() &&
           user.getRhs().getType() == add.getType();
  }
};

} // namespace
} // namespace mtc
