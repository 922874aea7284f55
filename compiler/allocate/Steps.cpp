// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Steps.h"
#include "compiler/allocate/Kernels.h"
#include "dialects/mt/Compilation.h"

namespace mtc {

using namespace mlir;

static plan::Wait waitOf(mt::KernelOp kernel) {
  return static_cast<plan::Wait>(kernel.getWait().value_or(mt::Wait::all));
}

static bool sameBucket(Operation *a, Operation *b) {
  return mt::bucketOf(a) && mt::bucketOf(a) == mt::bucketOf(b);
}

namespace {
struct StepList {
  std::vector<PlanStep> steps;
  int64_t phase = 0, rendezvous = 0;
  bool afterReduce = false;

  void add(shard::AllReduceOp reduce) {
    if (!steps.empty() && !steps.back().reduces.empty() && sameBucket(steps.back().reduces.front(), reduce)) {
      steps.back().reduces.push_back(reduce);
      return;
    }
    PlanStep step;
    step.reduces.push_back(reduce);
    step.phase = ++phase;
    step.rendezvous = ++rendezvous;
    steps.push_back(std::move(step));
    afterReduce = true;
  }

  void add(mt::KernelOp kernel) {
    PlanStep step;
    step.wait = waitOf(kernel);
    phase += step.wait != plan::Wait::none || afterReduce;
    rendezvous += step.wait == plan::Wait::all || afterReduce;
    afterReduce = false;
    step.share = kernel.getShare();
    step.key = kernelKey(kernel);
    step.phase = phase;
    step.rendezvous = rendezvous;
    step.segments.push_back(kernel);
    if (step.wait == plan::Wait::none && kernel.getKind() == mt::KernelKind::elementwise)
      for (PlanStep &other : llvm::reverse(steps)) {
        if (other.phase != phase)
          break;
        if (other.key == step.key && other.share == step.share) {
          other.segments.push_back(kernel);
          return;
        }
      }
    steps.push_back(std::move(step));
  }
};
} // namespace

std::vector<PlanStep> stepsOf(mt::ProgramOp program) {
  StepList list;
  for (Operation &op : program.getBody().front()) {
    if (auto reduce = dyn_cast<shard::AllReduceOp>(op))
      list.add(reduce);
    else if (auto kernel = dyn_cast<mt::KernelOp>(op))
      list.add(kernel);
  }
  return std::move(list.steps);
}

} // namespace mtc
