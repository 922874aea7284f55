// SPDX-License-Identifier: Apache-2.0
//
// Tails: kernels that, on GPUs, the last blocks of the kernel before them compute, their head, without a launch of
// their own. There are four kinds:
//   - a sum over the batch, of a kernel that sums inside of the samples. The last block that has sums of some columns
//     adds them; or the last block of all, if there are few columns;
//   - sums of the pixels (or tokens) of a sample, of the convolution or product that computes these: by its last block
//     of the sample;
//   - a loss of few classes, of the product that computes the logits: by its last block of the samples;
//   - single numbers, such as Adam's, of any element-wise kernel or sum over the batch of the same level: by its first
//     block, because neither of the two reads what the other writes.
// Everything else that a tail reads is complete before its head.
#include "compiler/schedule/Graph.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/Types.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

// Whether the op sums the pixels of a sample for each channel.
static bool sumsPixels(Operation &op) {
  auto sum = dyn_cast<mt::ReduceOp>(op);
  if (!sum || !mt::isSplit(sum.getType()))
    return false;
  ArrayRef<int64_t> shape = mt::tensorOf(sum.getOperand()).getShape();
  return shape.size() > 2 && shape.back() > 1 && mt::elementsPerRow(sum.getType()) == shape.back();
}
static bool sumsPixels(mt::KernelOp kernel) {
  return llvm::any_of(kernel->getRegion(0).front(), [](Operation &op) { return sumsPixels(op); });
}

// Whether all results of a kernel have at most one element for each channel of the pixels that it sums.
static bool onlySumsPixels(mt::KernelOp kernel) {
  int64_t most = 0;
  for (Operation &op : kernel->getRegion(0).front())
    if (sumsPixels(op))
      most = std::max(most, mt::elementsPerRow(op.getResult(0).getType()));
  return most > 0 &&
         llvm::all_of(kernel->getResultTypes(), [&](Type type) { return mt::elementsPerRow(type) <= most; });
}

// Whether few blocks suffice for a sum over the batch: blocks of the same columns, or the last block alone if it reads
// 128 KiB or less.
static bool isShort(mt::KernelOp head, mt::KernelOp sum) {
  constexpr int64_t blockColumns = 32, maxColumns = 128, maxElements = 1 << 15;
  int64_t columns = 0, each = mt::elementsPerRow(sum->getResult(0).getType());
  bool alike = each % blockColumns == 0;
  for (Value result : sum->getResults()) {
    columns += mt::elementsPerRow(result.getType());
    alike &= mt::elementsPerRow(result.getType()) == each;
  }
  std::optional<int64_t> batch = mt::Compilation(sum).findBatch();
  bool isSmall = columns <= maxColumns || (batch && columns * *batch <= maxElements);
  return isSmall || (alike && sumsPixels(head));
}

// Whether a warp computes a row of few elements: element by element, with sums of all of them.
static bool isShortRow(mt::KernelOp kernel) {
  constexpr int64_t most = 128;
  bool sums = false;
  for (Operation &op : kernel->getRegion(0).front().without_terminator()) {
    Value result = op.getResult(0);
    bool isSum = isa<mt::ReduceOp, mt::ArgmaxOp>(op) && mt::isSplit(result.getType());
    bool isElement = mt::isPointwise(op) || isa<mt::IotaOp>(op);
    if (mt::elementsPerRow(result.getType()) > (isSum ? 1 : most) || !(isSum || isElement))
      return false;
    sums |= isSum;
  }
  return sums && llvm::all_of(kernel->getOperandTypes(), [](Type type) { return mt::elementsPerRow(type) <= most; });
}

static bool mayHaveTail(mt::KernelOp head, mt::KernelOp tail) {
  if (tail.getKind() == KernelKind::reduce)
    return head.getKind() == KernelKind::rows && isShort(head, tail);
  auto result = mt::tensorOf(head->getResult(0));
  if (!mt::isSplit(result))
    return false;
  if (head.getKind() == KernelKind::matmul)
    return result.getRank() == 2 ? isShortRow(tail) : onlySumsPixels(tail);
  return head.getKind() == KernelKind::conv && onlySumsPixels(tail);
}

// The only node of the highest level on which a node depends.
static std::optional<unsigned> lastBefore(const Graph &graph, unsigned node) {
  std::optional<unsigned> last;
  bool several = false;
  for (unsigned before : graph.nodes[node].before) {
    unsigned level = graph.nodes[before].level;
    if (last && level < graph.nodes[*last].level)
      continue;
    several = last && level == graph.nodes[*last].level;
    last = before;
  }
  return several ? std::nullopt : last;
}

// The head gets an edge from everything that its tail reads, from a lower level to a higher one, so there is no cycle.
// The head of a sum over the batch becomes a tail itself only afterwards.
bool findTails(Graph &graph, KernelKind kind) {
  bool changed = false;
  auto isFree = [](const Node &node) {
    return !node.isCollective() && !node.share && !node.kernel().getRecomputed() && !mt::turnOf(node.kernel());
  };
  for (unsigned number = 0; number < graph.nodes.size(); ++number) {
    Node &tail = graph.nodes[number];
    if (tail.head || !isFree(tail) || tail.kernel().getKind() != kind)
      continue;
    std::optional<unsigned> last = lastBefore(graph, number);
    if (!last)
      continue;
    Node &head = graph.nodes[*last];
    if (head.hasTail || !isFree(head) || !mayHaveTail(head.kernel(), tail.kernel()))
      continue;
    for (unsigned before : tail.before)
      if (before != *last)
        head.before.insert(before);
    tail.head = last;
    head.hasTail = changed = true;
  }
  return changed;
}

static bool computesNumbers(mt::KernelOp kernel) {
  auto isNumber = [](Type type) { return !mt::isSplit(type) && mt::elementsPerRow(type) == 1; };
  return kernel.getKind() == KernelKind::single && llvm::all_of(kernel->getOperandTypes(), isNumber) &&
         llvm::all_of(kernel->getResultTypes(), isNumber);
}

// The level of the head is higher than the level of every kernel that the numbers wait for, and lower than the level of
// every reader. The first kernel of the highest level of these is the head, because equal kernels of the level become
// its segments. A sum over the batch and an element-wise kernel run on every device, even if it has no samples.
void findScalarTails(Graph &graph, ArrayRef<unsigned> order) {
  std::vector<unsigned> firstReader(graph.nodes.size(), std::numeric_limits<unsigned>::max());
  for (const Node &node : graph.nodes)
    for (unsigned before : node.before)
      firstReader[before] = std::min(firstReader[before], node.level);
  auto isFree = [](const Node &node) {
    return !node.isCollective() && !node.head && !node.hasTail && !node.concurrent && !node.kernel().getRecomputed() &&
           !mt::turnOf(node.kernel());
  };
  for (unsigned number = 0; number < graph.nodes.size(); ++number) {
    Node &tail = graph.nodes[number];
    if (!isFree(tail) || !computesNumbers(tail.kernel()))
      continue;
    unsigned first = 0;
    for (unsigned before : tail.before)
      first = std::max(first, graph.nodes[before].level + 1);
    std::optional<unsigned> head;
    for (unsigned other : order) {
      const Node &node = graph.nodes[other];
      bool suits = isFree(node) && (node.kernel().getKind() == KernelKind::elementwise ||
                                    node.kernel().getKind() == KernelKind::reduce);
      if (suits && node.level >= first && node.level < firstReader[number] &&
          (!head || node.level > graph.nodes[*head].level || (node.level == graph.nodes[*head].level && other < *head)))
        head = other;
    }
    if (!head)
      continue;
    graph.nodes[*head].before.insert(tail.before.begin(), tail.before.end());
    graph.nodes[*head].hasTail = true;
    tail.head = head;
    tail.level = graph.nodes[*head].level;
  }
}

} // namespace mtc
