// SPDX-License-Identifier: Apache-2.0
//
// plan-check: checks that conflicting accesses to each byte are ordered, for every number of shards that a device may
// hold. The pass shares no code with the passes that it checks; PlanCheck.h describes the model. The kernel kind
// determines which operands a kernel may overwrite (dialects/mt/KernelKinds.h).
#include "compiler/allocate/PlanCheck.h"
#include "compiler/Passes.h"
#include "dialects/mt/Blocks.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/mt/Tails.h"

#include "llvm/ADT/StringMap.h"

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

// Whether the kernel may write argument `written` over argument `read`: each element is read just before it is written.
static bool readsInPlace(plan::KernelOp kernel, unsigned read, unsigned written) {
  Block &body = kernel.getBody().front();
  return mt::mayOverwrite(kernel.getKind(), body, read, written - body.getNumArguments());
}

// If a kernel writes a part of its result, the rest of the result must be the operand's, in the same buffer.
static bool keepsRest(plan::KernelOp kernel, const Access &read, const Access &write) {
  Block &body = kernel.getBody().front();
  Value result = body.getTerminator()->getOperand(write.argument - body.getNumArguments());
  std::optional<mt::PlacedPart> placed = mt::placedPartOf(result);
  return !placed || (!read.write && read.segment == write.segment && read.bytes == write.bytes &&
                     placed->whole == body.getArgument(read.argument));
}

// Whether a read may share bytes with a write of another tile, because both access the same element.
static bool isInPlace(plan::KernelOp kernel, const Access &access, const Access &write) {
  return !access.write && access.segment == write.segment && access.bytes == write.bytes &&
         readsInPlace(kernel, access.argument, write.argument);
}

// Whether two accesses of a launch conflict. A launch may have thousands of accesses.
static bool haveConflict(plan::KernelOp kernel, ArrayRef<Access> accesses) {
  // for each memory, the writes by their first byte; they do not overlap
  llvm::StringMap<std::map<int64_t, const Access *>> writes;
  auto conflicts = [&](const Access &access, auto accepts) {
    auto &sameMemory = writes[access.bytes.memory];
    auto at = sameMemory.upper_bound(access.bytes.begin);
    if (at != sameMemory.begin())
      --at;
    for (; at != sameMemory.end() && at->first < access.bytes.end; ++at)
      if (access.bytes.overlaps(at->second->bytes) && !accepts(*at->second))
        return true;
    return false;
  };
  for (const Access &write : accesses)
    if (write.write) {
      if (conflicts(write, [](const Access &) { return false; }))
        return true;
      writes[write.bytes.memory].try_emplace(write.bytes.begin, &write);
    }
  return llvm::any_of(accesses, [&](const Access &read) {
    return !read.write && conflicts(read, [&](const Access &write) { return isInPlace(kernel, read, write); });
  });
}

static LogicalResult checkLaunch(const CheckedStep &step, size_t index, SymbolTable &symbols, bool alone) {
  auto launch = dyn_cast<plan::LaunchOp>(step.op);
  if (!launch)
    return success();
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  if (!kernel)
    return launch.emitOpError("expected a plan.kernel, found no @") << launch.getKernel();
  ArrayRef<Access> others = step.accesses;
  if (!haveConflict(kernel, others))
    others = {};
  for (const Access &write : step.accesses) {
    if (!write.write)
      continue;
    if (write.byAll && !launch.getShare())
      return launch.emitOpError("expected `share` on a launch that writes ")
             << describe(write.bytes) << ", found none at " << describe(step, index);
    if (llvm::none_of(step.accesses, [&](const Access &read) { return keepsRest(kernel, read, write); }))
      return launch.emitOpError("expected a part of ")
             << describe(write.bytes) << " to be written in place, found the rest in another buffer at "
             << describe(step, index);
    for (const Access &other : others)
      if (&other != &write && other.bytes.overlaps(write.bytes) && !isInPlace(kernel, other, write))
        return launch.emitOpError("expected tiles that do not touch each other's elements, found two uses of ")
               << describe(other.bytes) << " in " << describe(step, index);
  }
  if (launch.getShare() && !alone)
    for (const Access &access : step.accesses)
      if (access.bytes.memory == "arena" || StringRef(access.bytes.memory).starts_with("signature"))
        return launch.emitOpError("expected only memory that devices share in a launch with `share`, found ")
               << describe(access.bytes);
  return success();
}

namespace {
// For each byte, the last accesses with which a later access may conflict, as 1 + the number of their step; 0: none. A
// write that is in order replaces the accesses before it, because any access that conflicts with one of them conflicts
// with the write.
class LastAccesses {
public:
  struct Last {
    size_t read = 0, write = 0;           // by this device, or by all devices
    size_t readByAll = 0, writeByAll = 0; // by all devices
  };

  void add(const Access &access, size_t step) {
    const Bytes &bytes = access.bytes;
    if (bytes.begin >= bytes.end)
      return;
    Pieces &pieces = memories[bytes.memory];
    split(pieces, bytes.begin);
    split(pieces, bytes.end);
    auto first = pieces.lower_bound(bytes.begin), last = pieces.lower_bound(bytes.end);
    if (access.write) {
      pieces.erase(first, last);
      pieces[bytes.begin] = {bytes.end, {0, step + 1, 0, access.byAll ? step + 1 : 0}};
      return;
    }
    auto read = [&](Last &of) { (access.byAll ? of.readByAll : of.read) = of.read = step + 1; };
    for (int64_t from = bytes.begin; from < bytes.end;) {
      int64_t to = first == pieces.end() ? bytes.end : std::min(first->first, bytes.end);
      if (from < to) {
        read(pieces.emplace(from, Piece{to, {}}).first->second.last);
      } else {
        to = first->second.end;
        read(first++->second.last);
      }
      from = to;
    }
  }

  // Whether the condition holds for any of the bytes.
  bool any(const Bytes &bytes, llvm::function_ref<bool(const Last &)> holds) {
    Pieces &pieces = memories[bytes.memory];
    auto at = pieces.upper_bound(bytes.begin);
    if (at != pieces.begin() && std::prev(at)->second.end > bytes.begin)
      --at;
    for (; at != pieces.end() && at->first < bytes.end; ++at)
      if (holds(at->second.last))
        return true;
    return false;
  }

private:
  struct Piece {
    int64_t end;
    Last last;
  };
  using Pieces = std::map<int64_t, Piece>; // by their first byte; they do not overlap
  static void split(Pieces &pieces, int64_t at) {
    auto next = pieces.lower_bound(at);
    if (next == pieces.begin() || std::prev(next)->second.end <= at)
      return;
    Piece &piece = std::prev(next)->second;
    pieces.emplace_hint(next, at, piece);
    piece.end = at;
  }
  llvm::StringMap<Pieces> memories;
};
} // namespace

// Emits an error that names the first earlier step with which an access of the step conflicts.
static LogicalResult reportConflict(ArrayRef<CheckedStep> steps, size_t index, size_t deviceBarrier,
                                    size_t allBarrier) {
  const CheckedStep &step = steps[index];
  for (size_t earlier = allBarrier; earlier < index; ++earlier)
    for (const Access &a : steps[earlier].accesses)
      for (const Access &b : step.accesses) {
        bool all = a.byAll || b.byAll;
        if (!(a.write || b.write) || !a.bytes.overlaps(b.bytes) || (!all && earlier < deviceBarrier))
          continue;
        return step.op->emitOpError("expected a barrier of ")
               << (all ? "all devices" : "the device") << " between " << describe(steps[earlier], earlier) << " and "
               << describe(step, index) << ", which both use " << describe(b.bytes) << ", found none";
      }
  return success();
}

LogicalResult checkOrder(ArrayRef<CheckedStep> steps, SymbolTable &symbols, bool alone) {
  size_t deviceBarrier = 0, allBarrier = 0; // the last step with a barrier of the device, or of all devices, before it
  LastAccesses accesses;
  for (auto [index, step] : llvm::enumerate(steps)) {
    if (step.before != Barrier::none)
      deviceBarrier = index;
    if (step.before == Barrier::all)
      allBarrier = index;
    if (failed(checkLaunch(step, index, symbols, alone)))
      return failure();
    for (const Access &access : step.accesses) {
      bool conflicts = accesses.any(access.bytes, [&](const LastAccesses::Last &last) {
        size_t own = access.write ? std::max(last.read, last.write) : last.write;
        size_t byAll = access.write ? std::max(last.readByAll, last.writeByAll) : last.writeByAll;
        return own > (access.byAll ? allBarrier : deviceBarrier) || byAll > allBarrier;
      });
      if (conflicts && failed(reportConflict(steps, index, deviceBarrier, allBarrier)))
        return failure();
    }
    for (const Access &access : step.accesses)
      accesses.add(access, index);
  }
  return success();
}

namespace {
// The value that each byte of a memory holds.
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
  using Pieces = std::map<int64_t, Piece>; // by their first byte; they do not overlap
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

// Adds the reads of reported scalars, which happen after the program.
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
        // A device with all shards is the only device.
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
    if (failed(checkOrder(steps, symbols, alone)) || failed(checkValues(withReports, alone)))
      return failure();
    auto isTail = [](const CheckedStep &step) { return mt::isTail(step.op); };
    return llvm::any_of(steps, isTail) ? checkOrder(modelWithTails(steps), symbols, alone) : success();
  }
};

} // namespace
} // namespace mtc
