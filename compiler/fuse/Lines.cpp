// SPDX-License-Identifier: Apache-2.0
//
// Which rows kernels may be merged: the values that one statement passes to the next have to fit into the L2 cache.
// These are the values of a whole sample or, if the ops are independent along the first axes of a sample, of one line.
#include "dialects/mt/Lines.h"
#include "compiler/fuse/FusionGraph.h"

namespace mtc {

using namespace mlir;

// Bytes of the largest value that the ops compute or read, per sample.
static int64_t largestOf(ArrayRef<Operation *> ops) {
  int64_t most = 0;
  for (Operation *op : ops) {
    most = std::max(most, bytesPerSample(op->getResult(0)));
    for (Value operand : op->getOperands())
      most = std::max(most, bytesPerSample(operand));
  }
  return most;
}

// Whether the ops of two groups, in one kernel, would be independent along lines whose values fit into the cache.
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

// Largest value, in bytes, that a statement of a GPU block passes to a product through workgroup memory.
static constexpr int64_t maxBlockBytes = 1 << 14;

static bool isElementwise(Operation *op) { return isa<mt::ElementwiseOpInterface>(op); }

// Whether the op is a sum over the first axes of a sample, or over all axes: the loop over the elements that computes
// its operand adds them as well.
static bool isAddedInLoop(Operation *op) {
  auto reduce = dyn_cast<mt::ReduceOp>(op);
  if (!reduce || !mt::isSplit(reduce.getResult().getType()))
    return false;
  SmallVector<int64_t> dims(reduce.getDims());
  llvm::sort(dims);
  return dims == llvm::to_vector(llvm::seq<int64_t>(1, 1 + static_cast<int64_t>(dims.size())));
}

// Whether one loop over the elements of a sample computes the op: no operand is repeated along its last axes.
static bool walksElements(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  return isElementwise(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           auto type = cast<RankedTensorType>(operand.getType());
           ArrayRef<int64_t> shape = type.getShape().drop_front(mt::isSplit(type));
           shape = shape.drop_while([](int64_t size) { return size == 1; });
           return shape == result.getShape().take_back(shape.size());
         });
}

// Whether a group works line by line: it has other than element-wise ops (on a GPU: and reshapes), and its values fit
// into the L2 cache (on a GPU: into workgroup memory) only if a statement computes one line at a time.
bool FusionGraph::livesByLine(unsigned group, bool images) {
  std::optional<bool> &lives = groups[group].livesByLine;
  const std::vector<Operation *> &ops = groups[group].ops;
  auto isMore = [&](Operation *op) { return !walksElements(op) && (images || !op->hasTrait<mt::Repeats>()); };
  if (!lives)
    lives = llvm::any_of(ops, isMore) && largestOf(ops) > (images ? maxCachedBytes : maxBlockBytes) &&
            fitsByLine(group, group);
  return *lives;
}

// Whether the op sums a large value over the first axes of a sample: on a GPU many blocks share the columns of the sum.
// Sums of the same value as stored in 16 bits and as f32 are alike.
static bool sumsColumns(Operation *op) {
  constexpr int64_t bytesOfSum = 4;
  return isAddedInLoop(op) && mt::elementsPerRow(op->getResult(0).getType()) > 1 &&
         bytesOfSum * mt::elementsPerRow(op->getOperand(0).getType()) > maxBlockBytes;
}

// Whether the op moves one pixel of a sample: all threads that sum columns can load it.
static bool takesPixel(Operation *op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return op->hasTrait<mt::Moves>() && mt::isSplit(type) && mt::elementsPerRow(type) == type.getShape().back() &&
         cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back() == type.getShape().back();
}

// Whether a thread computes an element of `op` from one of `source`, which it computes from a window of a feature map.
static bool takesWindows(Operation *source, Operation *op) {
  return isa<mt::WindowOpInterface, mt::WindowGradientOpInterface>(source) && walksElements(op) &&
         source->getResult(0).getType() == op->getOperand(0).getType();
}

// Whether only sums of columns read the values that a group computes element by element.
bool FusionGraph::feedsColumnsAlone(unsigned group, unsigned sums) const {
  return llvm::any_of(groups[sums].ops, sumsColumns) && llvm::all_of(groups[group].ops, [&](Operation *op) {
           return (walksElements(op) || takesPixel(op)) &&
                  llvm::all_of(users(op), [&](Operation *user) { return isOfEither(user, group, sums); });
         });
}

// Whether the sums of columns of `sums`, in one kernel with `other`, could not be shared by many blocks: `other` has
// ops outside of the loop that adds, such as sums of lines, or moves.
static bool keepsColumnsTogether(ArrayRef<Operation *> sums, ArrayRef<Operation *> other) {
  auto joins = [](Operation *op) {
    return walksElements(op) || sumsColumns(op) || takesPixel(op) || op->hasTrait<mt::Repeats>();
  };
  return llvm::any_of(sums, sumsColumns) && !llvm::all_of(other, joins);
}

// Whether `later` reads sums of columns of `sums` and waits for a sum over the batch that `sums` does not wait for: in
// one kernel, the columns would be read after that sum, and not together with other sums of them.
bool FusionGraph::delaysColumns(unsigned sums, unsigned later) const {
  return groups[later].reductionDepth > groups[sums].reductionDepth &&
         llvm::any_of(groups[sums].ops, [&](Operation *op) {
           return sumsColumns(op) && llvm::any_of(users(op), [&](Operation *user) { return groupOf(user) == later; });
         });
}

// Number of buffers that a kernel of both groups would read and write.
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

// Whether the registers of a GPU thread hold the addresses and elements of the buffers of a kernel of both groups. A
// single op may need more.
bool FusionGraph::fitRegisters(unsigned a, unsigned b) const {
  constexpr size_t most = 32;
  size_t buffers = buffersOf(a, b);
  return buffers <= most || buffers <= std::max(buffersOf(a, a), buffersOf(b, b));
}

bool FusionGraph::mayShareRows(unsigned a, unsigned b, bool images) {
  if ((groups[a].early && groups[b].afterProduct) || (groups[b].early && groups[a].afterProduct))
    return false;
  if (!images && (delaysColumns(a, b) || delaysColumns(b, a) || keepsColumnsTogether(groups[a].ops, groups[b].ops) ||
                  keepsColumnsTogether(groups[b].ops, groups[a].ops) || !fitRegisters(a, b)))
    return false;
  auto multiplies = [&](unsigned group) { return llvm::any_of(groups[group].ops, llvm::IsaPred<mt::MatmulOp>); };
  int64_t most = !images && (multiplies(a) || multiplies(b)) ? maxBlockBytes : maxCachedBytes;
  bool walked = true; // whether every value that is too large for the cache is passed only between element-wise ops
  for (auto [from, to] : {std::pair(a, b), std::pair(b, a)})
    for (Operation *op : groups[to].ops)
      for (Value operand : op->getOperands()) {
        if (producer(operand) != from)
          continue;
        if (!images && isa<mt::Conv2DKernelGradientOp>(op))
          return false;
        bool inOneLoop = images ? isElementwise(op) || isAddedInLoop(op) : walksElements(op) || sumsColumns(op);
        Operation *source = operand.getDefiningOp();
        bool computed = images ? isElementwise(source) : walksElements(source) || takesWindows(source, op);
        walked &= bytesPerSample(operand) <= most || (inOneLoop && computed);
        // The result of a sum is known only after the loop, so a second loop must read the value.
        walked &= bytesPerSample(op->getResult(0)) <= most || !isa<mt::ReduceOp>(source);
      }
  return (walked && !livesByLine(a, images) && !livesByLine(b, images)) || fitsByLine(a, b);
}

} // namespace mtc
