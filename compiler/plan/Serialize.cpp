// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/Serialize.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/plan/Tables.h"
#include "runtime/abi/plan_file.h"

namespace mtc {

using mlir::failure;

// Elements in row-major order, booleans as bytes.
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

static void addSumKernel(tables::PlanT &plan) {
  auto sum = std::make_unique<tables::KernelT>();
  sum->name = sumKernelName.str();
  sum->kind = tables::KernelKind::Map;
  sum->elements_per_tile = mapElementsPerTile;
  sum->flops_per_row = 1;
  sum->bytes_per_row = 12;
  plan.sum_kernel = plan.kernels.size();
  plan.kernels.push_back(std::move(sum));
}

// The section of initial values, each at a multiple of 64, in the order of the variables, whose places it sets.
static mlir::FailureOr<std::vector<uint8_t>> makeInitialValues(mlir::ModuleOp module, tables::PlanT &plan,
                                                               llvm::ArrayRef<NamedTensor> initial) {
  std::vector<uint8_t> section;
  llvm::StringMap<const NamedTensor *> tensors;
  for (const NamedTensor &tensor : initial)
    if (!tensors.try_emplace(tensor.name, &tensor).second)
      return mlir::emitError(module.getLoc()) << "expected weights of different names, found a second \"" << tensor.name << "\"";
  for (auto &variable : plan.variables) {
    const NamedTensor *tensor = tensors.lookup(variable->name);
    if (!tensor)
      continue;
    tensors.erase(variable->name);
    if (static_cast<int>(variable->dtype) != tensor->dtype || variable->shape != tensor->shape || variable->size != tensor->bytes.size())
      return mlir::emitError(module.getLoc()) << "weights of \"" << tensor->name << "\": expected " << variable->size
                                              << " bytes in the variable's shape and type, found " << tensor->bytes.size();
    section.resize((section.size() + 63) / 64 * 64);
    variable->initial = static_cast<int64_t>(section.size());
    section.insert(section.end(), tensor->bytes.begin(), tensor->bytes.end());
  }
  for (const NamedTensor &tensor : initial)
    if (tensors.count(tensor.name))
      return mlir::emitError(module.getLoc()) << "expected weights of the model's variables, found \"" << tensor.name << "\"";
  return section;
}

mlir::FailureOr<std::vector<uint8_t>> serializePlan(mlir::ModuleOp module, llvm::ArrayRef<TargetCode> code,
                                                    llvm::ArrayRef<NamedTensor> initial) {
  mlir::FailureOr<tables::PlanT> plan = makeTables(module);
  mlir::FailureOr<std::vector<uint8_t>> constants = makeConstants(module);
  if (failed(plan) || failed(constants))
    return failure();
  mlir::FailureOr<std::vector<uint8_t>> initialValues = makeInitialValues(module, *plan, initial);
  if (failed(initialValues))
    return failure();
  addSumKernel(*plan);
  std::vector<mtrun::SectionBytes> sections;
  for (const TargetCode &target : code) {
    auto entry = std::make_unique<tables::TargetT>();
    entry->name = target.name;
    entry->features = target.features;
    entry->section = sections.size();
    plan->targets.push_back(std::move(entry));
    sections.push_back(
        {"cpu:" + target.name, {reinterpret_cast<const uint8_t *>(target.elf.data()), target.elf.size()}});
  }
  if (!constants->empty()) {
    plan->constants = sections.size();
    sections.push_back({"constants", *constants});
  }
  if (!initialValues->empty()) {
    plan->initial_values = sections.size();
    sections.push_back({"initial values", *initialValues});
  }
  return mtrun::writePlanFile(*plan, sections);
}

} // namespace mtc
