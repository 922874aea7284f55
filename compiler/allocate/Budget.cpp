// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Budget.h"
#include "compiler/SizeText.h"
#include "compiler/allocate/Pack.h"
#include "dialects/mt/Compilation.h"

namespace mtc {

using namespace mlir;

// The largest allocations that are live in the phase of the arena's peak. A single device has no results of
// all-reduces.
static std::vector<std::pair<int64_t, std::string>> largestAtPeak(const BufferAssignment &assignment, int64_t rows,
                                                                  bool alone) {
  auto size = [&](const Allocation &allocation) {
    return alignBuffer(allocation.fixedBytes + allocation.rowBytes * rows);
  };
  int64_t peakPhase = 0, peak = -1;
  for (const Allocation &candidate : assignment.allocations) {
    int64_t alive = 0;
    for (const Allocation &allocation : assignment.allocations)
      if (!allocation.shared && allocation.first <= candidate.first && candidate.first <= allocation.last)
        alive += size(allocation);
    if (!candidate.shared && alive > peak) {
      peak = alive;
      peakPhase = candidate.first;
    }
  }
  std::vector<std::pair<int64_t, std::string>> largest;
  for (const Allocation &allocation : assignment.allocations)
    if (allocation.shared ? !(alone && allocation.reduced)
                          : (allocation.first <= peakPhase && peakPhase <= allocation.last))
      largest.emplace_back(size(allocation), allocation.name);
  llvm::stable_sort(largest, [](const auto &a, const auto &b) { return a.first > b.first; });
  return largest;
}

MemoryUse memoryUse(StringRef program, const BufferAssignment &assignment, int64_t shardRows) {
  MemoryUse use;
  use.program = program.str();
  for (size_t variant = 0; variant < assignment.arenaBytes.size(); ++variant) {
    bool alone = variant + 1 == assignment.arenaBytes.size();
    int64_t results = alone ? llvm::sum_of(assignment.bucketBytes) : 0;
    use.bytes.push_back(assignment.arenaBytes[variant] + assignment.sharedBytes - results);
    use.largest.push_back(largestAtPeak(assignment, (int64_t(1) << variant) * shardRows, alone));
  }
  return use;
}

static std::string readable(int64_t bytes) { return bytesText(static_cast<uint64_t>(bytes)); }

static std::string ranking(const MemoryUse &use, size_t variant) {
  std::string text;
  llvm::raw_string_ostream out(text);
  constexpr size_t shown = 8;
  for (size_t i = 0; i < std::min(shown, use.largest[variant].size()); ++i)
    out << (i ? ", " : "") << "\"" << use.largest[variant][i].second << "\" "
        << readable(use.largest[variant][i].first);
  return text;
}

LogicalResult checkBudget(ModuleOp module, ArrayRef<MemoryUse> uses, ArrayRef<mtrun::DeviceMemory> needs,
                          int64_t limit) {
  if (uses.empty())
    return success();
  size_t variants = uses.front().bytes.size();
  auto hungriest = [&](size_t variant) -> const MemoryUse & {
    return *std::max_element(uses.begin(), uses.end(),
                             [&](auto &a, auto &b) { return a.bytes[variant] < b.bytes[variant]; });
  };
  auto needed = [&](size_t variant) { return static_cast<int64_t>(needs[variant].bytes()); };
  size_t variant = variants;
  while (variant > 0 && needed(variant - 1) > limit)
    --variant;
  auto describe = [&](InFlightDiagnostic diagnostic, size_t of) {
    diagnostic << "; @" << hungriest(of).program << " needs " << readable(needed(of)) << " with " << (int64_t(1) << of)
               << (of ? " shards" : " shard") << " on a device: variables " << readable(needs[of].variables)
               << "; largest at the peak: " << ranking(hungriest(of), of);
  };
  if (variant == 0) {
    mlir::mt::Compilation(module).setMinDevices(0); // it fits on no number of devices
    describe(module.emitError("expected a plan that fits in ")
                 << readable(limit) << " a device, found none up to " << (int64_t(1) << (variants - 1)) << " devices",
             0);
    return failure();
  }
  // With N devices, the device with most shards has R / 2^floor(log2 N).
  int64_t devices = int64_t(1) << (variants - variant);
  mlir::mt::Compilation(module).setMinDevices(devices);
  if (devices > 1)
    describe(module.emitWarning("the model does not fit on one device of ")
                 << readable(limit) << "; it takes " << devices << " devices",
             variants - 1);
  // A single device has no results of all-reduces, so it may fit where several devices do not.
  for (size_t fewer = variant - 1; fewer-- > 0;)
    if (needed(fewer) > limit) {
      int64_t more = int64_t(1) << (variants - 1 - fewer);
      module.emitWarning("the model fits on ")
          << devices << (devices > 1 ? " devices of " : " device of ") << readable(limit) << ", but not on " << more
          << ": each of these needs " << readable(needed(fewer));
      break;
    }
  return success();
}

} // namespace mtc
