// SPDX-License-Identifier: Apache-2.0
//
// mt-recompute: runs cheap kernels of the forward pass a second time before their readers of the backward pass, until
// the step fits in a device's memory.
//
// In rounds: schedule and allocate a copy, which says what the step needs and which phase is the fullest; take the
// kernels whose results wait there that save the most bytes per FLOP; look again. The second run of a kernel reads the
// second run of its operands where there is one. The length of such chains is bounded: what begins a chain stays in
// memory. Unbounded chains would compute everything again from the inputs at once, and raise the peak. Length 1 comes
// first, and longer chains only where the step does not fit. A second run computes the same, so every bit stays.
#include "compiler/Passes.h"
#include "compiler/recompute/Candidates.h"
#include "dialects/mt/Compilation.h"
#include "dialects/plan/DeviceMemory.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"

namespace mtc {
#define GEN_PASS_DEF_RECOMPUTE
#include "compiler/Passes.h.inc"

using namespace mlir;

namespace {

// Rounds without less memory, after which there is nothing more to expect: two phases may be equally full.
constexpr int maxIdleRounds = 8;

// A program as the next stages would make it.
struct Trial {
  int64_t bytes = 0; // of a device that has all shards
  Phases phases;     // of the program's own kernels
};

class ProgramRecompute {
public:
  ProgramRecompute(ModuleOp module, mt::ProgramOp program, const KernelScratch &scratchOf, int64_t limit, int64_t rows,
                   int64_t microBatches)
      : module(module), program(program), scratchOf(scratchOf), limit(limit), rows(rows), microBatches(microBatches) {}

  LogicalResult run() {
    Trial trial;
    if (failed(tryOut(trial)))
      return failure();
    OwningOpRef<mt::ProgramOp> original = program.clone(), best;
    int64_t bestBytes = trial.bytes;
    for (unsigned longest : {1, 3, 5, 9, 17, 33}) {
      if (bestBytes <= limit)
        break;
      chosen.clear();
      second.clear();
      OwningOpRef<mt::ProgramOp> start = original->clone();
      program.getBody().takeBody(start->getBody());
      if (failed(attempt(longest, bestBytes, best)))
        return failure();
    }
    if (best)
      program.getBody().takeBody(best->getBody());
    else
      program.getBody().takeBody(original->getBody());
    return success();
  }

private:
  LogicalResult attempt(unsigned longest, int64_t &bestBytes, OwningOpRef<mt::ProgramOp> &best) {
    Trial trial;
    for (int idle = 0; idle < maxIdleRounds; ++idle) {
      if (failed(tryOut(trial)))
        return failure();
      if (trial.bytes < bestBytes) {
        bestBytes = trial.bytes;
        best = program.clone();
        idle = 0;
      }
      if (trial.bytes <= limit || !recomputeSome(trial, longest))
        break;
    }
    return success();
  }

  // In a module of its own.
  LogicalResult tryOut(Trial &trial) {
    OpBuilder builder(module.getContext());
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(module.getLoc());
    (*scratch)->setAttrs(module->getAttrDictionary());
    builder.setInsertionPointToEnd(scratch->getBody());
    for (Operation &op : *module.getBody())
      if (!isa<mt::ProgramOp>(op))
        builder.clone(op);
    IRMapping mapping;
    builder.clone(*program.getOperation(), mapping);
    if (failed(pass(*scratch, createSchedule())))
      return failure();
    llvm::DenseMap<Operation *, int64_t> phases;
    int64_t phase = 0;
    bool afterReduce = false;
    for (Operation &op : (*scratch->getOps<mt::ProgramOp>().begin()).getBody().front()) {
      auto kernel = dyn_cast<mt::KernelOp>(op);
      std::optional<mt::Wait> wait = kernel ? kernel.getWait() : std::nullopt;
      bool reduce = isa<shard::AllReduceOp>(op);
      phase += reduce || (wait && (afterReduce || wait != mt::Wait::none));
      afterReduce = reduce || (afterReduce && !wait);
      phases[&op] = phase;
    }
    trial.phases.clear();
    for (Operation &op : program.getBody().front())
      trial.phases[&op] = phases.lookup(mapping.lookup(&op));
    if (failed(pass(*scratch, createAllocate())))
      return failure();
    if (!kernelScratch) { // second runs are the same kernels
      FailureOr<int64_t> most = scratchOf ? scratchOf(*scratch) : 0;
      if (failed(most))
        return failure();
      kernelScratch = *most;
    }
    trial.bytes = static_cast<int64_t>(plan::deviceMemory(*scratch, *kernelScratch, microBatches).back().bytes());
    return success();
  }

  LogicalResult pass(ModuleOp scratch, std::unique_ptr<Pass> one) {
    PassManager passes(module.getContext(), ModuleOp::getOperationName());
    passes.enableVerifier(false);
    passes.addPass(std::move(one));
    return passes.run(scratch);
  }

  // As many as should do, by what they save at the peak.
  bool recomputeSome(const Trial &trial, unsigned longest) {
    int64_t missing = trial.bytes - limit;
    bool any = false;
    for (Candidate &candidate : findCandidates(program, trial.phases, second, rows)) {
      if (missing <= 0)
        break;
      if (chainBefore(candidate.kernel) + 1 + chainAfter(candidate.kernel) > longest)
        continue;
      missing -= candidate.savedBytes;
      recompute(candidate);
      any = true;
    }
    return any;
  }

  // The longest chain of chosen kernels that ends in an operand, or begins with a reader.
  unsigned chainBefore(mt::KernelOp kernel) const {
    unsigned most = 0;
    for (Value operand : kernel->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && chosen.contains(from))
        most = std::max(most, 1 + chainBefore(cast<mt::KernelOp>(from)));
    return most;
  }
  unsigned chainAfter(mt::KernelOp kernel) const {
    unsigned most = 0;
    for (Operation *user : kernel->getUsers())
      if (chosen.contains(user))
        most = std::max(most, 1 + chainAfter(cast<mt::KernelOp>(user)));
    return most;
  }

  void recompute(Candidate &candidate) {
    chosen.insert(candidate.kernel);
    OpBuilder builder(candidate.kernel);
    builder.setInsertionPointAfter(candidate.kernel);
    auto again = cast<mt::KernelOp>(builder.clone(*candidate.kernel));
    again.setRecomputed(true);
    for (OpOperand &operand : again->getOpOperands())
      if (Value late = second.lookup(operand.get()))
        operand.set(late);
    // Kernels that run again themselves are late readers too.
    auto late = [&](OpOperand &use) {
      auto reader = dyn_cast<mt::KernelOp>(use.getOwner());
      return llvm::is_contained(candidate.late, &use) || (reader && reader.getRecomputed());
    };
    for (auto [result, copy] : llvm::zip(candidate.kernel->getResults(), again->getResults())) {
      result.replaceUsesWithIf(copy, late);
      second[result] = copy;
    }
  }

  ModuleOp module;
  mt::ProgramOp program;
  const KernelScratch &scratchOf;
  int64_t limit, rows, microBatches; // rows: that a device has at once
  std::optional<int64_t> kernelScratch;
  llvm::DenseSet<Operation *> chosen; // of the first runs
  SecondRuns second;                  // result of the first run, of the second
};

struct Recompute : impl::RecomputeBase<Recompute> {
  using RecomputeBase::RecomputeBase;
  Recompute(const RecomputeOptions &options, KernelScratch scratch)
      : RecomputeBase(options), scratch(std::move(scratch)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    mt::Compilation compilation(module);
    if (!compilation.isSplit()) {
      module.emitError("expected `shards` and `shard_rows` in the module's `mt.compilation`, found none");
      return signalPassFailure();
    }
    if (deviceMemory <= 0)
      return;
    int64_t rows = compilation.getShards() / microBatches * compilation.getShardRows();
    for (auto program : module.getOps<mt::ProgramOp>())
      if (failed(ProgramRecompute(module, program, scratch, deviceMemory, rows, microBatches).run()))
        return signalPassFailure();
  }

  KernelScratch scratch;
};

} // namespace

std::unique_ptr<Pass> createRecompute(RecomputeOptions options, KernelScratch scratch) {
  return std::make_unique<Recompute>(options, std::move(scratch));
}

} // namespace mtc
