// SPDX-License-Identifier: Apache-2.0
#include "compiler/recompute/Candidates.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/KernelKinds.h"

#include <map>

namespace mtc {

using namespace mlir;

namespace {

// Live ranges, in phases, of the values that kernels compute for each row. All other values are small, or live through
// the whole step.
class Lives {
public:
  Lives(mt::ProgramOp program, const Phases &phases, int64_t rows) : phases(phases), rows(rows) {
    std::map<int64_t, int64_t> changes;
    for (auto kernel : program.getBody().front().getOps<mt::KernelOp>())
      for (Value result : kernel->getResults()) {
        auto [first, last] = life(result);
        changes[first] += bytes(result);
        changes[last + 1] -= bytes(result);
      }
    int64_t alive = 0, most = -1;
    for (auto [phase, change] : changes)
      if ((alive += change) > most) {
        most = alive;
        peak = phase;
      }
  }

  int64_t peak = 0;

  int64_t phaseOf(Operation *op) const { return phases.lookup(op); }
  int64_t bytes(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    if (!mt::isSplit(type))
      return 0;
    unsigned bits = type.getElementTypeBitWidth();
    return mt::elementsPerRow(type) * (bits == 1 ? 1 : bits / 8) * rows;
  }
  // Whether the value is dead at the peak, but a later read would extend its live range over the peak.
  bool wouldHold(Value value) const {
    return isa_and_nonnull<mt::KernelOp>(value.getDefiningOp()) && life(value).second < peak;
  }

private:
  std::pair<int64_t, int64_t> life(Value value) const {
    int64_t first = phaseOf(value.getDefiningOp()), last = first;
    for (Operation *user : value.getUsers())
      last = std::max(last, phaseOf(user));
    return {first, last};
  }
  const Phases &phases;
  int64_t rows;
};

bool canRunAgain(mt::KernelOp kernel) {
  return !kernel.getRecomputed() && !mt::turnOf(kernel) && mt::infoOf(kernel.getKind()).runsAgain &&
         llvm::all_of(kernel->getResultTypes(), mt::isSplit);
}

int64_t flopsOf(mt::KernelOp kernel, int64_t rows) {
  int64_t flops = 0;
  for (Operation &op : kernel->getRegion(0).front())
    if (auto cost = dyn_cast<mt::CostOpInterface>(op))
      flops += cost.getFlops();
  return flops * rows;
}

// A reader in the phase after the peak needs the result in memory at nearly the same time, wherever it is computed.
constexpr int64_t nearPeak = 1;

Candidate candidateOf(mt::KernelOp kernel, const Lives &lives, const SecondRuns &second, int64_t rows) {
  Candidate candidate = {kernel, {}, 0, flopsOf(kernel, rows), 0};
  for (OpResult result : kernel->getResults()) {
    bool near = false, late = false;
    for (OpOperand &use : result.getUses()) {
      int64_t phase = lives.phaseOf(use.getOwner());
      near |= phase >= lives.peak && phase <= lives.peak + nearPeak;
      late |= phase > lives.peak + nearPeak;
      if (phase > lives.peak + nearPeak && isa<mt::KernelOp>(use.getOwner()))
        candidate.late.push_back(&use);
    }
    candidate.savedBytes += late && !near ? lives.bytes(result) : 0;
  }
  llvm::SmallPtrSet<Value, 4> seen;
  for (Value operand : kernel->getOperands())
    if (seen.insert(operand).second && !second.contains(operand) && lives.wouldHold(operand))
      candidate.savedBytes -= lives.bytes(operand);
  return candidate;
}

} // namespace

std::vector<Candidate> findCandidates(mt::ProgramOp program, const Phases &phases, const SecondRuns &second,
                                      int64_t rows) {
  Lives lives(program, phases, rows);
  std::vector<Candidate> candidates;
  for (auto kernel : program.getBody().front().getOps<mt::KernelOp>()) {
    if (!canRunAgain(kernel) || second.contains(kernel->getResult(0)) || lives.phaseOf(kernel) >= lives.peak)
      continue;
    Candidate candidate = candidateOf(kernel, lives, second, rows);
    if (candidate.savedBytes > 0 && !candidate.late.empty())
      candidates.push_back(std::move(candidate));
  }
  for (size_t i = 0; i < candidates.size(); ++i)
    candidates[i].position = i;
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    auto worth = [](const Candidate &c) {
      return static_cast<double>(c.savedBytes) / static_cast<double>(1 + c.flops);
    };
    return worth(a) != worth(b) ? worth(a) > worth(b) : a.position < b.position;
  });
  return candidates;
}

} // namespace mtc
