// SPDX-License-Identifier: Apache-2.0
//
// Which kernels of rows may become one: what one step leaves to the next has to stay in a cache, of a whole sample or,
// in a kernel whose ops are independent along the first axes of a sample, of one line.
#include "compiler/fuse/Groups.h"
#include "dialects/mt/Lines.h"

namespace mtc {

using namespace mlir;

// Of what the ops compute or read.
static int64_t largestOf(ArrayRef<Operation *> ops) {
  int64_t most = 0;
  for (Operation *op : ops) {
    most = std::max(most, bytesPerSample(op->getResult(0)));
    for (Value operand : op->getOperands())
      most = std::max(most, bytesPerSample(operand));
  }
  return most;
}

// Whether ops of two units, in one kernel, would be independent along lines whose values stay in a cache.
bool Groups::fitsByLine(unsigned a, unsigned b) const {
  llvm::SetVector<Operation *> ops;
  std::function<void(Operation *)> add = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isCheap(operand))
        add(operand.getDefiningOp());
    ops.insert(op);
  };
  for (unsigned unit : {a, b})
    llvm::for_each(units[unit].ops, add);
  int64_t most = largestOf(ops.getArrayRef()), lines = 1;
  for (int64_t size : cast<RankedTensorType>(units[a].ops.back()->getResult(0).getType()).getShape().drop_front()) {
    lines *= size;
    llvm::DenseMap<Value, mt::LinePart> parts;
    if (size > 1 && most / lines <= maxCachedBytes && mt::areComputedByLine(ops.getArrayRef(), lines, parts))
      return true;
  }
  return false;
}

static bool isElementwise(Operation *op) { return isa<mt::ElementwiseOpInterface>(op); }

// An op that one loop over the elements of a sample computes: no operand is repeated along the last axes.
static bool walksElements(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  return isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
    auto type = cast<RankedTensorType>(operand.getType());
    ArrayRef<int64_t> shape = type.getShape().drop_front(mt::isSplit(type));
    shape = shape.drop_while([](int64_t size) { return size == 1; });
    return shape == result.getShape().take_back(shape.size());
  });
}

// Whether a unit has more to do than to walk elements, and does it in a cache because it does it by line.
bool Groups::livesByLine(unsigned unit) {
  std::optional<bool> &lives = units[unit].livesByLine;
  const std::vector<Operation *> &ops = units[unit].ops;
  if (!lives)
    lives = !llvm::all_of(ops, walksElements) && largestOf(ops) > maxCachedBytes && fitsByLine(unit, unit);
  return *lives;
}

// What a step of a GPU's block leaves to a product lies in workgroup memory.
static constexpr int64_t maxBlockBytes = 1 << 14;

bool Groups::mayShareRows(unsigned a, unsigned b, bool images) {
  if ((units[a].early && units[b].afterProduct) || (units[b].early && units[a].afterProduct))
    return false;
  auto multiplies = [&](unsigned unit) { return llvm::any_of(units[unit].ops, llvm::IsaPred<mt::MatmulOp>); };
  int64_t most = !images && (multiplies(a) || multiplies(b)) ? maxBlockBytes : maxCachedBytes;
  bool walked = true; // every value too large for the cache is between ops that walk it element by element
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)})
    for (Operation *op : units[to].ops)
      for (Value operand : op->getOperands()) {
        if (producer(operand) != from)
          continue;
        if (!images && isa<mt::Conv2DKernelGradientOp>(op))
          return false;
        walked &= bytesPerSample(operand) <= most || (isElementwise(op) && isElementwise(operand.getDefiningOp()));
      }
  return (walked && !livesByLine(a) && !livesByLine(b)) || fitsByLine(a, b);
}

} // namespace mtc
