// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Memory.h"
#include "compiler/SizeText.h"
#include "compiler/api/Driver.h"
#include "dialects/mt/Blocks.h"

#include <algorithm>

namespace mtc {

using mtrun::Status;

static constexpr int64_t maxBatch = int64_t{1} << 30;

namespace {

// Searches for the largest shard, in rows, whose device fits in device_memory.
class Search {
public:
  // `all`: one device computes all shards; otherwise each shard has a device of its own.
  Search(const ModelSource &source, const Options &options, bool all) : source(source), options(options), all(all) {}

  // `rows`: the largest number of rows per shard that fits, 0 if not even one row does. `needed`: the bytes for one
  // row.
  Status run(int64_t &rows, int64_t &needed) {
    if (Status status = measure(1, needed); !status.ok())
      return status;
    rows = 0;
    if (needed > options.values.device_memory)
      return {};
    rows = 1;
    const int64_t most = maxBatch / options.values.shards;
    int64_t tooMany = most + 1;
    double slope = 0, bytes = static_cast<double>(needed);
    for (int probes = 0; tooMany - rows > 1; ++probes) {
      int64_t next = guess(rows, tooMany, slope, bytes, probes), measured = 0;
      // The measurement fails only if a size is out of range: then the batch is too large.
      bool fits = measure(next, measured).ok() && measured <= options.values.device_memory;
      if (measured > 0)
        slope = (static_cast<double>(measured) - bytes) / static_cast<double>(next - rows);
      if (fits) {
        bytes = static_cast<double>(measured);
        rows = next;
      } else {
        tooMany = next;
      }
    }
    return {};
  }

private:
  // Returns the next number of rows to measure: where the line through the last two measurements crosses the limit,
  // since a device's bytes are nearly linear in the rows. After `patience` measurements, every second guess
  // halves the interval instead, because with recomputation the bytes can jump.
  int64_t guess(int64_t rows, int64_t tooMany, double slope, double bytes, int probes) const {
    constexpr int patience = 6;
    constexpr int64_t growth = 16;
    if (probes >= patience && probes % 2 == 0)
      return std::min(rows + (tooMany - rows) / 2, rows * growth);
    double more = slope > 0 ? (static_cast<double>(options.values.device_memory) - bytes) / slope : 1;
    auto step = static_cast<int64_t>(std::clamp(more, 1.0, static_cast<double>(rows * (growth - 1))));
    return std::min(rows + step, tooMany - 1);
  }

  Status measure(int64_t rows, int64_t &bytes) const {
    Options tried = options;
    tried.values.batch = rows * options.values.shards;
    std::vector<int64_t> needed;
    Status status = measureMemory(source, tried, needed);
    if (status.ok())
      bytes = all ? needed.back() : needed.front();
    return status;
  }

  const ModelSource &source;
  const Options &options;
  bool all;
};

std::string onDevices(int64_t devices) {
  return " fits on " + std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

// Returns the smallest number of devices on which the plan fits, 0 if it fits on none.
int64_t minDevices(const ModelSource &source, const Options &options) {
  std::vector<int64_t> needed;
  if (!measureMemory(source, options, needed).ok())
    return 0;
  for (size_t variant = needed.size(); variant > 0; --variant)
    if (needed[variant - 1] <= options.values.device_memory)
      return int64_t{1} << (needed.size() - variant);
  return 0;
}

} // namespace

Status findLargestBatch(const ModelSource &source, Options &options) {
  int64_t rows = 0, needed = 0;
  if (Status status = Search(source, options, true).run(rows, needed); !status.ok())
    return status;
  if (rows == 0)
    return {MT_NO_MEMORY, source.name + ": error: expected a batch that fits in " +
                              bytesText(static_cast<uint64_t>(options.values.device_memory)) +
                              " on one device, found that " + std::to_string(options.values.shards) +
                              (options.values.shards == 1 ? " sample needs " : " samples need ") +
                              bytesText(static_cast<uint64_t>(needed))};
  options.values.batch = rows * options.values.shards;
  options.say(0, "batch " + std::to_string(options.values.batch) + " is the largest that fits in " +
                     bytesText(static_cast<uint64_t>(options.values.device_memory)) + " on one device");
  return {};
}

int32_t findMicroBatches(const ModelSource &source, const Options &requested) {
  if (requested.values.micro_batches || !requested.values.device_memory || !requested.gpus.empty() ||
      requested.stopAfter >= 0)
    return 1;
  Options options = requested;
  for (int32_t count = 1; count <= requested.values.shards; count *= 2) {
    options.values.micro_batches = count;
    std::vector<int64_t> needed;
    if (!measureMemory(source, options, needed).ok()) // compiling with the same options will report the error
      break;
    if (needed.back() <= options.values.device_memory)
      return count;
  }
  return 1;
}

int32_t findLogitBlocks(const ModelSource &source, const Options &requested) {
  if (!requested.values.device_memory || requested.gpus.empty() || requested.stopAfter >= 0)
    return 0;
  Options options = requested;
  std::vector<int64_t> whole, needed; // bytes of a device with 1, 2, 4 ... R shards
  if (!measureMemory(source, options, whole).ok() || whole.back() <= requested.values.device_memory)
    return 0;
  int32_t onMore = 0;
  for (int32_t count = 2; count <= mlir::mt::mostBlocks; count *= 2) {
    options.logitBlocks = count;
    // more blocks make no logits smaller
    if (needed.clear(); !measureMemory(source, options, needed).ok() || needed == whole)
      break;
    if (needed.back() <= requested.values.device_memory)
      return count;
    if (!onMore && *std::min_element(needed.begin(), needed.end()) <= requested.values.device_memory)
      onMore = count;
  }
  return *std::min_element(whole.begin(), whole.end()) > requested.values.device_memory ? onMore : 0;
}

std::string memoryAdvice(const ModelSource &source, const Options &requested) {
  Options options = requested;
  std::string text;
  auto add = [&](const std::string &line) { text += (text.empty() ? "what would help: " : "; ") + line; };
  if (!options.recomputes()) {
    options.values.recompute = "auto";
    if (int64_t devices = minDevices(source, options))
      add("--recompute auto" + onDevices(devices));
    options.values.recompute = "none";
  }
  int64_t rows = 0, needed = 0;
  for (bool all : {true, false})
    if ((all || options.values.shards > 1) && Search(source, options, all).run(rows, needed).ok() && rows > 0)
      add("--batch " + std::to_string(rows * options.values.shards) + onDevices(all ? 1 : options.values.shards));
  for (int64_t shards = int64_t{2} * requested.values.shards; shards <= requested.values.batch; shards *= 2) {
    options.values.shards = static_cast<int32_t>(shards);
    if (int64_t devices = minDevices(source, options)) {
      add("--shards " + std::to_string(shards) + onDevices(devices));
      break;
    }
  }
  return text.empty() ? "no smaller batch, no number of shards and no recomputation would help" : text;
}

} // namespace mtc
