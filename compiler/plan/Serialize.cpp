// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/Serialize.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/differentiate/JoinLengths.h"
#include "compiler/plan/Tables.h"
#include "runtime/abi/kernel_symbol.h"
#include "runtime/abi/plan_file.h"

namespace mtc {

using mlir::failure;

// Elements in row-major order; booleans are bytes.
static std::vector<uint8_t> bytesOfConstant(mlir::DenseElementsAttr value) {
  mlir::Type element = value.getElementType();
  int64_t count = value.getNumElements(), size = bytesOfElement(element);
  std::vector<uint8_t> bytes(count * size);
  if (element.isInteger(1)) {
    llvm::copy(value.getValues<bool>(), bytes.begin());
    return bytes;
  }
  llvm::ArrayRef<char> raw = value.getRawData();
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(&bytes[i * size], raw.data() + (value.isSplat() ? 0 : i * size), size);
  return bytes;
}

static mlir::FailureOr<std::vector<uint8_t>> makeConstants(mlir::ModuleOp module) {
  std::vector<uint8_t> section;
  mlir::WalkResult walk = module.walk([&](mlir::plan::BufferOp op) {
    if (op.getSpace() != mlir::plan::Space::constant)
      return mlir::WalkResult::advance();
    auto value = op.getValue() ? mlir::dyn_cast<mlir::DenseElementsAttr>(*op.getValue()) : nullptr;
    if (!value) {
      op.emitOpError("expected dense elements, found another kind of constant");
      return mlir::WalkResult::interrupt();
    }
    std::vector<uint8_t> bytes = bytesOfConstant(value);
    size_t offset = op.getOffsets().front();
    section.resize(std::max(section.size(), offset + bytes.size()));
    llvm::copy(bytes, section.begin() + offset);
    return mlir::WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return section;
}

static std::unique_ptr<tables::TargetT> makeTarget(const TargetCode &target, uint32_t section) {
  auto entry = std::make_unique<tables::TargetT>();
  entry->name = target.name;
  entry->features = target.features;
  entry->section = section;
  entry->device = target.device;
  for (const KernelUsage &usage : target.usage) {
    auto &added = entry->usage.emplace_back(std::make_unique<tables::GpuUsageT>());
    added->registers = usage.registers;
    added->shared_bytes = usage.sharedBytes;
    added->stack_bytes = usage.stackBytes;
    added->spill_bytes = usage.spillBytes;
    added->dynamic_shared_bytes = usage.dynamicSharedBytes;
  }
  return entry;
}

// `grid` is null if no kernel has code for GPUs.
static void addSumKernel(tables::PlanT &plan, mlir::plan::GpuGridAttr grid) {
  auto sum = std::make_unique<tables::KernelT>();
  sum->name = mtrun::sumKernelName;
  sum->kind = tables::KernelKind::Elementwise;
  sum->elements_per_tile = elementwiseElementsPerTile;
  sum->flops_per_row = 1;
  sum->bytes_per_row = 12;
  for (bool written : {false, false, true}) {
    auto &argument = sum->arguments.emplace_back(std::make_unique<tables::KernelArgumentT>());
    argument->element_bytes = sizeof(float);
    argument->written = written;
  }
  if (grid)
    sum->gpu = makeGpuGrid(grid);
  plan.sum_kernel = plan.kernels.size();
  plan.kernels.push_back(std::move(sum));
}

// Adds facts about the model that are not part of its programs.
static void addModelFacts(tables::PlanT &plan, const Compilation &compilation) {
  for (const InputScaling &scaling : compilation.inputScaling) {
    auto &entry = plan.input_scaling.emplace_back(std::make_unique<tables::InputScalingT>());
    entry->input = scaling.input;
    entry->scale = scaling.scale;
    entry->offset = scaling.offset;
    entry->per_channel = scaling.varies;
  }
}

// Adds the programs of each sequence length.
static void addLengths(tables::PlanT &plan, const Compilation &compilation) {
  const std::vector<int64_t> &lengths = compilation.lengths;
  if (lengths.size() < 2)
    return;
  for (int64_t length : lengths) {
    auto find = [&](const char *program) -> int32_t {
      std::string name = length == lengths.back() ? program : programOfLength(program, length);
      auto found = llvm::find_if(plan.programs, [&](const auto &each) { return each->name == name; });
      return found == plan.programs.end() ? -1 : static_cast<int32_t>(found - plan.programs.begin());
    };
    auto &entry = plan.lengths.emplace_back(std::make_unique<tables::LengthT>());
    entry->length = static_cast<uint64_t>(length);
    entry->train_step = find("train_step");
    entry->eval_step = find("eval_step");
    entry->predict = find("predict");
  }
  if (compilation.options.length_input)
    plan.length_input = compilation.options.length_input;
}

// Text such as "f32 [3, 3]"; types are numbered as in mt.h.
template <typename Type> static std::string described(Type type, llvm::ArrayRef<int64_t> shape) {
  static constexpr const char *names[] = {"f32", "i32", "bool", "i64", "f64", "u8", "bf16", "f16"};
  auto number = static_cast<size_t>(type);
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return std::string(number < std::size(names) ? names[number] : "another type") + " [" + text + "]";
}

static mlir::FailureOr<std::vector<uint8_t>> makeInitialValues(mlir::ModuleOp module, tables::PlanT &plan,
                                                               llvm::ArrayRef<NamedTensor> initial) {
  std::vector<uint8_t> section;
  llvm::StringMap<const NamedTensor *> tensors;
  for (const NamedTensor &tensor : initial)
    if (!tensors.try_emplace(tensor.name, &tensor).second)
      return mlir::emitError(module.getLoc())
             << "expected weights of different names, found a second \"" << tensor.name << "\"";
  for (auto &variable : plan.variables) {
    const NamedTensor *tensor = tensors.lookup(variable->name);
    if (!tensor)
      continue;
    tensors.erase(variable->name);
    if (static_cast<int>(variable->dtype) != tensor->dtype || variable->shape != tensor->shape ||
        variable->size != tensor->bytes.size())
      return mlir::emitError(module.getLoc())
             << "weights of \"" << tensor->name << "\": expected " << described(variable->dtype, variable->shape)
             << " as the variable is, found " << described(tensor->dtype, tensor->shape);
    section.resize((section.size() + 63) / 64 * 64);
    variable->initial = static_cast<int64_t>(section.size());
    section.insert(section.end(), tensor->bytes.begin(), tensor->bytes.end());
  }
  if (!initial.empty() && tensors.size() == initial.size())
    return mlir::emitError(module.getLoc())
           << "expected weights of the model's variables, found \"" << initial[0].name << "\"";
  if (!tensors.empty()) { // tensors that no variable matches, such as slots of another optimizer
    constexpr size_t most = 10;
    std::string names;
    size_t count = 0;
    for (const NamedTensor &tensor : initial)
      if (tensors.count(tensor.name) && count++ < most)
        names += (names.empty() ? "" : ", ") + tensor.name;
    mlir::emitRemark(module.getLoc()) << "leaves out " << count << " weights of no variable of the model: " << names
                                      << (count > most ? ", ..." : "");
  }
  return section;
}

// Fills the archive's table, and returns the bytes of its section.
static mlir::FailureOr<std::string> makeArchive(mlir::ModuleOp module, const ExportArchive &archive,
                                                tables::PlanT &plan) {
  std::string section;
  llvm::StringMap<uint32_t> variables;
  for (auto [index, variable] : llvm::enumerate(plan.variables))
    variables[variable->name] = index;
  plan.archive = std::make_unique<tables::ArchiveT>();
  plan.archive->suffix = archive.suffix;
  for (const ExportPiece &source : archive.pieces) {
    auto piece = std::make_unique<tables::ArchivePieceT>();
    piece->kind = static_cast<tables::PieceKind>(source.kind);
    piece->begin = source.begin;
    if (source.kind != ExportPiece::Kind::Variable)
      piece->size = source.size;
    if (source.kind == ExportPiece::Kind::Bytes)
      section += source.text;
    if (source.kind == ExportPiece::Kind::Variable) {
      auto found = variables.find(source.text);
      if (found == variables.end() || plan.variables[found->second]->size != source.size)
        return mlir::emitError(module.getLoc()) << "expected the variable \"" << source.text << "\" of " << source.size
                                                << " bytes for the archive, found another or none";
      piece->variable = found->second;
    }
    plan.archive->pieces.push_back(std::move(piece));
  }
  return section;
}

// The bodies of the kernels have numbers that no table has, such as the beta of an optimizer.
static std::string textOfKernels(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.walk([&](mlir::plan::KernelOp op) { op.print(stream, mlir::OpPrintingFlags().useLocalScope()); });
  return text;
}

mlir::FailureOr<std::vector<uint8_t>> serializePlan(mlir::ModuleOp module, const Compilation &compilation) {
  mlir::FailureOr<tables::PlanT> plan = makeTables(module);
  mlir::FailureOr<std::vector<uint8_t>> constants = makeConstants(module);
  if (failed(plan) || failed(constants))
    return failure();
  bool gpu = llvm::any_of(compilation.code, [](const TargetCode &code) { return code.device != "cpu"; });
  addSumKernel(*plan, gpu ? sumGpuGrid(module.getContext()) : mlir::plan::GpuGridAttr());
  addModelFacts(*plan, compilation);
  addLengths(*plan, compilation);
  mtrun::setStepsHash(*plan, *constants, textOfKernels(module));
  mlir::FailureOr<std::vector<uint8_t>> initialValues = makeInitialValues(module, *plan, compilation.initial);
  if (failed(initialValues))
    return failure();
  std::vector<mtrun::SectionBytes> sections;
  for (const TargetCode &target : compilation.code) {
    for (auto [kernel, bytes] : llvm::zip(plan->kernels, target.scratch))
      kernel->scratch_bytes = std::max<uint64_t>(kernel->scratch_bytes, bytes);
    plan->targets.push_back(makeTarget(target, sections.size()));
    sections.push_back({(target.device == "cpu" ? "cpu:" : "") + target.name,
                        {reinterpret_cast<const uint8_t *>(target.elf.data()), target.elf.size()}});
  }
  if (!constants->empty()) {
    plan->constants = sections.size();
    sections.push_back({"constants", *constants});
  }
  if (!initialValues->empty()) {
    plan->initial_values = sections.size();
    sections.push_back({"initial values", *initialValues});
  }
  mlir::FailureOr<std::string> archive = std::string();
  if (!compilation.archive.suffix.empty()) {
    archive = makeArchive(module, compilation.archive, *plan);
    if (failed(archive))
      return failure();
    plan->archive->section = sections.size();
    sections.push_back({"archive", {reinterpret_cast<const uint8_t *>(archive->data()), archive->size()}});
  }
  plan->micro_batches = static_cast<uint32_t>(std::max(compilation.options.micro_batches, 1));
  return mtrun::writePlanFile(*plan, sections);
}

} // namespace mtc
