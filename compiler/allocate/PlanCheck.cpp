// SPDX-License-Identifier: Apache-2.0
//
// plan-check: proves that any two conflicting accesses to a byte are ordered, for every number of shards that a device
// can hold. It shares no code with the passes that it checks; PlanCheck.h states the model. Which kernels may write
// over an operand is a fact of their kind (dialects/mt/KernelKinds.h).
#include "compiler/allocate/PlanCheck.h"
#include "compiler/Passes.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/MtDialect.h"

#include <map>

namespace mtc {
#define GEN_PASS_DEF_PLANCHECK
#include "compiler/Passes.h.inc"

using namespace mlir;

static std::string describe(const CheckedStep &step, size_t index) {
  std::string text = "step " + std::to_string(index);
  if (auto launch = dyn_cast<plan::LaunchOp>(step.op))
    text += " (@" + launch.getKernel().str() + ")";
  else
    text += " (all-reduce)";
  return text;
}

static std::string describe(const Bytes &bytes) {
  return "bytes " + std::to_string(bytes.begin) + " to " + std::to_string(bytes.end) + " of " + bytes.memory;
}

// The first kernel argument may be read while the second is written in place: each element just before it is written.
static bool readsInPlace(plan::KernelOp kernel, unsigned read, unsigned written) {
  Block &body = kernel.getBody().front();
  return mt::mayOverwrite(kernel.getKind(), body, read, written - body.getNumArguments());
}

// Where a kernel writes a part of its result, the rest is what it was: the operand, in the same place.
static bool keepsRest(plan::KernelOp kernel, const Access &read, const Access &write) {
  Block &body = kernel.getBody().front();
  Value result = body.getTerminator()->getOperand(write.argument - body.getNumArguments());
  std::optional<mt::PlacedPart> placed = mt::placedPartOf(result);
  return !placed || (!read.write && read.segment == write.segment && read.bytes == write.bytes &&
                     placed->whole == body.getArgument(read.argument));
}

static LogicalResult checkLaunch(const CheckedStep &step, size_t index, SymbolTable &symbols, bool alone) {
  auto launch = dyn_cast<plan::LaunchOp>(step.op);
  if (!launch)
    return success();
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  if (!kernel)
    return launch.emitOpError("expected a plan.kernel, found no @") << launch.getKernel();
  for (const Access &write : step.accesses) {
    if (!write.write)
      continue;
    if (write.byAll && !launch.getShare())
      return launch.emitOpError("expected `share` on a launch that writes ")
             << describe(write.bytes) << ", found none at " << describe(step, index);
    if (llvm::none_of(step.accesses, [&](const Access &read) { return keepsRest(kernel, read, write); }))
      return launch.emitOpError("expected a part of ")
             << describe(write.bytes) << " to be written in place, found the rest elsewhere at "
             << describe(step, index);
    for (const Access &other : step.accesses) {
      if (&other == &write || !other.bytes.overlaps(write.bytes))
        continue;
      bool inPlace = !other.write && other.segment == write.segment && other.bytes == write.bytes &&
                     readsInPlace(kernel, other.argument, write.argument);
      if (!inPlace)
        return launch.emitOpError("expected tiles that do not touch each other's elements, found two uses of ")
               << describe(other.bytes) << " in " << describe(step, index);
    }
  }
  if (launch.getShare() && !alone)
    for (const Access &access : step.accesses)
      if (access.bytes.memory == "arena" || StringRef(access.bytes.memory).starts_with("signature"))
        return launch.emitOpError("expected only memory that devices share in a launch with `share`, found ")
               << describe(access.bytes);
  return success();
}

LogicalResult checkOrder(ArrayRef<CheckedStep> steps, SymbolTable &symbols, bool alone) {
  size_t deviceBarrier = 0, allBarrier = 0; // the last step before which such a barrier stands
  std::vector<bool> byAll;                  // of each step: whether it touches what other devices touch
  for (auto [index, step] : llvm::enumerate(steps)) {
    byAll.push_back(llvm::any_of(step.accesses, [](const Access &access) { return access.byAll; }));
    if (step.before != Barrier::none)
      deviceBarrier = index;
    if (step.before == Barrier::all)
      allBarrier = index;
    if (failed(checkLaunch(step, index, symbols, alone)))
      return failure();
    for (size_t earlier = allBarrier; earlier < index; ++earlier) {
      if (earlier < deviceBarrier && !byAll[earlier] && !byAll[index])
        continue;
      for (const Access &a : steps[earlier].accesses)
        for (const Access &b : step.accesses) {
          if (!(a.write || b.write) || !a.bytes.overlaps(b.bytes))
            continue;
          bool all = a.byAll || b.byAll;
          if (!all && earlier < deviceBarrier)
            continue;
          return step.op->emitOpError("expected a barrier of ")
                 << (all ? "all devices" : "the device") << " between " << describe(steps[earlier], earlier) << " and "
                 << describe(step, index) << ", which both use " << describe(b.bytes) << ", found none";
        }
    }
  }
  return success();
}

namespace {
// Which value each byte of a memory holds.
class Owners {
public:
  void write(const Bytes &bytes, Value value) {
    if (bytes.begin >= bytes.end)
      return;
    Pieces &pieces = memories[bytes.memory];
    for (auto at = firstOver(pieces, bytes); at != pieces.end() && at->first < bytes.end;) {
      auto [begin, piece] = *at;
      at = pieces.erase(at);
      if (begin < bytes.begin)
        pieces[begin] = {bytes.begin, piece.value};
      if (piece.end > bytes.end)
        pieces[bytes.end] = {piece.end, piece.value};
    }
    pieces[bytes.begin] = {bytes.end, value};
  }
  bool holds(const Bytes &bytes, Value value) {
    int64_t held = 0;
    Pieces &pieces = memories[bytes.memory];
    for (auto at = firstOver(pieces, bytes); at != pieces.end() && at->first < bytes.end; ++at)
      if (at->second.value == value)
        held += std::min(at->second.end, bytes.end) - std::max(at->first, bytes.begin);
    return held == bytes.end - bytes.begin;
  }

private:
  struct Piece {
    int64_t end;
    Value value;
  };
  using Pieces = std::map<int64_t, Piece>; // by their first byte; none overlap
  static Pieces::iterator firstOver(Pieces &pieces, const Bytes &bytes) {
    auto at = pieces.lower_bound(bytes.begin);
    return at != pieces.begin() && std::prev(at)->second.end > bytes.begin ? std::prev(at) : at;
  }
  std::map<std::string, Pieces> memories;
};
} // namespace

LogicalResult checkValues(ArrayRef<CheckedStep> steps, bool alone) {
  Owners owners;
  for (auto [index, step] : llvm::enumerate(steps)) {
    for (const Access &access : step.accesses) {
      bool temporary = access.bytes.memory == "arena" || access.bytes.memory == "shared";
      if (temporary && !access.write && !owners.holds(access.bytes, access.buffer))
        return step.op->emitOpError("expected ")
               << describe(access.bytes) << " to hold \"" << access.buffer.getDefiningOp<plan::BufferOp>().getName()
               << "\", found another value or none at " << describe(step, index);
    }
    for (const Access &access : step.accesses)
      if (access.write)
        owners.write(access.bytes, access.buffer);
  }
  return success();
}

// Reported scalars are read when the program is done.
static void addReports(plan::ProgramOp program, std::vector<CheckedStep> &steps,
                       std::vector<CheckedStep> &withReports) {
  withReports = steps;
  for (Operation &op : program.getBody().front())
    for (Value value : isa<plan::ResultOp, plan::RateOp>(op) ? op.getOperands() : ValueRange())
      for (const CheckedStep &step : steps)
        for (const Access &access : step.accesses)
          if (access.write && access.buffer == value) {
            Access read = access;
            read.write = false;
            withReports.push_back({&op, Barrier::all, {read}});
          }
}

namespace {

struct PlanCheck : impl::PlanCheckBase<PlanCheck> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    int64_t shardRows = mt::Compilation(getOperation()).getShardRows();
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      size_t variants = program.getVariantArena().size();
      for (size_t variant = 0; variant < variants; ++variant) {
        int64_t rows = (int64_t(1) << variant) * shardRows;
        // A device with all shards is alone; any other has company.
        if (failed(check(program, symbols, variant, rows, variant + 1 == variants)))
          return signalPassFailure();
      }
    }
  }

private:
  LogicalResult check(plan::ProgramOp program, SymbolTable &symbols, size_t variant, int64_t rows, bool alone) {
    std::vector<CheckedStep> steps = modelOf(program, variant, rows, alone), withReports;
    for (auto [index, step] : llvm::enumerate(steps))
      for (const Access &access : step.accesses)
        if (access.bytes.memory == "arena" && access.bytes.end > program.getVariantArena()[variant])
          return step.op->emitOpError("expected an arena of ")
                 << access.bytes.end << " bytes, found " << program.getVariantArena()[variant];
    addReports(program, steps, withReports);
    return success(succeeded(checkOrder(steps, symbols, alone)) && succeeded(checkValues(withReports, alone)));
  }
};

} // namespace
} // namespace mtc
