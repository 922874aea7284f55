// SPDX-License-Identifier: Apache-2.0
//
// mt-recompute: rematerialization. Runs cheap kernels of the forward pass a second time before their readers in the
// backward pass, until the step fits in the memory of a device.
//
// Each round schedules and allocates a copy of the program, which yields the memory of the step and its peak phase.
// Then it chooses, of the kernels whose results are live at the peak without being used there, the kernels that save
// the most bytes per FLOP. The second run of a kernel reads the second runs of its operands if they have one. The
// length of a chain of second runs is limited, and the operands of a chain stay in memory: without a limit everything
// would be computed again from the inputs at once, which raises the peak. Chains of length 1 are tried first; longer
// chains are tried only if the step does not fit. A second run computes the same bits.
#include "compiler/Passes.h"
#include "compiler/recompute/Candidates.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tails.h"
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

// Number of rounds without progress after which the pass gives up: two phases may have equal peaks, so one round is not
// enough.
constexpr int maxIdleRounds = 8;

// The program as the following stages would schedule and allocate it.
struct Trial {
  int64_t bytes = 0; // memory of a device that has all shards
  Phases phases;     // phases of the program's own kernels
};

class ProgramRecompute {
public:
  ProgramRecompute(ModuleOp module, mt::ProgramOp program, const KernelScratch &scratchOf, int64_t limit, int64_t rows,
                   int64_t microBatches, bool gpus)
      : module(module), program(program), scratchOf(scratchOf), limit(limit), rows(rows), microBatches(microBatches) {
    schedule.gpus = allocate.segments = gpus;
  }

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

  // Runs the following stages in a module of its own.
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
    if (failed(pass(*scratch, createSchedule(schedule))))
      return failure();
    llvm::DenseMap<Operation *, int64_t> phases;
    int64_t phase = 0;
    bool afterReduce = false;
    for (Operation &op : (*scratch->getOps<mt::ProgramOp>().begin()).getBody().front()) {
      auto kernel = dyn_cast<mt::KernelOp>(op);
      std::optional<mt::Wait> wait = kernel ? kernel.getWait() : std::nullopt;
      bool reduce = isa<shard::AllReduceOp>(op);
      phase += reduce || (wait && (afterReduce || (wait != mt::Wait::none && !mt::isTail(&op))));
      afterReduce = reduce || (afterReduce && !wait);
      phases[&op] = phase;
    }
    trial.phases.clear();
    for (Operation &op : program.getBody().front())
      trial.phases[&op] = phases.lookup(mapping.lookup(&op));
    if (failed(pass(*scratch, createAllocate(allocate))))
      return failure();
    if (!kernelScratch) { // second runs are the same kernels and need the same scratch memory
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

  // Chooses as many kernels as should suffice, by the memory that they save at the peak.
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

  // Length of the longest chain of chosen kernels that ends in an operand of the kernel, or begins with a reader.
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
    // Kernels that are second runs themselves are late readers too.
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
  int64_t limit, rows, microBatches; // rows: rows of a device at one time
  ScheduleOptions schedule;
  AllocateOptions allocate;
  std::optional<int64_t> kernelScratch;
  llvm::DenseSet<Operation *> chosen; // first runs
  SecondRuns second;                  // from results of the first run to results of the second run
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
      if (failed(ProgramRecompute(module, program, scratch, deviceMemory, rows, microBatches, gpus).run()))
        return signalPassFailure();
  }

  KernelScratch scratch;
};

} // namespace

std::unique_ptr<Pass> createRecompute(RecomputeOptions options, KernelScratch scratch) {
  return std::make_unique<Recompute>(options, std::move(scratch));
}

} // namespace mtc
