// SPDX-License-Identifier: Apache-2.0
#include "frontend/logical/Compute.h"

using namespace mlir;

namespace mtc::logical {
namespace {

// A part of one of the two operands.
struct Part {
  int side; // 0: a, 1: b
  int number;
  bool operator==(const Part &) const = default;
};
using PartPair = std::pair<Part, Part>;

int partOn(const PartPair &pair, int side) { return side == 0 ? pair.first.number : pair.second.number; }

// One product: its parts by what becomes of them.
class Product {
public:
  Product(Ops &ops, const Value &a, const Value &b, const AxisPairs &contracted, const AxisPairs &shared)
      : ops(ops), sides{decide(a), decide(b)} {
    SmallVector<int64_t> left, right;
    for (const AxisPairs *pairs : {&contracted, &shared})
      for (auto [i, j] : *pairs)
        left.push_back(i), right.push_back(j);
    checkAxes(left, sides[0].rank());
    checkAxes(right, sides[1].rank());
    for (auto [i, j] : llvm::zip(left, right))
      alignAxis(i, j);
    for (auto [i, j] : shared)
      for (size_t n = 0; n < sides[0].axes[i].size(); ++n)
        placeCommon(part(0, i, n), part(1, j, n));
    for (auto [i, j] : contracted)
      for (size_t n = 0; n < sides[0].axes[i].size(); ++n)
        placeInner(part(0, i, n), part(1, j, n));
    for (auto [i, j] : shared) {
      SmallVector<Part> &axis = logical.emplace_back();
      for (size_t n = 0; n < sides[0].axes[i].size(); ++n)
        axis.push_back(isStored(part(0, i, n)) ? part(0, i, n) : part(1, j, n));
    }
    for (int side : {0, 1})
      addFreeAxes(side, contracted, shared);
  }

  Value build() {
    bool both = llvm::any_of(free[0], [&](Part p) { return isBatch(p); }) &&
                llvm::any_of(free[1], [&](Part p) { return isBatch(p); });
    if (both)
      throw Refused("a product of every sample with every other");
    int first = llvm::any_of(free[1], [&](Part p) { return isBatch(p); }) ? 1 : 0;
    PartPair *summed = llvm::find_if(inner, [&](const PartPair &pair) { return isBatch(pair.first); });
    if (summed == inner.end() ||
        (inner.size() == 1 && common.empty() && isStored(summed->first) && isStored(summed->second)))
      return finish(multiply(first), false);
    // The products of each sample, and then their sum.
    common.insert(common.begin(), *summed);
    inner.erase(llvm::find_if(inner, [&](const PartPair &pair) { return isBatch(pair.first); }));
    sumsSamples = true;
    return finish(multiply(first), true);
  }

private:
  // The product's tensor, and the part of each of its axes.
  using RawProduct = std::pair<mlir::Value, SmallVector<Part>>;

  void alignAxis(int64_t i, int64_t j) {
    SmallVector<Value> both =
        align({Value{sides[0].stored, {sides[0].axes[i]}}, Value{sides[1].stored, {sides[1].axes[j]}}});
    sides[0].axes[i] = both[0].axes[0];
    sides[1].axes[j] = both[1].axes[0];
  }
  void addFreeAxes(int side, const AxisPairs &contracted, const AxisPairs &shared) {
    for (size_t axis = 0; axis < sides[side].rank(); ++axis) {
      auto isAxis = [&](std::pair<int64_t, int64_t> pair) {
        return static_cast<size_t>(side == 0 ? pair.first : pair.second) == axis;
      };
      if (llvm::any_of(contracted, isAxis) || llvm::any_of(shared, isAxis))
        continue;
      SmallVector<Part> &parts = logical.emplace_back();
      for (size_t n = 0; n < sides[side].axes[axis].size(); ++n) {
        parts.push_back(part(side, axis, n));
        if (isStored(parts.back()))
          free[side].push_back(parts.back());
      }
    }
  }
  Part part(int side, size_t axis, size_t index) const {
    return {side, static_cast<int>(firstPart(sides[side], axis) + index)};
  }
  Axis axis(Part part) const { return sides[part.side].flat()[part.number]; }
  bool isStored(Part part) const { return axis(part).isStored(); }
  bool isBatch(Part part) const { return axis(part).size.batch; }
  int64_t size(Part part) const { return isBatch(part) ? 1 : axis(part).size.times; }
  int64_t size(ArrayRef<Part> parts) const {
    int64_t product = 1;
    for (Part part : parts)
      product = multiplySizes(product, size(part));
    return product;
  }
  static int64_t multiplySizes(int64_t a, int64_t b) { return logical::multiply(a, b); }

  void placeCommon(Part a, Part b) {
    if (isStored(a) && isStored(b))
      common.push_back({a, b});
    else if (isStored(a) || isStored(b)) {
      Part stored = isStored(a) ? a : b;
      free[stored.side].push_back(stored);
    }
  }
  void placeInner(Part a, Part b) {
    if (isStored(a) || isStored(b))
      inner.push_back({a, b});
    else
      factors.push_back(axis(a).size);
  }

  // `first`: the side that is the left operand.
  RawProduct multiply(int first) {
    int second = 1 - first;
    llvm::stable_sort(common,
                      [&](const PartPair &a, const PartPair &b) { return isBatch(a.first) > isBatch(b.first); });
    SmallVector<Part> rows(free[first]), columns(free[second]), lead;
    std::optional<Part> batch;
    if (auto *found = llvm::find_if(rows, [&](Part p) { return isBatch(p); }); found != rows.end()) {
      batch = *found;
      rows.erase(found);
      lead.push_back(*batch);
    }
    SmallVector<Part> shared[2], summed[2];
    for (const PartPair &pair : common) {
      lead.push_back(pair.first);
      for (int side : {0, 1})
        shared[side].push_back({side, partOn(pair, side)});
    }
    for (const PartPair &pair : inner)
      for (int side : {0, 1})
        summed[side].push_back({side, partOn(pair, side)});
    int64_t m = size(rows), n = size(columns), k = size(summed[first]);
    if (llvm::any_of(inner, [&](const PartPair &pair) { return isBatch(pair.first); })) { // [?, M]^T [?, N]
      mlir::Value a = operand(first, join({summed[first], rows}), {ShapedType::kDynamic, m});
      mlir::Value b = operand(second, join({summed[second], columns}), {ShapedType::kDynamic, n});
      return unmerged(product(a, b, {m, n}, true, false), join({rows, columns}));
    }
    bool whole = !common.empty(); // both operands have the leading axes
    bool split = batch || llvm::any_of(common, [&](const PartPair &pair) { return isBatch(pair.first); });
    int64_t groups = 1;
    for (const PartPair &pair : common)
      groups = multiplySizes(groups, size(pair.first));
    SmallVector<int64_t> head;
    if (split)
      head.push_back(ShapedType::kDynamic);
    if (whole && (groups > 1 || !split))
      head.push_back(groups);
    bool vector = !whole && split && rows.empty(); // one row a sample
    SmallVector<Part> left = shared[first];
    if (batch)
      left.insert(left.begin(), *batch);
    // If the samples of the product are added afterwards, the product gets the form of the gradient of a product
    // with several rows a sample.
    bool turned = sumsSamples && common.size() == 1 && !inner.empty();
    mlir::Value a = operand(first, turned ? join({left, summed[first], rows}) : join({left, rows, summed[first]}),
                            vector   ? join(head, {k})
                            : turned ? join(head, {k, m})
                                     : join(head, {m, k}));
    bool transposed = !turned && isBehind(summed[second], columns);
    SmallVector<int64_t> rightHead = whole ? head : SmallVector<int64_t>();
    mlir::Value b = operand(second,
                            transposed ? join({shared[second], columns, summed[second]})
                                       : join({shared[second], summed[second], columns}),
                            transposed ? join(rightHead, {n, k}) : join(rightHead, {k, n}), whole && batch);
    return unmerged(product(a, b, vector ? join(head, {n}) : join(head, {m, n}), turned, transposed),
                    join({lead, rows, columns}));
  }

  static SmallVector<Part> join(std::initializer_list<ArrayRef<Part>> lists) {
    SmallVector<Part> all;
    for (ArrayRef<Part> list : lists)
      llvm::append_range(all, list);
    return all;
  }
  static SmallVector<int64_t> join(ArrayRef<int64_t> head, std::initializer_list<int64_t> rest) {
    SmallVector<int64_t> all(head);
    llvm::append_range(all, rest);
    return all;
  }

  // Whether the contracted parts are stored behind the free ones.
  bool isBehind(ArrayRef<Part> summed, ArrayRef<Part> columns) const {
    if (summed.empty() || columns.empty())
      return false;
    int least = INT_MAX, most = -1;
    for (Part part : summed)
      least = std::min(least, axis(part).place);
    for (Part part : columns)
      most = std::max(most, axis(part).place);
    return least > most;
  }

  // An operand with these parts in this order, as a tensor of this shape. `repeats`: the batch of the other one is
  // missing in it.
  mlir::Value operand(int side, ArrayRef<Part> parts, ArrayRef<int64_t> shape, bool repeats = false) {
    SmallVector<int> order;
    for (Part part : parts)
      order.push_back(part.number);
    mlir::Value stored = arrange(ops, sides[side], order, order);
    if (!repeats)
      return ops.reshapeStored(stored, shape);
    SmallVector<int64_t> one(shape);
    one[0] = 1;
    return broadcastKept(ops.reshapeStored(stored, one), shape);
  }
  mlir::Value broadcastKept(mlir::Value stored, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, ops.real());
    return mt::BroadcastOp::create(ops.builder, ops.location, type, stored);
  }
  mlir::Value product(mlir::Value a, mlir::Value b, ArrayRef<int64_t> shape, bool transposeA, bool transposeB) {
    return mt::MatmulOp::create(ops.builder, ops.location, RankedTensorType::get(shape, ops.real()), a, b, transposeA,
                                transposeB);
  }
  // Without axes that stand for several parts or none.
  RawProduct unmerged(mlir::Value tensor, ArrayRef<Part> parts) {
    SmallVector<Part> remaining;
    SmallVector<int64_t> shape;
    for (Part part : parts)
      if (!axis(part).size.isOne()) {
        remaining.push_back(part);
        shape.push_back(storedSize(axis(part).size));
      }
    return {ops.reshapeStored(tensor, shape), remaining};
  }

  Value finish(RawProduct raw, bool sumBatch) {
    auto [stored, parts] = raw;
    if (sumBatch) {
      auto type = cast<RankedTensorType>(stored.getType());
      stored = mt::ReduceOp::create(ops.builder, ops.location, type.clone(type.getShape().drop_front()),
                                    mt::Reduction::sum, stored, ArrayRef<int64_t>{0});
      parts.erase(parts.begin());
    }
    Value value{stored, {}};
    for (const SmallVector<Part> &list : logical) {
      Parts &axes = value.axes.emplace_back();
      for (Part part : list) {
        Part *found = llvm::find_if(parts, [&](Part other) { return other == part || isPaired(other, part); });
        axes.push_back({axis(part).size, found == parts.end() ? -1 : static_cast<int>(found - parts.begin())});
      }
    }
    for (const Size &factor : factors)
      value = factor.batch ? binary<mt::MulOp>(ops, value, ops.count(factor))
                           : binary<mt::MulOp>(ops, value, static_cast<double>(factor.times));
    return value;
  }
  bool isPaired(Part a, Part b) const {
    return llvm::any_of(common, [&](const PartPair &pair) {
      return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
    });
  }

  Ops &ops;
  Value sides[2];
  SmallVector<PartPair> common, inner; // in both and kept; contracted
  SmallVector<Part> free[2];           // in one
  SmallVector<Size> factors;           // contracted, and stored in none
  SmallVector<SmallVector<Part>> logical;
  bool sumsSamples = false; // the products of all samples are added
};

} // namespace

// Multiplies integers, which mt.matmul does not take: computes all products, then their sums.
static Value integerProduct(Ops &ops, const Value &a, const Value &b, const AxisPairs &contracted,
                            const AxisPairs &common) {
  SmallVector<int64_t> order[2], freeOnes[2];
  for (auto [i, j] : common)
    order[0].push_back(i), order[1].push_back(j);
  SmallVector<int64_t> summed[2];
  for (auto [i, j] : contracted)
    summed[0].push_back(i), summed[1].push_back(j);
  for (int side : {0, 1})
    for (int64_t axis = 0; axis < static_cast<int64_t>((side ? b : a).rank()); ++axis)
      if (!llvm::is_contained(order[side], axis) && !llvm::is_contained(summed[side], axis))
        freeOnes[side].push_back(axis);
  auto kept = static_cast<int64_t>(common.size()), left = static_cast<int64_t>(freeOnes[0].size()),
       right = static_cast<int64_t>(freeOnes[1].size());
  for (int side : {0, 1}) {
    llvm::append_range(order[side], freeOnes[side]);
    llvm::append_range(order[side], summed[side]);
  }
  auto range = [](int64_t from, int64_t count) { return llvm::to_vector(llvm::seq<int64_t>(from, from + count)); };
  Value all = binary<mt::MulOp>(ops, expandDims(transpose(a, order[0]), range(kept + left, right)),
                                expandDims(transpose(b, order[1]), range(kept, left)));
  return contracted.empty() ? all
                            : reduce(ops, mt::Reduction::sum, all,
                                     range(kept + left + right, static_cast<int64_t>(contracted.size())));
}

Value product(Ops &ops, const Value &a, const Value &b, const AxisPairs &contracted, const AxisPairs &common) {
  if (a.isBoolean() || b.isBoolean())
    return product(ops, a.isBoolean() ? cast(ops, a, ops.i32()) : a, b.isBoolean() ? cast(ops, b, ops.i32()) : b,
                   contracted, common);
  if (a.isInteger() && b.isInteger())
    return integerProduct(ops, a, b, contracted, common);
  if (a.element() != b.element())
    return cast(ops, product(ops, cast(ops, a, ops.real()), cast(ops, b, ops.real()), contracted, common), ops.i32());
  return Product(ops, a, b, contracted, common).build();
}

Value matmul(Ops &ops, const Value &a, const Value &b) {
  if (a.rank() == 0 || b.rank() == 0)
    throw Refused("a product with a number");
  Value left = a.rank() == 1 ? expandDims(a, {0}) : a, right = b.rank() == 1 ? expandDims(b, {1}) : b;
  auto rank = static_cast<int64_t>(left.rank());
  Value result;
  if (right.rank() == 2) {
    result = product(ops, left, right, {{rank - 1, 0}});
  } else {
    auto lead = [](const Value &value) { return Value{value.stored, {value.axes.begin(), value.axes.end() - 2}}; };
    Shape shape = commonShape({lead(left), lead(right)});
    auto spread = [&](const Value &value) {
      Shape full = shape;
      full.push_back(value.size(value.rank() - 2));
      full.push_back(value.size(value.rank() - 1));
      return broadcast(value, full);
    };
    left = spread(left), right = spread(right);
    rank = static_cast<int64_t>(left.rank());
    AxisPairs common;
    for (int64_t i = 0; i < rank - 2; ++i)
      common.push_back({i, i});
    result = product(ops, left, right, {{rank - 1, rank - 2}}, common);
  }
  if (a.rank() == 1)
    result = squeeze(result, {static_cast<int64_t>(result.rank()) - 2});
  if (b.rank() == 1)
    result = squeeze(result, {static_cast<int64_t>(result.rank()) - 1});
  return result;
}

} // namespace mtc::logical
