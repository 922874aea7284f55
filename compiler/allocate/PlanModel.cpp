// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/PlanCheck.h"
#include "dialects/mt/Tails.h"
#include "dialects/plan/DeviceMemory.h"

namespace mtc {

using namespace mlir;
using plan::Space;

namespace {

struct Bucket {
  int64_t partial = 0, result = 0, bytes = 0;
};

class Modeller {
public:
  Modeller(plan::ProgramOp program, size_t variant, int64_t rows, bool alone)
      : variant(variant), rows(rows), alone(alone) {
    for (auto reduce : program.getBody().front().getOps<plan::AllReduceOp>())
      buckets.push_back(bucketOf(reduce));
    llvm::sort(buckets, [](const Bucket &a, const Bucket &b) { return a.result < b.result; });
  }

  CheckedStep launch(plan::LaunchOp op) {
    CheckedStep step;
    step.op = op;
    step.before = afterReduce || op.getWait() == plan::Wait::all ? Barrier::all
                  : op.getWait() == plan::Wait::device           ? Barrier::device
                                                                 : Barrier::none;
    afterReduce = false;
    int64_t segments = op.getCounts().size();
    int64_t reads = op.getReads().size() / segments, writes = op.getWrites().size() / segments;
    for (auto [i, value] : llvm::enumerate(op.getReads()))
      step.accesses.push_back(access(value, false, i / reads, i % reads));
    for (auto [i, value] : llvm::enumerate(op.getWrites()))
      step.accesses.push_back(access(value, true, i / writes, reads + i % writes));
    return step;
  }

  CheckedStep reduce(plan::AllReduceOp op) {
    CheckedStep step;
    step.op = op;
    step.before = afterReduce ? Barrier::none : Barrier::all;
    afterReduce = true;
    Bucket bucket = bucketOf(op);
    for (Value partial : op.getPartials())
      step.accesses.push_back(access(partial, false, 0, 0));
    if (!alone) {
      // Inner nodes of the sum may overwrite the partial sums anywhere in the bucket.
      Access consumed;
      consumed.bytes = {"arena", bucket.partial, bucket.partial + bucket.bytes};
      consumed.write = true;
      step.accesses.push_back(consumed);
    }
    for (Value result : op.getResults())
      step.accesses.push_back(access(result, true, 0, 0));
    for (Access &each : step.accesses)
      each.byAll = !alone;
    return step;
  }

private:
  Bucket bucketOf(plan::AllReduceOp op) const {
    auto partial = op.getPartials().front().getDefiningOp<plan::BufferOp>();
    auto result = op.getResults().front().getDefiningOp<plan::BufferOp>();
    return {partial.getOffsets()[variant], result.getOffsets().front(), static_cast<int64_t>(op.getBytes())};
  }

  // The bucket whose results include a byte of the shared block; null if there is none.
  const Bucket *bucketAt(int64_t offset) const {
    auto next = llvm::upper_bound(buckets, offset, [](int64_t at, const Bucket &other) { return at < other.result; });
    if (next == buckets.begin() || offset >= std::prev(next)->result + std::prev(next)->bytes)
      return nullptr;
    return &*std::prev(next);
  }

  Access access(Value value, bool write, int64_t segment, unsigned argument) const {
    auto buffer = value.getDefiningOp<plan::BufferOp>();
    auto type = cast<plan::BufferType>(value.getType()).getType();
    int64_t bytes = plan::bytesOfType(type) * (mt::isSplit(type) ? rows : 1);
    Access result;
    result.buffer = value;
    result.write = write;
    result.segment = segment;
    result.argument = argument;
    int64_t begin = 0;
    switch (buffer.getSpace()) {
    case Space::arena:
      result.bytes.memory = "arena";
      begin = buffer.getOffsets()[variant];
      break;
    case Space::shared:
      result.bytes.memory = "shared";
      begin = buffer.getOffsets().front();
      result.byAll = !alone;
      if (const Bucket *bucket = alone ? bucketAt(begin) : nullptr) {
        result.bytes.memory = "arena";
        begin += bucket->partial - bucket->result;
      }
      break;
    case Space::constant:
      result.bytes.memory = "constants";
      begin = buffer.getOffsets().front();
      break;
    case Space::variable:
    case Space::signature:
      result.bytes.memory = (stringifySpace(buffer.getSpace()) + " " + buffer.getRef().value_or("")).str();
      result.byAll = !alone && buffer.getSpace() == Space::variable;
      break;
    }
    result.bytes.begin = begin;
    result.bytes.end = begin + bytes;
    return result;
  }

  size_t variant;
  int64_t rows;
  bool alone;
  bool afterReduce = false;
  std::vector<Bucket> buckets; // sorted by the offset of their results
};

} // namespace

std::vector<CheckedStep> modelOf(plan::ProgramOp program, size_t variant, int64_t rows, bool alone) {
  Modeller modeller(program, variant, rows, alone);
  std::vector<CheckedStep> steps;
  for (Operation &op : program.getBody().front()) {
    if (auto launch = dyn_cast<plan::LaunchOp>(op))
      steps.push_back(modeller.launch(launch));
    else if (auto reduce = dyn_cast<plan::AllReduceOp>(op))
      steps.push_back(modeller.reduce(reduce));
  }
  return steps;
}

std::vector<CheckedStep> modelWithTails(std::vector<CheckedStep> steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    if (!mt::isTail(steps[i].op))
      continue;
    steps[i].before = Barrier::none;
    std::erase_if(steps[i].accesses, [&](const Access &access) {
      return !access.write && llvm::any_of(steps[i - 1].accesses, [&](const Access &other) {
        return other.write && other.bytes == access.bytes;
      });
    });
  }
  return steps;
}

} // namespace mtc
