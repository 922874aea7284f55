// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/Driver.h"

#include "compiler/Pipeline.h"
#include "compiler/Reproducer.h"
#include "compiler/SizeText.h"
#include "compiler/api/Names.h"
#include "compiler/codegen/common/CpuTarget.h"
#include "compiler/differentiate/JoinLengths.h"
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/ModelTable.h"
#include "dialects/graph/GraphDialect.h"
#include "dialects/mt/Compilation.h"
#include "dialects/mt/MtDialect.h"
#include "dialects/plan/DeviceMemory.h"
#include "frontend/ClassNames.h"
#include "frontend/mlir/NameLayers.h"
#include "runtime/abi/plan_verify.h"
#include "runtime/support/atomic_file.h"
#include "runtime/support/phases.h"
#include "runtime/support/safetensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SaveAndRestore.h"

#include <chrono>
#include <ctime>

using namespace mlir;

namespace mtc {
namespace {

using mtrun::Status;

// A moment for --timing: the wall clock, and the CPU time of all threads of the process.
struct Moment {
  std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
  std::clock_t cpu = std::clock();
};

std::string since(const Moment &start) {
  Moment now;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(
      "%.1f ms, %.1f ms of CPU", std::chrono::duration<double, std::milli>(now.wall - start.wall).count(),
      1e3 * static_cast<double>(now.cpu - start.cpu) / CLOCKS_PER_SEC);
  return text;
}

Status writeFile(const std::string &path, const std::string &text) {
  mtrun::AtomicFile file;
  Status status = file.open(path);
  if (status.ok())
    status = file.write(text.data(), text.size());
  return status.ok() ? file.commit() : std::move(status);
}

Compilation compilationOf(const Options &options) {
  Compilation compilation;
  if (options.forCpus)
    compilation.cpus = options.cpus;
  compilation.gpus = options.gpus;
  compilation.options = options.values;
  compilation.lengths = options.lengths;
  compilation.logitBlocks = options.logitBlocks;
  return compilation;
}

class Driver {
public:
  Driver(const ModelSource &source, const Options &options)
      : source(source), name(source.name), options(options), context(modelDialects(), MLIRContext::Threading::DISABLED),
        diagnostics(context, name,
                    [this](DiagnosticSeverity severity, const std::string &lines) {
                      if (!repeats)
                        this->options.say(severity == DiagnosticSeverity::Warning ? 1 : 0, lines);
                    }),
        compilation(compilationOf(options)) {}

  Status run(std::vector<uint8_t> &bytes) {
    Moment start;
    OwningOpRef<ModuleOp> module = read(options.stopAfter < 0 ? &compilation.archive : nullptr);
    if (!module || mlir::failed(readShorter()))
      return failed("import");
    if (Status status = readWeights(*module); !status.ok())
      return status;
    for (auto model : module->getOps<mlir::mt::ModelOp>())
      compilation.inputScaling = findInputScaling(model, compilation.initial);
    context.appendDialectRegistry(allDialects());
    setAllAttributes(*module);
    if (const char *folder = options.values.dump_stages)
      if (std::error_code error = llvm::sys::fs::create_directories(folder))
        return mtrun::ioError("cannot create", folder, error.value());
    size_t count = options.stopAfter < 0 ? stages().size() : static_cast<size_t>(options.stopAfter) + 1;
    // The time of the first stage includes the time of reading the model.
    Moment stageStart = start;
    for (size_t i = 0; i < count; ++i, stageStart = Moment())
      if (Status status = runOne(i, *module, stageStart); !status.ok())
        return status;
    if (options.values.timing)
      say("total", start);
    if (options.stopAfter < 0)
      return finish(bytes);
    std::string result = printedModule(*module);
    bytes.assign(result.begin(), result.end());
    return {};
  }

  Status measure(std::vector<int64_t> &bytes) {
    OwningOpRef<ModuleOp> module = read(nullptr);
    if (!module || mlir::failed(readShorter()))
      return failed("import");
    context.appendDialectRegistry(allDialects());
    setAllAttributes(*module);
    for (const Stage &stage : stages()) {
      bool last = llvm::StringRef(stage.name) == "allocate";
      if (last)
        compilation.options.device_memory = 0;
      if (mlir::failed(runAll(stage, *module)))
        return failed(stage.name);
      if (last)
        break;
    }
    FailureOr<int64_t> scratch = maxScratch(*module, codegenOptions(*module, compilation.cpus));
    if (mlir::failed(scratch))
      return failed("codegen");
    int64_t microBatches = std::max(options.values.micro_batches, 1);
    for (const mtrun::DeviceMemory &memory : mlir::plan::deviceMemory(*module, *scratch, microBatches))
      bytes.push_back(static_cast<int64_t>(memory.bytes()));
    return {};
  }

  Status importModel(std::vector<uint8_t> &text, std::vector<uint8_t> &weights) {
    OwningOpRef<ModuleOp> module = read(nullptr);
    if (!module)
      return failed("import");
    dropLines(*module);
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    module->print(stream, OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix());
    stream << "\n";
    text.assign(printed.begin(), printed.end());
    if (compilation.initial.empty())
      return {};
    std::vector<mtrun::SafeTensor> tensors;
    for (const NamedTensor &tensor : compilation.initial)
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.bytes))});
    std::string header = mtrun::safetensorsHeader(tensors);
    weights.assign(header.begin(), header.end());
    for (const mtrun::SafeTensor &tensor : tensors) {
      auto *begin = reinterpret_cast<const uint8_t *>(tensor.bytes.data());
      weights.insert(weights.end(), begin, begin + tensor.bytes.size());
    }
    return {};
  }

  Status summarizeModel(std::vector<uint8_t> &text) {
    OwningOpRef<ModuleOp> module = read(nullptr);
    if (!module)
      return failed("import");
    for (auto model : module->getOps<mlir::mt::ModelOp>()) {
      std::string table = modelTable(model);
      text.insert(text.end(), table.begin(), table.end());
    }
    if (text.empty())
      return {MT_INVALID, name + ": error: expected an mt.model, found none"};
    return {};
  }

private:
  // Reads the source with the importer of its format, and sets the class names, the vocabulary and the columns file of
  // the options.
  OwningOpRef<ModuleOp> read(ExportArchive *exported) { return read(options.training, compilation.initial, exported); }

  OwningOpRef<ModuleOp> read(const TrainingOptions &training, std::vector<NamedTensor> &weights,
                             ExportArchive *exported) {
    OwningOpRef<ModuleOp> module = importModule(
        {source, options.values.batch, training, context, diagnostics, weights, options.isDouble(), exported});
    if (!module)
      return {};
    if (!options.training.classNames.empty())
      setStrings(*module, classNamesAttribute, options.training.classNames);
    if (!options.vocabulary.empty())
      setStrings(*module, vocabularyAttribute, options.vocabulary);
    if (!options.columns.empty())
      (*module)->setAttr(mlir::mt::columnsAttribute, mlir::StringAttr::get(&context, options.columns));
    return mlir::failed(checkNames(*module)) || mlir::failed(checkFixedBatch(*module)) ? OwningOpRef<ModuleOp>()
                                                                                       : std::move(module);
  }

  // A larger batch is for more shards than there are samples.
  LogicalResult checkFixedBatch(ModuleOp module) {
    auto rows = module->getAttrOfType<mlir::IntegerAttr>(mlir::mt::fixedBatchAttribute);
    if (!rows || rows.getInt() == options.values.batch)
      return success();
    if (rows.getInt() > options.values.batch)
      return module.emitError("expected --batch ")
             << rows.getInt() << ", the number of samples that the file has, found " << options.values.batch;
    module.emitWarning("steps must have ") << rows.getInt() << " samples, as the file has, and --batch is "
                                           << options.values.batch << ": use --batch " << rows.getInt();
    return success();
  }

  // Reads the model again at each length but the largest. The weights of the file are the same at all lengths.
  LogicalResult readShorter() {
    llvm::SaveAndRestore again(repeats, true);
    for (size_t i = 0; i + 1 < options.lengths.size(); ++i) {
      TrainingOptions training = options.training;
      training.length = options.lengths[i];
      std::vector<NamedTensor> weights;
      if (!shorter.emplace_back(read(training, weights, nullptr)))
        return tellLength(i);
    }
    return success();
  }

  LogicalResult tellLength(size_t index) {
    diagnostics.addError(name + ": note: at length " + std::to_string(options.lengths[index]) + " of --lengths");
    return failure();
  }

  // Runs a stage on the module of each length. `differentiate` joins these modules; later stages run on one module.
  LogicalResult runAll(const Stage &stage, ModuleOp module) {
    {
      llvm::SaveAndRestore again(repeats, true);
      for (size_t i = 0; i < shorter.size(); ++i)
        if (mlir::failed(runStage(stage, *shorter[i], compilation)))
          return tellLength(i);
    }
    if (mlir::failed(runStage(stage, module, compilation)))
      return failure();
    return llvm::StringRef(stage.name) == "differentiate" ? join(module) : success();
  }

  LogicalResult join(ModuleOp module) {
    const std::vector<int64_t> &lengths = options.lengths;
    for (auto [other, length] : llvm::zip(shorter, lengths))
      if (mlir::failed(addLength(module, lengths.back(), *other, length)))
        return failure();
    shorter.clear();
    if (lengths.empty())
      return success();
    return checkLengthInputs(module, lengths.back(), lengths.front(), options.values.length_input);
  }

  // Replaces initial values of the model by values of the same names from the file of --weights.
  Status readWeights(ModuleOp module) {
    if (!options.values.weights)
      return {};
    const std::string path = options.values.weights;
    std::vector<std::byte> file;
    std::vector<mtrun::SafeTensor> tensors;
    if (Status status = mtrun::readWholeFile(path, file); !status.ok())
      return status;
    if (Status status = mtrun::parseSafetensors(file, path, tensors); !status.ok())
      return status;
    std::vector<std::vector<std::byte>> wide;
    mtrun::widenHalves(tensors, wide);
    llvm::StringMap<size_t> indices; // index of each initial value of the model, by name
    for (auto [index, tensor] : llvm::enumerate(compilation.initial))
      indices[tensor.name] = index;
    llvm::StringSet<> valueNames;
    for (const mtrun::SafeTensor &tensor : tensors) {
      auto *begin = reinterpret_cast<const uint8_t *>(tensor.bytes.data());
      NamedTensor value = {tensor.name, tensor.dtype, tensor.shape, {begin, begin + tensor.bytes.size()}};
      valueNames.insert(tensor.name);
      if (auto found = indices.find(tensor.name); found != indices.end())
        compilation.initial[found->second] = std::move(value);
      else
        compilation.initial.push_back(std::move(value));
    }
    if (!sayWeights(module, valueNames, !indices.empty()) && !tensors.empty())
      return {MT_INVALID,
              path + ": error: expected weights of the model's variables, found \"" + tensors[0].name + "\""};
    return {};
  }

  // Reports which variables of the model the file sets, and which keep their values. Returns false if it sets none.
  bool sayWeights(ModuleOp module, const llvm::StringSet<> &valueNames, bool fromFile) {
    std::vector<std::string> set, left;
    for (auto model : module.getOps<mlir::mt::ModelOp>())
      for (auto variable : model.getOps<mlir::mt::VariableOp>())
        (valueNames.contains(variable.getName()) ? set : left).push_back(variable.getName().str());
    auto list = [](const std::vector<std::string> &names) {
      constexpr size_t most = 10;
      std::string text;
      for (size_t i = 0; i < std::min(names.size(), most); ++i)
        text += (i ? ", " : ": ") + names[i];
      return text + (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "");
    };
    size_t all = set.size() + left.size();
    std::string path = options.values.weights;
    std::string text =
        path + ": sets " + std::to_string(set.size()) + " of " + std::to_string(all) + " variables of the model";
    if (!left.empty())
      text += list(set) + "\n" + path + ": leaves " + std::to_string(left.size()) +
              (fromFile ? " as the model's file has them" : " as they are initialised") + list(left);
    options.say(0, text);
    return !set.empty() || left.empty();
  }

  // The parser knows only the dialects of models, so that it refuses text of later stages.
  static DialectRegistry modelDialects() {
    DialectRegistry registry;
    registry.insert<mlir::mt::MtDialect, mlir::graph::GraphDialect>();
    return registry;
  }

  static DialectRegistry allDialects() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  void setAllAttributes(ModuleOp module) {
    setAttributes(module);
    for (const OwningOpRef<ModuleOp> &other : shorter)
      setAttributes(*other);
    if (!options.values.cpu && options.forCpus)
      compilation.cpus = defaultCpuTargets(mlir::mt::Compilation(module).getPrecision() == "bf16");
  }

  void setAttributes(ModuleOp module) {
    mlir::mt::Compilation parameters(module);
    parameters.setBatch(options.values.batch);
    parameters.setShards(options.values.shards, options.shardRows());
    parameters.setSeed(options.values.seed);
    if (options.localStatistics())
      parameters.setLocalStatistics();
    parameters.setKinks(options.values.kinks);
    if (!options.precision.empty()) // else the text of the model may set one
      parameters.setPrecision(options.precision);
    if (options.values.fast)
      parameters.setFast();
    if (options.values.device_memory)
      parameters.setDeviceMemory(options.values.device_memory);
    for (auto model : module.getOps<mlir::mt::ModelOp>())
      parameters.setName(model.getSymName());
  }

  void say(const char *stage, const Moment &start) {
    options.say(0,
                (llvm::Twine(stage) + std::string(14 - std::min<size_t>(13, strlen(stage)), ' ') + since(start)).str());
  }

  Status failed(const char *stage) {
    if (diagnostics.errors().empty())
      diagnostics.addError(name + ": error: the stage '" + stage + "' failed without a message");
    return {MT_INVALID, diagnostics.errors()};
  }

  Status runOne(size_t index, ModuleOp module, const Moment &start) {
    const Stage &stage = stages()[index];
    if (mlir::failed(runAll(stage, module))) {
      if (mlir::mt::Compilation(module).getMinDevices() > 0)
        return failed(stage.name);
      return {MT_NO_MEMORY, diagnostics.errors()};
    }
    if (options.values.timing)
      say(stage.name, start);
    if (!options.values.dump_stages)
      return {};
    std::string number = (index < 9 ? "0" : "") + std::to_string(index + 1);
    std::string path = std::string(options.values.dump_stages) + "/" + number + "-" + stage.name + ".mlir";
    bool last = index + 1 == stages().size();
    return writeFile(path, last ? printedModule(module) : inputOf(stages()[index + 1], module, compilation));
  }

  // Verifies the plan: the compiler reports an error of its own here, before a runtime loads the plan.
  Status finish(std::vector<uint8_t> &bytes) {
    bytes = std::move(compilation.plan);
    mtrun::PlanFileView view = mtrun::openPlanFile(bytes);
    Status status = view.tables ? mtrun::verifyPlan(*view.tables) : Status(MT_CORRUPT, view.message);
    if (!status.ok())
      return {MT_INVALID, name + ": error: the compiler made a plan that does not verify: " + status.message()};
    if (Status status = checkMicroBatches(*view.tables); !status.ok())
      return std::move(status).in(name + ": error: ");
    options.say(0, summarize(view));
    return {};
  }

  Status checkMicroBatches(const ::mt::plan::Plan &plan) const {
    std::vector<mtrun::Phase> phases;
    if (plan.micro_batches() > 1 && plan.programs())
      for (const ::mt::plan::Program *program : *plan.programs())
        if (Status status = mtrun::phasesOf(plan, *program, 0, phases); !status.ok())
          return status;
    return {};
  }

  const ModelSource &source;
  const std::string &name;
  const Options &options;
  MLIRContext context;
  DiagnosticLines diagnostics;
  Compilation compilation;
  bool repeats = false;                       // work on a further length: its warnings repeat the first length's
  std::vector<OwningOpRef<ModuleOp>> shorter; // the model at all lengths but the largest, until runAll joins them
};

} // namespace

Status checkPassLists(const Options &options) {
  const mtc_options &values = options.values;
  for (auto [name, list] :
       {std::pair("--print-ir-before", values.print_ir_before), std::pair("--print-ir-after", values.print_ir_after)}) {
    if (!list)
      continue;
    MLIRContext context(MLIRContext::Threading::DISABLED);
    Compilation compilation = compilationOf(options);
    if (std::string problem = checkPassList(list, context, compilation); !problem.empty())
      return {MT_INVALID, std::string("expected ") + name + " to be " + problem};
  }
  return {};
}

Status runPipeline(const ModelSource &source, const Options &options, std::vector<uint8_t> &bytes) {
  return Driver(source, options).run(bytes);
}

Status measureMemory(const ModelSource &source, const Options &requested, std::vector<int64_t> &bytes) {
  Options options = requested;
  options.values.log = nullptr;
  return Driver(source, options).measure(bytes);
}

Status importModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text,
                   std::vector<uint8_t> &weights) {
  return Driver(source, options).importModel(text, weights);
}

Status summarizeModel(const ModelSource &source, const Options &options, std::vector<uint8_t> &text) {
  return Driver(source, options).summarizeModel(text);
}

} // namespace mtc
