// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Options.h"

#include "compiler/Pipeline.h"
#include "compiler/api/Names.h"
#include "compiler/codegen/common/CpuTarget.h"
#include "compiler/codegen/gpu/Gpu.h"
#include "runtime/support/option_struct.h"
#include "runtime/support/option_table.h"
#include "runtime/support/suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace mtc {

using mtrun::Status;

static constexpr int64_t maxLocalBatch = int64_t{1} << 20;
static constexpr int32_t defaultShards = 8;
static constexpr int64_t maxLength = int64_t{1} << 24;
static constexpr size_t maxLengths = 64;

static Status differs(const std::string &option, const std::string &expected, const std::string &found) {
  return {MT_INVALID, "expected --" + option + " " + expected + ", found " + found};
}

using OptionRow = mtrun::Option<mtc_options>;

static std::string nameOf(const OptionRow &row) { return row.flag().substr(2); }

template <typename Number> static Status checkField(const OptionRow &row, Number &number) {
  if (row.form == mtrun::OptionForm::toggle || row.form == mtrun::OptionForm::index) {
    number = number != 0;
    return {};
  }
  if (number == 0) {
    number = static_cast<Number>(std::strtod(row.standard, nullptr));
    return {};
  }
  auto value = static_cast<double>(number);
  if (value >= row.min && value <= row.max)
    return {};
  return differs(nameOf(row),
                 row.form == mtrun::OptionForm::bytes ? std::string("to be 0 bytes or more")
                                                      : llvm::formatv("to be {0:f0} to {1:f0}", row.min, row.max).str(),
                 std::to_string(number));
}

static Status checkField(const OptionRow &row, const char *&text) {
  if (!text && *row.standard)
    text = row.standard;
  std::vector<std::string> words = row.wordList();
  if (!text || words.empty() || llvm::is_contained(words, text))
    return {};
  return differs(nameOf(row), "to be " + llvm::join(words, " or "), "'" + std::string(text) + "'");
}

static Status checkField(const OptionRow &, const double *) { return {}; }

static Status checkTable(mtc_options &values) {
  for (const OptionRow &row : mtrun::mtcOptions)
    if (Status status = std::visit([&](auto field) { return checkField(row, values.*field); }, row.field); !status.ok())
      return status;
  return {};
}

static Status checkSizes(Options &options) {
  mtc_options &values = options.values;
  if (values.max_batch) // the search starts with one sample per shard
    values.batch = values.shards ? values.shards : defaultShards;
  if (!values.shards)
    values.shards =
        static_cast<int32_t>(std::min<uint64_t>(defaultShards, std::bit_floor(static_cast<uint64_t>(values.batch))));
  if (!std::has_single_bit(static_cast<uint32_t>(values.shards)))
    return differs("shards", "to be a power of two", std::to_string(values.shards));
  if (values.shards > values.batch)
    return differs("shards", "to be at most the batch, " + std::to_string(values.batch), std::to_string(values.shards));
  int32_t count = values.micro_batches;
  if (count < 0 || count > values.shards || (count && !std::has_single_bit(static_cast<uint32_t>(count))))
    return differs("micro-batches", "to be a power of two up to the shards, " + std::to_string(values.shards),
                   std::to_string(count));
  if ((options.recomputes() || values.max_batch) && !values.device_memory)
    return differs("device-memory", std::string("with ") + (values.max_batch ? "--max-batch" : "--recompute auto"),
                   "none");
  return {};
}

// "cpu,cuda:sm_80,sm_90": what follows the GPUs' name is their architectures.
static Status checkTarget(const mtc_options &requested, Options &options) {
  llvm::StringRef text = requested.target;
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
    bool known = gpu && (item == simulatedName || item == gridsName || llvm::is_contained(gpuArchitectures(), item));
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
      {"fp32", "f32"},          {"float32", "f32"},   {"fp16", "f16"},           {"float16", "f16"},
      {"half", "f16"},          {"fp64", "f64"},      {"float64", "f64"},        {"double", "f64"},
      {"mixed_float16", "f16"}, {"bfloat16", "bf16"}, {"mixed_bfloat16", "bf16"}};
  for (auto [name, ours] : names)
    if (text == name)
      return ours;
  return std::string(text);
}

static Status checkCpus(const mtc_options &requested, Options &options) {
  options.cpus = defaultCpuTargets(/*bf16=*/true);
  if (!requested.cpu)
    return {};
  options.cpus.clear();
  for (llvm::StringRef name : llvm::split(requested.cpu, ',')) {
    name = name.trim();
    if (llvm::Error unknown = findTarget(name).takeError())
      return {MT_INVALID, llvm::toString(std::move(unknown))};
    if (llvm::is_contained(options.cpus, name))
      return differs("cpu", "to name a CPU once", "'" + name.str() + "' twice");
    options.cpus.push_back(name.str());
  }
  return {};
}

static Status checkNames(const mtc_options &requested, Options &options) {
  if (Status status = checkTarget(requested, options); !status.ok())
    return status;
  options.precision = precisionOf(requested.precision ? requested.precision : "");
  std::vector<std::string> precisions = {"f32", "tf32", "bf16", "f16", "f64"};
  if (requested.precision && !llvm::is_contained(precisions, options.precision))
    return differs("precision", "to be f32, tf32, bf16, f16 or f64",
                   "'" + options.precision + "'" + mtrun::didYouMean(options.precision, precisions));
  if (options.isDouble() && !options.gpus.empty())
    return differs("target", "to be cpu with --precision f64: GPUs compute in float32", "a GPU");
  if (Status status = checkCpus(requested, options); !status.ok())
    return status;
  if (!requested.stop_after)
    return {};
  std::vector<std::string> names;
  for (const Stage &stage : stages()) {
    if (std::string_view(stage.name) == requested.stop_after)
      options.stopAfter = static_cast<int>(&stage - stages().data());
    names.push_back(stage.name);
  }
  if (options.stopAfter < 0)
    return differs("stop-after", "to be a stage (" + llvm::join(names, ", ") + ")",
                   "'" + std::string(requested.stop_after) + "'" + mtrun::didYouMean(requested.stop_after, names));
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
        return differs("input-shape", "as 224,224,3 or NAME=224,224,3, sizes from 1 to 2147483647", "'" + option + "'");
      shape.push_back(value);
    }
    if (!shapes.try_emplace(name.str(), shape).second)
      return differs("input-shape", "of different inputs", "a second of '" + name.str() + "'");
    sizes.clear();
  }
  if (shapes.size() > 1 && shapes.count(""))
    return differs("input-shape", "with the names of the inputs", "one without");
  return {};
}

// "64,128,256".
static Status readLengths(const mtc_options &values, std::vector<int64_t> &lengths) {
  if (values.length_input && !values.lengths)
    return differs("lengths", "with --length-input " + std::string(values.length_input), "none");
  if (!values.lengths)
    return {};
  for (llvm::StringRef text : llvm::split(values.lengths, ',')) {
    int64_t length = 0;
    if (text.trim().getAsInteger(10, length) || length < 1 || length > maxLength)
      return differs("lengths", "as 64,128,256, from 1 to " + std::to_string(maxLength),
                     "'" + std::string(values.lengths) + "'");
    if (!lengths.empty() && length <= lengths.back())
      return differs("lengths", "each larger than the one before",
                     std::to_string(length) + " after " + std::to_string(lengths.back()));
    lengths.push_back(length);
    if (lengths.size() > maxLengths)
      return differs("lengths", "of at most " + std::to_string(maxLengths), "more");
  }
  return {};
}

static Status checkFiles(const mtc_options &requested, Options &options) {
  if (requested.class_names)
    if (Status status = readClassNames(requested.class_names, options.training.classNames); !status.ok())
      return status;
  if (requested.vocabulary)
    if (Status status = readVocabulary(requested.vocabulary, options.vocabulary); !status.ok())
      return status;
  if (requested.columns)
    if (Status status = readColumns(requested.columns, options.columns); !status.ok())
      return status;
  if (Status status = readLengths(requested, options.lengths); !status.ok())
    return status;
  if (!options.lengths.empty())
    options.training.length = options.lengths.back();
  return requested.input_shape ? readShapes(requested.input_shape, options.training.inputShapes) : Status();
}

Status checkOptions(const mtc_options *caller, Options &options) {
  mtc_options &values = options.values;
  if (Status status = MTRUN_READ_OPTIONS(mtc_options, input_shape, caller, values); !status.ok())
    return status;
  if (Status status = checkTable(values); !status.ok())
    return status;
  if (Status status = checkSizes(options); !status.ok())
    return status;
  auto text = [](const char *value) { return std::string(value ? value : ""); };
  options.training = {text(values.loss),
                      text(values.optimizer),
                      text(values.metrics),
                      values.drop_unsupported_metrics != 0,
                      values.sample_weights != 0,
                      {text(values.freeze), text(values.trainable), text(values.freeze_until)},
                      values.freeze_batch_norm != 0,
                      {text(values.no_weight_decay), text(values.rate), text(values.weight_decay)},
                      {},
                      {},
                      0,
                      values.step != 0,
                      text(values.state),
                      text(values.split)};
  if (Status status = checkNames(values, options); !status.ok())
    return status;
  if (Status status = checkFiles(values, options); !status.ok())
    return status;
  // Batch normalization computes the shard of a sample from its index in float32, which must be exact.
  if (options.localStatistics() && values.batch > maxLocalBatch)
    return differs("batch", "of at most " + std::to_string(maxLocalBatch) + " for statistics of shards",
                   std::to_string(values.batch));
  return {};
}

} // namespace mtc
