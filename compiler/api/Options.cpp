// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Options.h"

#include "compiler/Pipeline.h"
#include "compiler/api/Names.h"
#include "compiler/codegen/common/CpuTarget.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "runtime/support/option_struct.h"
#include "runtime/support/suggest.h"
#include "llvm/ADT/StringExtras.h"

#include <bit>
#include <string_view>

namespace mtc {

using mtrun::Status;

static constexpr int64_t maxBatch = int64_t{1} << 30;
static constexpr int64_t maxLocalBatch = int64_t{1} << 20;
static constexpr int64_t maxShards = 65536;
static constexpr int64_t defaultShards = 8;

static Status differs(const std::string &option, const std::string &expected, const std::string &found) {
  return {MT_INVALID, "expected " + option + " " + expected + ", found " + found};
}

static Status checkSizes(const mtc_options &given, Options &options) {
  if (given.batch < 0 || given.batch > maxBatch)
    return differs("batch", "to be 1 to " + std::to_string(maxBatch), std::to_string(given.batch));
  if (given.batch)
    options.batch = given.batch;
  if (given.shards < 0 || given.shards > maxShards)
    return differs("shards", "to be 1 to " + std::to_string(maxShards), std::to_string(given.shards));
  options.shards = given.shards;
  if (given.max_batch) // found later; with one sample a shard it begins
    options.batch = given.shards ? given.shards : defaultShards;
  if (!given.shards)
    options.shards = std::min<int64_t>(defaultShards, std::bit_floor(static_cast<uint64_t>(options.batch)));
  if (!std::has_single_bit(static_cast<uint64_t>(options.shards)))
    return differs("shards", "to be a power of two", std::to_string(options.shards));
  if (options.shards > options.batch)
    return differs("shards", "to be at most the batch, " + std::to_string(options.batch),
                   std::to_string(options.shards));
  options.microBatches = given.micro_batches;
  if (options.microBatches < 0 || options.microBatches > options.shards ||
      (options.microBatches && !std::has_single_bit(static_cast<uint64_t>(options.microBatches))))
    return differs("micro-batches", "to be a power of two up to the shards, " + std::to_string(options.shards),
                   std::to_string(options.microBatches));
  if (given.device_memory < 0)
    return differs("device memory", "to be 0 bytes or more", std::to_string(given.device_memory));
  options.deviceMemory = given.device_memory;
  std::string_view recompute = given.recompute ? given.recompute : "none";
  if (recompute != "none" && recompute != "auto")
    return differs("recompute", "to be auto or none", "'" + std::string(recompute) + "'");
  options.recompute = recompute == "auto";
  options.maxBatch = given.max_batch != 0;
  if ((options.recompute || options.maxBatch) && !options.deviceMemory)
    return {MT_INVALID, std::string(options.maxBatch ? "the largest batch" : "recompute auto") +
                            " depends on what memory a device has: expected a size (--device-memory), found none"};
  return {};
}

// "cpu,cuda:sm_80,sm_90": what follows the GPUs' name is their architectures.
static Status checkTarget(const mtc_options &given, Options &options) {
  llvm::StringRef text = given.target ? given.target : "cpu";
  llvm::SmallVector<llvm::StringRef> items;
  text.split(items, ',');
  options.forCpus = false;
  const std::string named = (gpuDevice + ":").str();
  std::vector<std::string> targets = {"cpu", gpuDevice.str()};
  for (llvm::StringRef architecture : gpuArchitectures())
    targets.push_back(named + architecture.str());
  std::string meant; // by the first that is wrong
  bool gpu = false, good = true;
  for (llvm::StringRef item : items) {
    if (item == "cpu") {
      options.forCpus = true;
      gpu = false;
      continue;
    }
    if (item == gpuDevice) {
      llvm::append_range(options.gpus, gpuArchitectures());
      gpu = true;
      continue;
    }
    llvm::StringRef whole = item;
    gpu |= item.consume_front(named);
    bool known = gpu && (item == simulatedName || llvm::is_contained(gpuArchitectures(), item));
    if (good && !known)
      meant = mtrun::didYouMean(whole.str(), targets);
    good &= known;
    options.gpus.push_back(item.str());
  }
  if (good)
    return {};
  return differs("target",
                 "to be a list of cpu, " + gpuDevice.str() + " and " + named + "ARCHITECTURE (" +
                     llvm::join(gpuArchitectures(), ", ") + ")",
                 "'" + text.str() + "'" + meant);
}

// Names of Keras, NumPy and PyTorch for the same formats.
static std::string precisionOf(std::string_view text) {
  static constexpr std::pair<std::string_view, const char *> names[] = {
      {"fp32", "f32"},  {"float32", "f32"},        {"fp16", "f16"},           {"float16", "f16"},
      {"half", "f16"},  {"mixed_float16", "f16"},  {"bfloat16", "bf16"},      {"mixed_bfloat16", "bf16"}};
  for (auto [name, ours] : names)
    if (text == name)
      return ours;
  return std::string(text);
}

static Status checkCpus(const mtc_options &given, Options &options) {
  options.cpus = defaultCpuTargets();
  if (!given.cpu)
    return {};
  options.cpus.clear();
  for (llvm::StringRef name : llvm::split(given.cpu, ',')) {
    name = name.trim();
    if (llvm::Error unknown = findTarget(name).takeError())
      return {MT_INVALID, llvm::toString(std::move(unknown))};
    if (llvm::is_contained(options.cpus, name))
      return differs("cpu", "to name a CPU once", "'" + name.str() + "' twice");
    options.cpus.push_back(name.str());
  }
  return {};
}

static Status checkNames(const mtc_options &given, Options &options) {
  if (Status status = checkTarget(given, options); !status.ok())
    return status;
  std::string_view statistics = given.batch_norm ? given.batch_norm : "global";
  if (statistics != "global" && statistics != "local")
    return differs("batch norm", "to be global or local", "'" + std::string(statistics) + "'");
  options.localStatistics = statistics == "local";
  options.precision = precisionOf(given.precision ? given.precision : "");
  std::vector<std::string> precisions = {"f32", "tf32", "bf16", "f16"};
  if (given.precision && !llvm::is_contained(precisions, options.precision))
    return differs("precision", "to be f32, tf32, bf16 or f16",
                   "'" + options.precision + "'" + mtrun::didYouMean(options.precision, precisions));
  if (Status status = checkCpus(given, options); !status.ok())
    return status;
  if (!given.stop_after)
    return {};
  std::vector<std::string> names;
  for (const Stage &stage : stages()) {
    if (std::string_view(stage.name) == given.stop_after)
      options.stopAfter = static_cast<int>(&stage - stages().data());
    names.push_back(stage.name);
  }
  if (options.stopAfter < 0)
    return differs("a stage", "(" + llvm::join(names, ", ") + ")",
                   "'" + std::string(given.stop_after) + "'" + mtrun::didYouMean(given.stop_after, names));
  return {};
}

// "224,224,3" or "a=28,28,1;b=5".
static Status readShapes(const std::string &option, std::map<std::string, std::vector<int64_t>> &shapes) {
  llvm::SmallVector<llvm::StringRef> items, sizes;
  llvm::StringRef(option).split(items, ';');
  for (llvm::StringRef item : items) {
    llvm::StringRef name = item.contains('=') ? item.take_front(item.rfind('=')) : "";
    item.drop_front(item.contains('=') ? item.rfind('=') + 1 : 0).split(sizes, ',');
    std::vector<int64_t> shape;
    for (llvm::StringRef size : sizes) {
      uint32_t value = 0;
      if (size.trim().getAsInteger(10, value) || value == 0 || value > INT32_MAX)
        return differs("input shape", "as 224,224,3 or NAME=224,224,3, sizes from 1 to 2147483647", "'" + option + "'");
      shape.push_back(value);
    }
    if (!shapes.try_emplace(name.str(), shape).second)
      return differs("input shapes", "of different inputs", "a second of '" + name.str() + "'");
    sizes.clear();
  }
  if (shapes.size() > 1 && shapes.count(""))
    return differs("input shapes", "with the names of the inputs", "one without");
  return {};
}

static Status checkFiles(const mtc_options &given, Options &options) {
  if (given.class_names)
    if (Status status = readClassNames(given.class_names, options.training.classNames); !status.ok())
      return status;
  if (given.vocabulary)
    if (Status status = readVocabulary(given.vocabulary, options.vocabulary); !status.ok())
      return status;
  return given.input_shape ? readShapes(given.input_shape, options.training.inputShapes) : Status();
}

Status checkOptions(const mtc_options *caller, Options &options) {
  mtc_options read;
  if (Status status = MTRUN_READ_OPTIONS(mtc_options, input_shape, caller, read); !status.ok())
    return status;
  const mtc_options *given = &read;
  options.fast = given->fast != 0;
  options.seed = given->seed ? given->seed : 1;
  options.dumpStages = given->dump_stages ? given->dump_stages : "";
  options.timing = given->timing != 0;
  auto text = [](const char *value) { return std::string(value ? value : ""); };
  options.training = {text(given->loss), text(given->optimizer), text(given->metrics),
                      given->drop_unsupported_metrics != 0, given->sample_weights != 0,
                      {text(given->freeze), text(given->trainable)}, text(given->no_weight_decay), {}, {}};
  options.weights = text(given->weights);
  options.log = given->log;
  options.logUser = given->log_user;
  if (Status status = checkSizes(*given, options); !status.ok())
    return status;
  if (Status status = checkNames(*given, options); !status.ok())
    return status;
  if (Status status = checkFiles(*given, options); !status.ok())
    return status;
  // Samples are told apart in float32.
  if (options.localStatistics && options.batch > maxLocalBatch)
    return differs("a batch", "of at most " + std::to_string(maxLocalBatch) + " for statistics of shards",
                   std::to_string(options.batch));
  return {};
}

} // namespace mtc
