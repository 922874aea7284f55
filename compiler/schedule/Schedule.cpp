// SPDX-License-Identifier: Apache-2.0
//
// mt-schedule: orders kernels and all-reduces, and sets the barrier before each kernel.
//
// The level of a node is one more than the highest level on which it depends. Nodes of a level run concurrently, and a
// barrier separates two levels. So weight gradients run as early as possible, which ends the live ranges of activations
// early. Three kinds of kernels move to a later level. Kernels that read only values that live through the whole step
// (transposes of weights, Adam's scalars) move to the level before their first reader, or to the last level if there is
// no reader, so that the step counter changes with the other variables. For GPUs, copies of variables in 16 bits stay
// in the first level, where they are one launch: all of them live at the end of the forward pass in any case. Kernels
// that run a second time (mt-recompute) do the same, or they would save no memory. A kernel on which neither the next
// all-reduce nor a reader of the all-reduce depends (a weight gradient) moves after that all-reduce, to the start of
// the next level, so that a device has work while it waits. Kernels with a turn do not move, because a block of logits
// waits for them.
//
// For GPUs, a kernel may be the tail of the kernel before it (Tails.cpp), of the same level.
//
// The wait of a kernel is `all` if it depends on a kernel and one of the two writes memory that devices share, else
// `device`, or `none` if earlier barriers order the two kernels already. An all-reduce is a barrier of all devices.
#include "compiler/Passes.h"
#include "compiler/schedule/Graph.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Tails.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace mtc {
#define GEN_PASS_DEF_SCHEDULE
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

// Sets the levels, and returns the nodes in topological order.
void assignLevels(Graph &graph, std::vector<unsigned> &order) {
  order.clear();
  std::vector<unsigned> waiting(graph.nodes.size());
  std::vector<std::vector<unsigned>> after(graph.nodes.size());
  for (unsigned node = 0; node < graph.nodes.size(); ++node) {
    graph.nodes[node].level = 0;
    waiting[node] = graph.nodes[node].before.size();
    for (unsigned before : graph.nodes[node].before)
      after[before].push_back(node);
  }
  for (unsigned node = 0; node < graph.nodes.size(); ++node)
    if (waiting[node] == 0)
      order.push_back(node);
  for (size_t i = 0; i < order.size(); ++i)
    for (unsigned next : after[order[i]]) {
      unsigned distance = graph.nodes[next].head == order[i] ? 0 : 1;
      graph.nodes[next].level = std::max(graph.nodes[next].level, graph.nodes[order[i]].level + distance);
      if (--waiting[next] == 0)
        order.push_back(next);
    }
}

// Whether a later start would not keep any large value alive: the kernel reads only scalars, and values that live
// through the whole step.
bool readsOnlyLasting(mt::KernelOp kernel) {
  return llvm::all_of(kernel.getOperands(), [](Value operand) {
    return cast<RankedTensorType>(operand.getType()).getRank() == 0 ||
           isa_and_nonnull<mt::ReadOp, mt::ConstantOp, mt::InputOp, mt::TargetOp, mt::SampleWeightOp>(
               operand.getDefiningOp());
  });
}

// Whether the kernel only makes copies of variables in 16 bits.
bool copiesInHalf(mt::KernelOp kernel) {
  return kernel.getKind() == mt::KernelKind::elementwise && llvm::all_of(kernel.getResults(), [](Value result) {
           return mt::isHalf(cast<RankedTensorType>(result.getType()).getElementType());
         });
}

void sinkToFirstReader(Graph &graph, ArrayRef<unsigned> order, bool copiesFirst) {
  unsigned end = 1; // One past the last level: the level of values that no kernel reads.
  for (const Node &node : graph.nodes)
    end = std::max(end, node.level + 1);
  std::vector<unsigned> firstReader(graph.nodes.size(), end);
  for (unsigned node : llvm::reverse(order)) {
    Node &current = graph.nodes[node];
    if (!current.isCollective() && !current.head && !current.hasTail &&
        (current.kernel().getRecomputed() ||
         (readsOnlyLasting(current.kernel()) && !(copiesFirst && copiesInHalf(current.kernel())))))
      current.level = std::max(current.level, firstReader[node] - 1);
    for (unsigned before : current.before)
      firstReader[before] = std::min(firstReader[before], current.level);
  }
}

// Moves kernels that can wait, to run concurrently with the next all-reduce (Node::concurrent).
void sinkBehindAllReduces(Graph &graph, ArrayRef<unsigned> order) {
  constexpr unsigned never = std::numeric_limits<unsigned>::max();
  unsigned end = 1;
  for (const Node &node : graph.nodes)
    end = std::max(end, node.level + 1);
  std::vector<unsigned> nextAllReduce(end, never), firstReader(graph.nodes.size(), never);
  for (const Node &node : graph.nodes) {
    if (node.isCollective())
      nextAllReduce[node.level] = node.level;
    for (unsigned before : node.before)
      firstReader[before] = std::min(firstReader[before], node.level);
  }
  for (unsigned level = end - 1; level-- > 0;)
    nextAllReduce[level] = std::min(nextAllReduce[level], nextAllReduce[level + 1]);
  for (unsigned node : order) {
    Node &current = graph.nodes[node];
    unsigned next = nextAllReduce[current.level];
    if (current.isCollective() || current.share || current.head || current.hasTail || next == never ||
        firstReader[node] == never || firstReader[node] <= next + 1 || current.kernel().getRecomputed() ||
        mt::turnOf(current.kernel()) || readsOnlyLasting(current.kernel()))
      continue;
    current.level = next + 1;
    current.concurrent = true;
  }
}

// Order within a level: first kernels that are concurrent with an all-reduce; then other kernels in program order, each
// before its tails, second runs last; then all-reduces, which wait for everything before them.
void moveToOrder(Graph &graph, std::vector<unsigned> &order) {
  llvm::sort(order, [&](unsigned a, unsigned b) {
    auto key = [&](unsigned node) {
      unsigned first = node, tail = 0;
      for (; graph.nodes[first].head; ++tail)
        first = *graph.nodes[first].head;
      const Node &of = graph.nodes[first];
      return std::tuple(of.level, of.isCollective(), !of.concurrent, !of.isCollective() && of.kernel().getRecomputed(),
                        first, tail);
    };
    return key(a) < key(b);
  });
  for (unsigned node : order)
    for (Operation *op : graph.nodes[node].ops)
      op->moveBefore(graph.body, graph.body->end());
  SmallVector<Operation *> last;
  for (Operation &op : *graph.body)
    if (op.hasTrait<mt::Reports>() || isa<mt::AssignOp, mt::OutputOp>(op))
      last.push_back(&op);
  for (Operation *op : last)
    op->moveBefore(graph.body, graph.body->end());
}

void setWaits(Graph &graph, ArrayRef<unsigned> order) {
  std::vector<int64_t> position(graph.nodes.size());
  // The indices of the last barrier of the device, and of all devices.
  int64_t deviceBarrier = 0, allBarrier = 0;
  // A head waits for what its single numbers wait for, so that these do not wait.
  std::vector<bool> sharesByTail(graph.nodes.size());
  for (const Node &node : graph.nodes)
    if (node.head && node.kernel().getKind() == mt::KernelKind::single)
      sharesByTail[*node.head] = node.share;
  for (auto [index, node] : llvm::enumerate(order)) {
    Node &current = graph.nodes[node];
    position[node] = index;
    if (current.isCollective()) {
      deviceBarrier = allBarrier = index + 1;
      continue;
    }
    if (current.head)
      mt::markTail(current.kernel());
    if (current.head && current.kernel().getKind() != mt::KernelKind::single) { // on GPUs it is no barrier
      current.kernel().setWait(mt::Wait::device);
      continue;
    }
    mt::Wait wait = mt::Wait::none;
    bool share = current.share || sharesByTail[node];
    for (unsigned before : current.before) {
      bool all = share || graph.nodes[before].share;
      if (all && position[before] >= allBarrier)
        wait = mt::Wait::all;
      else if (wait == mt::Wait::none && position[before] >= deviceBarrier)
        wait = mt::Wait::device;
    }
    if (wait != mt::Wait::none)
      deviceBarrier = index;
    if (wait == mt::Wait::all)
      allBarrier = index;
    current.kernel().setWait(wait);
    current.kernel().setShare(current.share);
  }
}

struct Schedule : impl::ScheduleBase<Schedule> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<mt::ProgramOp>()) {
      FailureOr<Graph> graph = Graph::build(program);
      if (failed(graph))
        return signalPassFailure();
      std::vector<unsigned> order;
      assignLevels(*graph, order);
      for (mt::KernelKind kind : {mt::KernelKind::reduce, mt::KernelKind::rows})
        while (gpus && findTails(*graph, kind))
          assignLevels(*graph, order);
      sinkToFirstReader(*graph, order, /*copiesFirst=*/gpus);
      sinkBehindAllReduces(*graph, order);
      if (gpus)
        findScalarTails(*graph, order);
      moveToOrder(*graph, order);
      setWaits(*graph, order);
    }
  }
};

} // namespace
} // namespace mtc
