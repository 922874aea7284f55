// SPDX-License-Identifier: Apache-2.0
//
// Which rows kernels may be merged: the values that one statement passes to the next have to fit into the L2 cache.
// These are the values of a whole sample or, if the ops are independent along the first axes of a sample, those of one
// line.
#include "dialects/mt/Lines.h"
#include "compiler/fuse/FusionGraph.h"

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

// Whether ops of two groups, in one kernel, would be independent along lines whose values stay in a cache.
bool FusionGraph::fitsByLine(unsigned a, unsigned b) const {
  llvm::SetVector<Operation *> ops;
  std::function<void(Operation *)> add = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isRecomputed(operand))
        add(operand.getDefiningOp());
    ops.insert(op);
  };
  for (unsigned group : {a, b})
    llvm::for_each(groups[group].ops, add);
  int64_t most = largestOf(ops.getArrayRef()), lines = 1;
  for (int64_t size : cast<RankedTensorType>(groups[a].ops.back()->getResult(0).getType()).getShape().drop_front()) {
    lines *= size;
    llvm::DenseMap<Value, mt::LinePart> parts;
    if (size > 1 && most / lines <= maxCachedBytes && mt::areComputedByLine(ops.getArrayRef(), lines, parts))
      return true;
  }
  return false;
}

// Largest value, in bytes, that a statement of a GPU's block passes to a product: it lies in workgroup memory.
static constexpr int64_t maxBlockBytes = 1 << 14;

static bool isElementwise(Operation *op) { return isa<mt::ElementwiseOpInterface>(op); }

// A sum over the first axes of a sample, or over all of them: the loop over the elements that computes its operand adds
// them as well.
static bool isAddedInLoop(Operation *op) {
  auto reduce = dyn_cast<mt::ReduceOp>(op);
  if (!reduce || !mt::isSplit(reduce.getResult().getType()))
    return false;
  SmallVector<int64_t> dims(reduce.getDims());
  llvm::sort(dims);
  return dims == llvm::to_vector(llvm::seq<int64_t>(1, 1 + static_cast<int64_t>(dims.size())));
}

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

// Whether a group works line by line: it does more than element-wise work (on a GPU: and reshapes), and its values fit
// into the L2 cache (into a block's memory) only if a statement computes one line of them at a time.
bool FusionGraph::livesByLine(unsigned group, bool images) {
  std::optional<bool> &lives = groups[group].livesByLine;
  const std::vector<Operation *> &ops = groups[group].ops;
  auto isMore = [&](Operation *op) { return !walksElements(op) && (images || !op->hasTrait<mt::Repeats>()); };
  if (!lives)
    lives = llvm::any_of(ops, isMore) && largestOf(ops) > (images ? maxCachedBytes : maxBlockBytes) &&
            fitsByLine(group, group);
  return *lives;
}

// A sum over the first axes of a sample, of a large value: on a GPU many blocks share its columns.
static bool sumsColumns(Operation *op) {
  return isAddedInLoop(op) && mt::elementsPerRow(op->getResult(0).getType()) > 1 &&
         bytesPerSample(op->getOperand(0)) > maxBlockBytes;
}

// Whether sums of columns are all that reads what a group computes element by element.
bool FusionGraph::feedsColumnsAlone(unsigned group, unsigned sums) const {
  return llvm::any_of(groups[sums].ops, sumsColumns) && llvm::all_of(groups[group].ops, [&](Operation *op) {
           return walksElements(op) &&
                  llvm::all_of(users(op), [&](Operation *user) { return isOfEither(user, group, sums); });
         });
}

// Whether one kernel of both would keep the sums of columns of `sums` from many blocks: `other` has ops that are no
// part of the loop that adds, such as sums of lines, or moves.
static bool keepsColumnsTogether(ArrayRef<Operation *> sums, ArrayRef<Operation *> other) {
  auto joins = [](Operation *op) { return walksElements(op) || sumsColumns(op) || op->hasTrait<mt::Repeats>(); };
  return llvm::any_of(sums, sumsColumns) && !llvm::all_of(other, joins);
}

// What a kernel of both groups would read from memory and write there.
size_t FusionGraph::buffersOf(unsigned a, unsigned b) const {
  auto isInside = [&](Operation *op) { return isOfEither(op, a, b); };
  llvm::SmallDenseSet<Value> read;
  size_t written = 0;
  llvm::SmallVector<Operation *> ops(groups[a].ops.begin(), groups[a].ops.end());
  if (a != b)
    llvm::append_range(ops, groups[b].ops);
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!isRecomputed(operand) && !isInside(operand.getDefiningOp()))
        read.insert(operand);
    written += !llvm::all_of(users(op), isInside);
  }
  return read.size() + written;
}

// Whether a thread of a GPU has registers for the addresses and elements of what one kernel of both reads and writes;
// one op may need more.
bool FusionGraph::fitRegisters(unsigned a, unsigned b) const {
  constexpr size_t most = 32;
  size_t buffers = buffersOf(a, b);
  return buffers <= most || buffers <= std::max(buffersOf(a, a), buffersOf(b, b));
}

bool FusionGraph::mayShareRows(unsigned a, unsigned b, bool images) {
  if ((groups[a].early && groups[b].afterProduct) || (groups[b].early && groups[a].afterProduct))
    return false;
  if (!images && (keepsColumnsTogether(groups[a].ops, groups[b].ops) ||
                  keepsColumnsTogether(groups[b].ops, groups[a].ops) || !fitRegisters(a, b)))
    return false;
  auto multiplies = [&](unsigned group) { return llvm::any_of(groups[group].ops, llvm::IsaPred<mt::MatmulOp>); };
  int64_t most = !images && (multiplies(a) || multiplies(b)) ? maxBlockBytes : maxCachedBytes;
  bool walked = true; // every value too large for the cache is passed between element-wise ops
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)})
    for (Operation *op : groups[to].ops)
      for (Value operand : op->getOperands()) {
        if (producer(operand) != from)
          continue;
        if (!images && isa<mt::Conv2DKernelGradientOp>(op))
          return false;
        bool inOneLoop = isElementwise(op) || (images ? isAddedInLoop(op) : sumsColumns(op));
        walked &= bytesPerSample(operand) <= most || (inOneLoop && isElementwise(operand.getDefiningOp()));
        // Only a second loop knows the sum.
        walked &= bytesPerSample(op->getResult(0)) <= most || !isa<mt::ReduceOp>(operand.getDefiningOp());
      }
  return (walked && !livesByLine(a, images) && !livesByLine(b, images)) || fitsByLine(a, b);
}

} // namespace mtc
