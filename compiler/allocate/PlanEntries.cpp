// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/PlanEntries.h"
#include "compiler/allocate/Kernels.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tails.h"

namespace mtc {

using namespace mlir;

static plan::Wait waitOf(mt::KernelOp kernel) {
  return static_cast<plan::Wait>(kernel.getWait().value_or(mt::Wait::all));
}

static bool sameBucket(Operation *a, Operation *b) { return mt::bucketOf(a) && mt::bucketOf(a) == mt::bucketOf(b); }

// The tail of a kernel: the next one, if it is a tail.
static mt::KernelOp tailOf(mt::KernelOp kernel) {
  auto next = dyn_cast_if_present<mt::KernelOp>(kernel->getNextNode());
  return next && mt::isTail(next) ? next : mt::KernelOp();
}

namespace {
struct StepList {
  std::vector<PlanEntry> entries;
  int64_t phase = 0, rendezvous = 0;
  bool afterReduce = false;
  bool all = false, products = false; // launches of other kinds, and products, become segments too

  bool mayHaveSegments(mt::KernelKind kind) const {
    switch (kind) {
    case mt::KernelKind::elementwise:
      return true;
    case mt::KernelKind::matmul:
    case mt::KernelKind::matmul_wgrad:
    case mt::KernelKind::conv:
    case mt::KernelKind::conv_wgrad:
      return products;
    default:
      return all;
    }
  }

  void add(shard::AllReduceOp reduce) {
    if (!entries.empty() && !entries.back().reduces.empty() && sameBucket(entries.back().reduces.front(), reduce)) {
      entries.back().reduces.push_back(reduce);
      return;
    }
    PlanEntry entry;
    entry.reduces.push_back(reduce);
    entry.phase = ++phase;
    entry.rendezvous = ++rendezvous;
    entries.push_back(std::move(entry));
    afterReduce = true;
  }

  void add(mt::KernelOp kernel) {
    PlanEntry entry;
    entry.wait = waitOf(kernel);
    entry.isTail = mt::isTail(kernel);
    phase += (entry.wait != plan::Wait::none && !entry.isTail) || afterReduce;
    rendezvous += entry.wait == plan::Wait::all || afterReduce;
    afterReduce = false;
    entry.share = kernel.getShare();
    entry.key = kernelKey(kernel);
    entry.phase = phase;
    entry.rendezvous = rendezvous;
    entry.segments.push_back(kernel);
    for (mt::KernelOp tail = tailOf(kernel); tail; tail = tailOf(tail)) {
      entry.tails += kernelKey(tail) + "\n";
      entry.mayHaveMore = tail.getKind() == mt::KernelKind::single;
    }
    if (entry.wait == plan::Wait::none && entry.tails.empty() && !entry.isTail && mayHaveSegments(kernel.getKind()))
      for (PlanEntry &other : llvm::reverse(entries)) {
        if (other.phase != phase)
          break;
        bool alone = !other.mayHaveMore || other.isTail;
        if (other.key == entry.key && other.share == entry.share && !alone) {
          other.segments.push_back(kernel);
          return;
        }
      }
    entries.push_back(std::move(entry));
  }
};
} // namespace

std::vector<PlanEntry> entriesOf(mt::ProgramOp program, bool all) {
  StepList list;
  list.all = all;
  list.products = all && mt::Compilation(program).isHalf();
  for (Operation &op : program.getBody().front()) {
    if (auto reduce = dyn_cast<shard::AllReduceOp>(op))
      list.add(reduce);
    else if (auto kernel = dyn_cast<mt::KernelOp>(op))
      list.add(kernel);
  }
  return std::move(list.entries);
}

} // namespace mtc
