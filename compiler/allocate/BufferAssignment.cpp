// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/BufferAssignment.h"
#include "compiler/allocate/Pack.h"
#include "dialects/mt/KernelKinds.h"
#include "dialects/plan/DeviceMemory.h"

#include "llvm/Support/MathExtras.h"

namespace mtc {

using namespace mlir;
using plan::Space;

BufferAssignment::BufferAssignment(mt::ProgramOp program, const std::vector<PlanEntry> &entries, bool microBatches,
                                   const ContinuedSums &continued)
    : body(&program.getBody().front()), entries(entries), microBatches(microBatches), continued(continued) {
  if (!entries.empty()) {
    lastPhase = entries.back().phase;
    lastRendezvous = entries.back().rendezvous;
  }
  bucketBytes.resize(entries.size());
  for (const PlanEntry &entry : entries) {
    for (mt::KernelOp kernel : entry.segments)
      phases[kernel] = entry.phase;
    for (shard::AllReduceOp reduce : entry.reduces)
      partialSums.insert(reduce.getInput());
  }
  computeLastUses();
  assignOutside();
  for (size_t entry = 0; entry < entries.size(); ++entry)
    if (!entries[entry].reduces.empty())
      assignBucket(entry);
  for (const PlanEntry &entry : entries)
    for (mt::KernelOp kernel : entry.segments)
      assignResults(entry, kernel);
}

void BufferAssignment::computeLastUses() {
  auto read = [&](Value value, const PlanEntry &entry) {
    LastUse &use = lastUses[value];
    if (use.phase != entry.phase)
      use.readByMore = false;
    else if (use.lastEntry && use.lastEntry != &entry)
      use.readByMore = true;
    use.lastEntry = &entry;
    use.phase = std::max(use.phase, entry.phase);
    use.rendezvous = std::max(use.rendezvous, entry.rendezvous);
    // A kernel that runs for each micro-batch may run again in each part of the program (runtime/support/phases.h).
    if (microBatches && !entry.segments.empty() && !entry.share)
      use.rendezvous = lastRendezvous + 1;
  };
  for (const PlanEntry &entry : entries) {
    for (mt::KernelOp kernel : entry.segments) {
      // A result without a reader lives while it is written.
      for (Value result : kernel->getResults())
        lastUses[result] = {entry.phase, entry.rendezvous, nullptr};
      for (Value operand : kernel->getOperands())
        read(operand, entry);
    }
    for (shard::AllReduceOp reduce : entry.reduces) {
      lastUses[reduce.getResult()] = {entry.phase, entry.rendezvous, nullptr};
      read(reduce.getInput(), entry);
    }
  }
  // The runtime reads reported scalars after the program.
  for (Operation &op : *body)
    if (op.hasTrait<mt::Reports>())
      for (Value value : op.getOperands())
        lastUses[value] = {lastPhase, lastRendezvous, nullptr};
}

// Assigns values whose buffers are named by ops of the program: inputs, variables and outputs.
void BufferAssignment::assignOutside() {
  for (Operation &op : *body) {
    ValueBuffer buffer;
    if (isa<mt::InputOp, mt::TargetOp, mt::SampleWeightOp, mt::ReadOp>(op)) {
      buffer.space = isa<mt::ReadOp>(op) ? Space::variable : Space::signature;
      buffer.ref = buffer.name = op.getAttrOfType<StringAttr>("name").str();
      buffers[op.getResult(0)] = buffer;
      if (isa<mt::ReadOp>(op))
        readVariables.insert(buffer.ref);
    } else if (isa<mt::AssignOp, mt::OutputOp>(op)) {
      buffer.space = isa<mt::AssignOp>(op) ? Space::variable : Space::signature;
      buffer.ref = buffer.name = op.getAttrOfType<StringAttr>("name").str();
      buffers[op.getOperand(0)] = buffer;
    } else if (isa<mt::ConstantOp>(op)) {
      buffer.space = Space::constant;
      buffer.name = "constant";
      buffers[op.getResult(0)] = buffer;
    }
  }
}

// Whether the kernel reads an element of the operand only to write the element of the result at the same index. In
// kernels of some kinds several results could overwrite the same operand; only a single result may.
static bool mayOverwrite(mt::KernelOp kernel, unsigned operand, unsigned result) {
  bool chooses = mt::infoOf(kernel.getKind()).inPlace == mt::InPlace::lastReader;
  return (chooses || kernel->getNumResults() == 1) &&
         mt::mayOverwrite(kernel.getKind(), kernel.getBody().front(), operand, result);
}

// The value and all values that share its buffer because a kernel updates a part of them in place.
static SmallVector<Value> valuesInBufferOf(Value value) {
  SmallVector<Value> values{value};
  for (size_t i = 0; i < values.size(); ++i) {
    auto kernel = values[i].getDefiningOp<mt::KernelOp>();
    if (!kernel || mt::infoOf(kernel.getKind()).inPlace != mt::InPlace::part)
      continue;
    for (OpOperand &operand : kernel->getOpOperands())
      if (mayOverwrite(kernel, operand.getOperandNumber(), 0))
        values.push_back(operand.get());
  }
  return values;
}

// Places the partial sums of a bucket contiguously in the arena, by decreasing size, and its results in the same order
// in the shared block. On a single device the results are the partial sums, which therefore live until the last reader
// of a result.
void BufferAssignment::assignBucket(size_t index) {
  const PlanEntry &entry = entries[index];
  Allocation partials, results;
  std::string bucket = "all-reduce " + std::to_string(bucketCount++);
  partials.name = "partial sums of " + bucket;
  results.name = "results of " + bucket;
  partials.first = partials.last = entry.phase;
  std::vector<shard::AllReduceOp> bySize = entry.reduces;
  llvm::stable_sort(bySize, [](shard::AllReduceOp a, shard::AllReduceOp b) {
    return plan::bytesOfType(a.getInput().getType()) > plan::bytesOfType(b.getInput().getType());
  });
  results.shared = results.reduced = true;
  results.offsets = {bucketEnd};
  int64_t end = 0;
  for (shard::AllReduceOp reduce : bySize) {
    int64_t bytes = plan::bytesOfType(reduce.getInput().getType());
    // Small partial sums are aligned to 16 bytes, so that several elements are read at once.
    end = bytes >= bufferAlignment ? alignBuffer(end) : llvm::alignTo(end, bytes > 4 ? 16 : 4);
    auto kernel = reduce.getInput().getDefiningOp<mt::KernelOp>();
    std::string name = (kernel.getName() + "." + Twine(cast<OpResult>(reduce.getInput()).getResultNumber())).str();
    buffers[reduce.getInput()] = {Space::arena, "partial sum " + name, "", static_cast<int64_t>(allocations.size()),
                                  end};
    buffers[reduce.getResult()] = {Space::shared, "sum " + name, "", static_cast<int64_t>(allocations.size()) + 1, end};
    partials.last = std::max({partials.last, lastUses[reduce.getResult()].phase, lastUses[reduce.getInput()].phase});
    end += bytes;
    ValueBuffer shared = buffers[reduce.getInput()];
    for (Value value : valuesInBufferOf(reduce.getInput())) {
      buffers[value] = shared;
      if (auto writer = phases.find(value.getDefiningOp()); writer != phases.end())
        partials.first = std::min(partials.first, writer->second);
    }
    if (continued.contains(reduce.getInput())) {
      partials.first = 0;
      partials.last = lastPhase;
    }
  }
  bucketBytes[index] = partials.fixedBytes = results.fixedBytes = end;
  bucketEnd += alignBuffer(end);
  allocations.push_back(std::move(partials));
  allocations.push_back(std::move(results));
}

// If a value's only reader is an elementwise kernel that writes a variable, stores the value in the variable's memory,
// unless the program reads the old value. So the random numbers of an initial value need no memory of their own.
bool BufferAssignment::reuseVariable(const PlanEntry &entry, OpResult result) {
  auto reader = result.hasOneUse() ? dyn_cast<mt::KernelOp>(*result.user_begin()) : mt::KernelOp();
  if (!entry.share || !reader || !mayOverwrite(reader, result.use_begin()->getOperandNumber(), 0))
    return false;
  auto found = buffers.find(reader->getResult(0));
  if (found == buffers.end() || found->second.space != Space::variable || readVariables.contains(found->second.ref))
    return false;
  // Another operand of the reader is live until the reader runs.
  if (!reusedVariables.insert(found->second.ref).second)
    return false;
  ValueBuffer buffer = found->second;
  buffers[result] = buffer;
  return true;
}

bool BufferAssignment::reuseOperand(const PlanEntry &entry, mt::KernelOp kernel, OpResult result) {
  if (entry.isTail) // other blocks of the head may still write the operand
    return false;
  for (OpOperand &operand : kernel->getOpOperands()) {
    auto found = buffers.find(operand.get());
    const LastUse &use = lastUses[operand.get()];
    if (found == buffers.end() || found->second.allocation < 0 || partialSums.contains(operand.get()) ||
        continued.contains(operand.get()) || continued.contains(result) ||
        operand.get().getDefiningOp<shard::AllReduceOp>() || use.phase != entry.phase || use.lastEntry != &entry ||
        use.readByMore || !mayOverwrite(kernel, operand.getOperandNumber(), result.getResultNumber()) ||
        llvm::count(kernel->getOperands(), operand.get()) != 1 || entry.segments.size() != 1)
      continue;
    Allocation &allocation = allocations[found->second.allocation];
    if (allocation.shared != entry.share || (entry.share && lastUses[operand.get()].rendezvous != entry.rendezvous))
      continue;
    bool taken = llvm::any_of(kernel->getResults(), [&](OpResult other) {
      auto placed = buffers.find(other);
      return placed != buffers.end() && placed->second.allocation == found->second.allocation;
    });
    if (taken)
      continue;
    ValueBuffer buffer = found->second;
    allocation.last =
        std::max(allocation.last, allocation.shared ? lastUses[result].rendezvous : lastUses[result].phase);
    buffer.name = kernel.getName().str();
    buffers[result] = buffer;
    return true;
  }
  return false;
}

void BufferAssignment::assignResults(const PlanEntry &entry, mt::KernelOp kernel) {
  for (OpResult result : kernel->getResults()) {
    if (buffers.contains(result) || reuseVariable(entry, result) || reuseOperand(entry, kernel, result))
      continue;
    Allocation allocation;
    allocation.name = kernel.getName().str();
    if (kernel->getNumResults() > 1)
      allocation.name += "." + std::to_string(result.getResultNumber());
    allocation.shared = entry.share;
    (mt::isSplit(result.getType()) ? allocation.rowBytes : allocation.fixedBytes) = plan::bytesOfType(result.getType());
    allocation.first = entry.share ? entry.rendezvous : entry.phase;
    allocation.last = entry.share ? lastUses[result].rendezvous : lastUses[result].phase;
    if (continued.contains(result)) {
      allocation.first = 0;
      allocation.last = lastPhase;
    }
    buffers[result] = {entry.share ? Space::shared : Space::arena, allocation.name, "",
                       static_cast<int64_t>(allocations.size()), 0};
    allocations.push_back(std::move(allocation));
  }
}

void BufferAssignment::packShared() {
  std::vector<LiveBuffer> live;
  std::vector<Allocation *> packed;
  for (Allocation &allocation : allocations)
    if (allocation.shared && allocation.offsets.empty()) {
      live.push_back({alignBuffer(allocation.fixedBytes), allocation.first, allocation.last});
      packed.push_back(&allocation);
    }
  Packing packing = packBuffers(live);
  for (auto [allocation, offset] : llvm::zip(packed, packing.offsets))
    allocation->offsets = {bucketEnd + offset};
  sharedBytes = bucketEnd + packing.bytes;
}

void BufferAssignment::packArena(int64_t rows) {
  std::vector<LiveBuffer> live;
  std::vector<Allocation *> packed;
  for (Allocation &allocation : allocations)
    if (!allocation.shared) {
      live.push_back(
          {alignBuffer(allocation.fixedBytes + allocation.rowBytes * rows), allocation.first, allocation.last});
      packed.push_back(&allocation);
    }
  Packing packing = packBuffers(live);
  for (auto [allocation, offset] : llvm::zip(packed, packing.offsets))
    allocation->offsets.push_back(offset);
  arenaBytes.push_back(packing.bytes);
  boundBytes.push_back(livenessBound(live));
}

// The sum of all allocations is a bound of every packing, so later sums cannot overflow.
LogicalResult BufferAssignment::checkSizes(Location location, int64_t rows) {
  constexpr int64_t limit = int64_t(1) << 46;
  int64_t total = 0;
  for (const Allocation &allocation : allocations) {
    int64_t bytes = 0;
    if (llvm::MulOverflow(allocation.rowBytes, rows, bytes) || llvm::AddOverflow(bytes, allocation.fixedBytes, bytes) ||
        bytes > limit || (total += alignBuffer(bytes)) > limit)
      return emitError(location, "expected at most ") << limit << " bytes of temporary values, found more at "
                                                      << allocation.name << ", with " << rows << " rows";
  }
  return success();
}

LogicalResult BufferAssignment::assignOffsets(Location location, int64_t allShards, int64_t shardRows) {
  if (failed(checkSizes(location, allShards * shardRows)))
    return failure();
  packShared();
  for (int64_t shards = 1; shards <= allShards; shards *= 2)
    packArena(shards * shardRows);
  return success();
}

} // namespace mtc
