// SPDX-License-Identifier: Apache-2.0
#include "compiler/allocate/Kernels.h"
#include "dialects/plan/DeviceMemory.h"
#include "runtime/abi/gpu_kernel.h"
#include "runtime/abi/kernel_symbol.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

namespace mtc {

using namespace mlir;
using mt::KernelKind;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

// The shape of the loop of an elementwise kernel.
static ArrayRef<int64_t> elementwiseShape(Block &body) {
  return typeOf(body.getTerminator()->getOperand(0)).getShape();
}

std::string kernelKey(mt::KernelOp kernel) {
  std::string key;
  llvm::raw_string_ostream out(key);
  Block &body = kernel->getRegion(0).front();
  bool isElementwise = kernel.getKind() == KernelKind::elementwise;
  llvm::DenseMap<Value, unsigned> numbers;
  auto printType = [&](Value value) {
    if (!isElementwise)
      out << value.getType();
    else
      out << (typeOf(value).getShape() == elementwiseShape(body) ? "e" : "s") << typeOf(value).getElementType();
    out << ' ';
  };
  out << mt::stringifyKernelKind(kernel.getKind()) << '\n';
  for (Value argument : body.getArguments()) {
    numbers[argument] = numbers.size();
    printType(argument);
  }
  for (Operation &op : body) {
    out << '\n' << op.getName() << ' ';
    for (Value operand : op.getOperands())
      out << numbers.lookup(operand) << ' ';
    auto constant = dyn_cast<mt::ConstantOp>(op);
    if (auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr; splat && isElementwise)
      out << splat.getSplatValue<Attribute>();
    else
      out << op.getAttrDictionary();
    for (Value result : op.getResults()) {
      numbers[result] = numbers.size();
      out << ' ';
      printType(result);
    }
  }
  return key;
}

// The common name of kernels that share code: the common first parts of their names, and the last part.
static std::string commonName(StringRef a, StringRef b) {
  auto [layersA, what] = a.contains('/') ? a.rsplit('/') : std::pair<StringRef, StringRef>("", a);
  StringRef layersB = b.contains('/') ? b.rsplit('/').first : "";
  SmallVector<StringRef> partsA, partsB, common;
  layersA.split(partsA, '/', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  layersB.split(partsB, '/', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (auto [partA, partB] : llvm::zip(partsA, partsB)) {
    if (partA != partB)
      break;
    common.push_back(partA);
  }
  common.push_back(what);
  return llvm::join(common, "/");
}

KernelTable::KernelTable(ModuleOp module) : module(module), builder(OpBuilder::atBlockEnd(module.getBody())) {
  for (StringRef name : {StringRef(mtrun::sumKernelName), StringRef(MT_GPU_CLEAR_ROWS), StringRef(MT_GPU_SUM_SHARDS),
                         StringRef(MT_GPU_TRANSPOSE)})
    symbols.insert(name);
  for (Operation &op : *module.getBody())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      symbols.insert(mtrun::kernelSymbol(symbol.getName()));
  module.walk([&](mt::KernelOp kernel) {
    auto [known, isNew] = nameByKey.try_emplace(kernelKey(kernel), kernel.getName());
    if (!isNew && known->second != kernel.getName())
      known->second = commonName(known->second, kernel.getName());
  });
}

namespace {
struct Costs {
  int64_t flopsPerRow = 0, flopsFixed = 0, bytesPerRow = 0, bytesFixed = 0;
};
} // namespace

static int64_t bytesOf(Value value) { return plan::bytesOfType(value.getType()); }

// Costs of an elementwise kernel, per element.
static Costs elementwiseCosts(Block &body) {
  Costs costs;
  auto each = [&](Value value) { return typeOf(value).getShape() == elementwiseShape(body); };
  auto elements = std::max<int64_t>(1, mt::elementsPerRow(body.getTerminator()->getOperand(0).getType()));
  for (Operation &op : body)
    if (auto cost = dyn_cast<mt::CostOpInterface>(op); cost && each(op.getResult(0)))
      costs.flopsPerRow += cost.getFlops() / elements;
  auto add = [&](Value value) { costs.bytesPerRow += each(value) ? bytesOf(value) / elements : 0; };
  llvm::for_each(body.getArguments(), add);
  llvm::for_each(body.getTerminator()->getOperands(), add);
  return costs;
}

// Bytes of an operand that a kernel reads. Convolutions by strides longer than their windows pass over pixels.
static int64_t readAlong(const mt::Window &axis) {
  return axis.taps < axis.stride ? std::min(axis.inputs, axis.outputs * axis.taps) : axis.inputs;
}
static int64_t bytesRead(Value argument) {
  int64_t pixels = 1, read = 0;
  for (OpOperand &use : argument.getUses()) {
    auto op = dyn_cast<mt::ConvolutionOpInterface>(use.getOwner());
    if (!op || use.getOperandNumber() != 0 || isa<mt::Conv2DInputGradientOp>(use.getOwner()))
      return bytesOf(argument);
    mt::Convolution conv = op.getConvolution();
    pixels = conv.rows.inputs * conv.columns.inputs;
    read = std::max(read, readAlong(conv.rows) * readAlong(conv.columns));
  }
  return read == 0 ? bytesOf(argument) : bytesOf(argument) / pixels * read;
}

static Costs costsOf(Block &body, KernelKind kind) {
  if (kind == KernelKind::elementwise)
    return elementwiseCosts(body);
  Costs costs;
  for (Operation &op : body)
    if (auto cost = dyn_cast<mt::CostOpInterface>(op)) {
      bool rows = llvm::any_of(op.getOperandTypes(), mt::isSplit) || llvm::any_of(op.getResultTypes(), mt::isSplit);
      (rows ? costs.flopsPerRow : costs.flopsFixed) += cost.getFlops();
    }
  auto add = [&](Value value, int64_t bytes) {
    (mt::isSplit(value.getType()) ? costs.bytesPerRow : costs.bytesFixed) += bytes;
  };
  for (Value argument : body.getArguments())
    add(argument, bytesRead(argument));
  for (Value result : body.getTerminator()->getOperands())
    add(result, bytesOf(result));
  return costs;
}

plan::KernelOp KernelTable::create(Location location, StringRef name, KernelKind kind, Region &body) {
  std::string unique = name.str();
  for (unsigned &i = taken[name]; !symbols.insert(mtrun::kernelSymbol(unique)).second;)
    unique = (name + "_" + Twine(++i)).str();
  Costs costs = costsOf(body.front(), kind);
  // Kernels precede the programs.
  auto programs = module.getOps<mt::ProgramOp>();
  if (programs.empty())
    builder.setInsertionPointToEnd(module.getBody());
  else
    builder.setInsertionPoint(*programs.begin());
  OperationState state(location, plan::KernelOp::getOperationName());
  state.addAttribute("sym_name", builder.getStringAttr(unique));
  state.addAttribute("kind", mt::KernelKindAttr::get(builder.getContext(), kind));
  state.addAttribute("flops_per_row", builder.getI64IntegerAttr(costs.flopsPerRow));
  state.addAttribute("flops_fixed", builder.getI64IntegerAttr(costs.flopsFixed));
  state.addAttribute("bytes_per_row", builder.getI64IntegerAttr(costs.bytesPerRow));
  state.addAttribute("bytes_fixed", builder.getI64IntegerAttr(costs.bytesFixed));
  state.addRegion()->takeBody(body);
  return cast<plan::KernelOp>(builder.create(state));
}

FlatSymbolRefAttr KernelTable::outline(mt::KernelOp kernel, StringRef key, StringRef tails) {
  FlatSymbolRefAttr &symbol = byKey[(key + "\n" + tails).str()];
  if (!symbol) {
    auto outlined = create(kernel.getLoc(), nameByKey.lookup(key), kernel.getKind(), kernel->getRegion(0));
    symbol = FlatSymbolRefAttr::get(outlined.getSymNameAttr());
  }
  return symbol;
}

} // namespace mtc
