// SPDX-License-Identifier: Apache-2.0
//
// mt-allocate: assigns a buffer to every value and rewrites programs to the plan dialect. Kernels are outlined, equal
// kernels once. Elementwise launches of one kernel are merged; for GPUs, so are others. Each variant, a number of
// shards that a device may hold, has an arena layout of its own.
#include "compiler/Passes.h"
#include "compiler/allocate/Budget.h"
#include "compiler/allocate/BufferAssignment.h"
#include "compiler/allocate/Kernels.h"
#include "compiler/allocate/Pack.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/Tails.h"
#include "dialects/plan/DeviceMemory.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mtc {
#define GEN_PASS_DEF_ALLOCATE
#include "compiler/Passes.h.inc"

using namespace mlir;
using plan::Space;

namespace {

// Constants of all programs; equal constants are stored once.
class ConstantTable {
public:
  int64_t offsetOf(Attribute value, int64_t bytes) {
    auto [entry, fresh] = offsets.try_emplace(value, end);
    if (fresh)
      end += alignBuffer(bytes);
    return entry->second;
  }

private:
  llvm::DenseMap<Attribute, int64_t> offsets;
  int64_t end = 0;
};

// Whether a device computes a shard in parts, whose values stay in the cache next to the CPU: the values of all shards
// are larger than the last cache, and the sums that stay in memory for the next part are small.
bool needsParts(const BufferAssignment &assignment, const ContinuedSums &sums) {
  constexpr int64_t lastCache = int64_t(1) << 24, small = 32;
  int64_t bytes = 0;
  for (Value sum : sums)
    bytes += plan::bytesOfType(sum.getType());
  return !sums.empty() && assignment.arenaBytes.back() >= lastCache && bytes * small <= assignment.arenaBytes.front();
}

// Writes one plan.program.
class ProgramWriter {
public:
  ProgramWriter(mt::ProgramOp source, KernelTable &kernels, ConstantTable &constants,
                const std::vector<PlanEntry> &entries, BufferAssignment &assignment, const ContinuedSums &continued,
                OpBuilder builder)
      : source(source), kernels(kernels), constants(constants), entries(entries), assignment(assignment),
        continued(continued), builder(builder) {}

  void write() {
    Location location = source.getLoc();
    auto program = plan::ProgramOp::create(builder, location, source.getSymName(), assignment.arenaBytes,
                                           assignment.boundBytes, assignment.sharedBytes);
    program.setParts(!continued.empty());
    Block *body = builder.createBlock(&program.getBody());
    builder.setInsertionPointToEnd(body);
    writeSignature();
    int64_t order = 0;
    for (size_t entry = 0; entry < entries.size(); ++entry) {
      if (entries[entry].reduces.empty())
        writeLaunch(entries[entry]);
      else
        writeReduce(entries[entry], order++, assignment.bucketBytes[entry]);
    }
    for (auto result : source.getBody().front().getOps<mt::ResultOp>()) {
      Value value = buffer(result.getValue()), weight = buffer(result.getWeight());
      plan::ResultOp::create(builder, result.getLoc(), result.getName(), value, weight, result.getLoss(),
                             plan::Finalizer(uint32_t(result.getFinalizer())),
                             cast<RankedTensorType>(result.getValue().getType()).getShape(),
                             plan::Better(uint32_t(result.getBetter())), result.getParameters());
    }
    for (auto rate : source.getBody().front().getOps<mt::RateOp>()) {
      Value value = buffer(rate.getValue());
      plan::RateOp::create(builder, rate.getLoc(), value);
    }
    // Moves all buffers to the front: they were created at their first use.
    Operation *firstOther = nullptr;
    for (Operation &op : llvm::make_early_inc_range(*body)) {
      if (isa<plan::SignatureOp>(op))
        continue;
      if (!isa<plan::BufferOp>(op)) {
        firstOther = firstOther ? firstOther : &op;
      } else if (firstOther) {
        op.moveBefore(firstOther);
      }
    }
  }

private:
  void writeSignature() {
    for (Operation &op : source.getBody().front()) {
      if (!isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp, mt::OutputOp>(op))
        continue;
      plan::Role role = isa<mt::InputOp>(op)          ? plan::Role::input
                        : isa<mt::TargetOp>(op)       ? plan::Role::target
                        : isa<mt::SampleWeightOp>(op) ? plan::Role::sample_weight
                                                      : plan::Role::output;
      Type type = isa<mt::OutputOp>(op) ? op.getOperand(0).getType() : op.getResult(0).getType();
      plan::SignatureOp::create(builder, op.getLoc(), op.getAttrOfType<StringAttr>("name"),
                                plan::RoleAttr::get(builder.getContext(), role), TypeAttr::get(type),
                                op.getAttrOfType<IntegerAttr>("limit"));
    }
  }

  Value buffer(Value value) {
    const ValueBuffer &buffer = assignment.buffers.find(value)->second;
    // There is one buffer per variable or value of the signature, and otherwise one per value.
    Value &result =
        buffer.ref.empty() ? byValue[value] : byName[(buffer.space == Space::variable ? "v" : "s") + buffer.ref];
    if (result)
      return result;
    SmallVector<int64_t> offsets;
    ElementsAttr constant;
    if (buffer.allocation >= 0)
      for (int64_t offset : assignment.allocations[buffer.allocation].offsets)
        offsets.push_back(offset + buffer.offset);
    if (buffer.space == Space::constant) {
      constant = value.getDefiningOp<mt::ConstantOp>().getValue();
      offsets.push_back(constants.offsetOf(constant, plan::bytesOfType(value.getType())));
    }
    auto type = plan::BufferType::get(builder.getContext(), cast<RankedTensorType>(value.getType()));
    StringAttr ref = buffer.ref.empty() ? StringAttr() : builder.getStringAttr(buffer.ref);
    return result = plan::BufferOp::create(builder, value.getLoc(), type, builder.getStringAttr(buffer.name),
                                           plan::SpaceAttr::get(builder.getContext(), buffer.space),
                                           builder.getDenseI64ArrayAttr(offsets), ref, constant);
  }

  void writeLaunch(const PlanEntry &entry) {
    SmallVector<Value> reads, writes;
    SmallVector<int64_t> counts;
    for (mt::KernelOp kernel : entry.segments) {
      for (Value operand : kernel->getOperands())
        reads.push_back(buffer(operand));
      for (Value result : kernel->getResults())
        writes.push_back(buffer(result));
      bool isElementwise = kernel.getKind() == mt::KernelKind::elementwise;
      counts.push_back(isElementwise ? mt::elementsPerRow(kernel->getResult(0).getType()) : 0);
    }
    mt::KernelOp first = entry.segments.front();
    FlatSymbolRefAttr symbol = kernels.outline(first, entry.key, entry.tails);
    if (!first->getResults().empty() && continued.contains(first->getResult(0)))
      SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(source, symbol).setContinues(true);
    SmallVector<Location> locations;
    for (mt::KernelOp kernel : entry.segments)
      locations.push_back(kernel.getLoc());
    auto launch = plan::LaunchOp::create(
        builder, builder.getFusedLoc(locations), symbol, reads, writes, builder.getDenseI64ArrayAttr(counts),
        plan::WaitAttr::get(builder.getContext(), entry.wait), entry.share ? builder.getUnitAttr() : UnitAttr());
    if (entry.isTail)
      mt::markTail(launch);
  }

  void writeReduce(const PlanEntry &entry, int64_t order, int64_t bytes) {
    std::vector<shard::AllReduceOp> reduces = entry.reduces;
    llvm::stable_sort(reduces, [&](shard::AllReduceOp a, shard::AllReduceOp b) {
      return assignment.buffers.find(a.getInput())->second.offset <
             assignment.buffers.find(b.getInput())->second.offset;
    });
    SmallVector<Value> partials, results;
    for (shard::AllReduceOp reduce : reduces) {
      partials.push_back(buffer(reduce.getInput()));
      results.push_back(buffer(reduce.getResult()));
    }
    plan::AllReduceOp::create(builder, reduces.front().getLoc(), builder.getI64IntegerAttr(order), partials, results,
                              builder.getI64IntegerAttr(bytes));
  }

  mt::ProgramOp source;
  KernelTable &kernels;
  ConstantTable &constants;
  const std::vector<PlanEntry> &entries;
  BufferAssignment &assignment;
  const ContinuedSums &continued;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> byValue;
  llvm::StringMap<Value> byName;
};

// Assigns offsets in the variables block, in the order of the declarations.
void writeVariables(ModuleOp module) {
  int64_t end = 0;
  for (auto declare : llvm::make_early_inc_range(module.getOps<mt::DeclareOp>())) {
    OpBuilder builder(declare);
    Type type = declare.getType();
    int64_t bytes = plan::bytesOfType(type);
    auto kind = mt::VariableKindAttr::get(module.getContext(), declare.getKind());
    plan::VariableOp::create(builder, declare.getLoc(), declare.getNameAttr(), kind, TypeAttr::get(type),
                             builder.getI64IntegerAttr(end), builder.getI64IntegerAttr(bytes), declare.getRoleAttr(),
                             declare.getOfAttr());
    end += alignBuffer(bytes);
    declare.erase();
  }
}

struct Allocate : impl::AllocateBase<Allocate> {
  using AllocateBase::AllocateBase;
  Allocate(const AllocateOptions &options, KernelScratch scratch)
      : AllocateBase(options), scratch(std::move(scratch)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    mt::Compilation compilation(module);
    if (!compilation.isSplit()) {
      module.emitError("expected `shards` and `shard_rows` in the module's `mt.compilation`, found none");
      return signalPassFailure();
    }
    writeVariables(module);
    KernelTable kernels(module);
    ConstantTable constants;
    std::vector<MemoryUse> uses;
    SmallVector<mt::ProgramOp> sources(module.getOps<mt::ProgramOp>());
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    for (mt::ProgramOp program : sources) {
      std::vector<PlanEntry> entries = entriesOf(program, segments);
      ContinuedSums continued;
      std::optional<BufferAssignment> assignment;
      auto assign = [&] {
        assignment.emplace(program, entries, microBatches > 1, continued);
        return assignment->assignOffsets(program.getLoc(), compilation.getShards(), compilation.getShardRows());
      };
      if (failed(assign()))
        return signalPassFailure();
      if (!segments && !compilation.isFast())
        continued = continuedSums(program, compilation.getShardRows());
      if (!needsParts(*assignment, continued))
        continued.clear();
      else if (failed(assign()))
        return signalPassFailure();
      if (deviceMemory > 0)
        uses.push_back(memoryUse(program.getSymName(), *assignment, compilation.getShardRows()));
      ProgramWriter(program, kernels, constants, entries, *assignment, continued, builder).write();
    }
    for (mt::ProgramOp program : sources)
      program.erase();
    for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
      grid.erase();
    if (deviceMemory <= 0)
      return;
    FailureOr<int64_t> most = scratch ? scratch(module) : 0;
    if (failed(most) ||
        failed(checkBudget(module, uses, plan::deviceMemory(module, *most, microBatches), deviceMemory)))
      signalPassFailure();
  }

  KernelScratch scratch;
};

} // namespace

std::unique_ptr<Pass> createAllocate(AllocateOptions options, KernelScratch scratch) {
  return std::make_unique<Allocate>(options, std::move(scratch));
}

} // namespace mtc
