// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/Tables.h"

#include "dialects/mt/Compilation.h"
#include "runtime/abi/mt.h"

namespace mtc {

using mlir::failure;
using mlir::success;

tables::DType dtypeOf(mlir::Type element) {
  if (element.isInteger(1))
    return tables::DType::Bool;
  if (element.isBF16() || element.isF16())
    return element.isBF16() ? tables::DType::BF16 : tables::DType::F16;
  if (element.isF64())
    return tables::DType::F64;
  return element.isInteger(32) ? tables::DType::I32 : tables::DType::F32;
}

int64_t bytesOfElement(mlir::Type element) { return element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8; }

std::vector<int64_t> shapeOf(mlir::RankedTensorType type) {
  std::vector<int64_t> shape;
  for (int64_t size : type.getShape())
    shape.push_back(mlir::ShapedType::isDynamic(size) ? -1 : size);
  return shape;
}

std::unique_ptr<tables::GpuGridT> makeGpuGrid(mlir::plan::GpuGridAttr grid) {
  auto table = std::make_unique<tables::GpuGridT>();
  table->threads = grid.getThreads();
  table->rows_per_tile = grid.getRowsPerTile();
  table->inner_tiles = grid.getInnerTiles();
  table->elements_per_tile = grid.getElementsPerTile();
  table->shared_bytes = grid.getSharedBytes();
  table->partial_bytes = grid.getPartialBytes();
  return table;
}

static std::unique_ptr<tables::CallAxis> makeAxis(mlir::plan::AxisAttr axis) {
  auto size = [](int64_t number) { return static_cast<uint32_t>(number); };
  return std::make_unique<tables::CallAxis>(size(axis.getInputs()), size(axis.getOutputs()), size(axis.getTaps()),
                                            size(axis.getStride()), size(axis.getDilation()), size(axis.getLow()),
                                            size(axis.getHigh()));
}

static std::unique_ptr<tables::LibraryCallT> makeCall(mlir::plan::LibraryCallAttr call) {
  using namespace mlir::plan;
  // The enums of library calls have the same numbers in the IR and in the file.
  auto same = [](auto ir, auto file) consteval { return static_cast<int>(ir) == static_cast<int>(file); };
  static_assert(same(CallKind::product_tree, tables::CallKind::ProductTree));
  static_assert(same(CallKind::convolution, tables::CallKind::Convolution));
  static_assert(same(CallKind::convolution_input, tables::CallKind::ConvolutionInput));
  static_assert(same(CallKind::convolution_tree, tables::CallKind::ConvolutionTree));
  static_assert(same(CallMath::tf32, tables::CallMath::TF32));
  static_assert(same(CallEpilogue::relu, tables::CallEpilogue::Relu));
  static_assert(same(CallEpilogue::bias, tables::CallEpilogue::Bias));
  static_assert(same(CallEpilogue::bias_relu, tables::CallEpilogue::BiasRelu));
  auto table = std::make_unique<tables::LibraryCallT>();
  table->kind = static_cast<tables::CallKind>(call.getKind());
  table->math = static_cast<tables::CallMath>(call.getMath());
  table->epilogue = static_cast<tables::CallEpilogue>(call.getEpilogue());
  table->left = call.getLeft();
  table->right = call.getRight();
  table->result = call.getResult();
  table->bias = static_cast<int32_t>(call.getBias());
  if (ProductSizesAttr sizes = call.getProduct()) {
    table->lines = sizes.getLines();
    table->depth = sizes.getDepth();
    table->columns = sizes.getColumns();
    table->transposed = sizes.getTransposed();
  }
  if (ConvolutionSizesAttr sizes = call.getConvolution()) {
    table->down = makeAxis(sizes.getDown());
    table->across = makeAxis(sizes.getAcross());
    table->channels = static_cast<uint32_t>(sizes.getChannels());
    table->filters = static_cast<uint32_t>(sizes.getFilters());
    table->groups = static_cast<uint32_t>(sizes.getGroups());
  }
  return table;
}

// Largest workspace of the library calls of a plan, in bytes: an eighth of the largest arena of a device with one
// shard, which devices of any number of shards have, but at least 32 MiB. If the memory of a device is limited, 32 MiB.
static uint64_t callWorkspaceBytes(const tables::PlanT &plan, bool limited) {
  constexpr uint64_t part = 8, unit = 1 << 20, least = 32 << 20;
  uint64_t arena = 0;
  for (const auto &program : plan.programs)
    arena = std::max(arena, program->variants.front()->arena_bytes);
  return limited ? least : std::max(least, arena / part / unit * unit);
}

// Adds all operands, then all results, including operands and results that the kernel does not access. The body of an
// elementwise kernel is written for one number of elements; an operand of rank 0, such as a learning rate, is shared by
// all elements if the results have a higher rank.
static void addArguments(mlir::plan::KernelOp op, tables::KernelT &kernel) {
  mlir::Block &body = op.getBody().front();
  bool isElementwise = kernel.kind == tables::KernelKind::Elementwise;
  mlir::ValueRange results = body.getTerminator()->getOperands();
  bool shares = isElementwise && mlir::cast<mlir::RankedTensorType>(results.front().getType()).getRank() > 0;
  auto add = [&](mlir::Value value, bool written) {
    auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    auto argument = std::make_unique<tables::KernelArgumentT>();
    uint64_t element = bytesOfElement(type.getElementType());
    if (isElementwise)
      (shares && type.getRank() == 0 ? argument->fixed_bytes : argument->element_bytes) = element;
    else
      (mlir::mt::isSplit(type) ? argument->row_bytes : argument->fixed_bytes) =
          mlir::mt::elementsPerRow(type) * element;
    argument->written = written;
    kernel.arguments.push_back(std::move(argument));
  };
  for (mlir::Value argument : body.getArguments())
    add(argument, false);
  for (mlir::Value result : results)
    add(result, true);
}

static tables::KernelKind kindOf(mlir::mt::KernelKind kind) {
  static constexpr tables::KernelKind kinds[] = {
#define KIND(kind, name, Name) tables::KernelKind::Name,
#include "dialects/mt/KernelKinds.def"
  };
  return kinds[static_cast<size_t>(kind)];
}

static bool drawsNumbers(mlir::Operation &op) {
  auto drops = [](auto attention) { return attention && attention.getStep(); };
  return mlir::isa<mlir::mt::RandomUniformOp>(op) || drops(mlir::dyn_cast<mlir::mt::AttentionOp>(op)) ||
         drops(mlir::dyn_cast<mlir::mt::AttentionGradientOp>(op));
}

static std::unique_ptr<tables::KernelT> makeKernel(mlir::plan::KernelOp op) {
  auto kernel = std::make_unique<tables::KernelT>();
  kernel->name = op.getSymName().str();
  kernel->kind = kindOf(op.getKind());
  kernel->rows_per_tile = op.getRowsPerTile().value_or(0);
  kernel->inner_tiles = op.getInnerTiles().value_or(1);
  kernel->elements_per_tile = op.getElementsPerTile().value_or(0);
  if (mlir::plan::GpuGridAttr grid = op.getGpuGridAttr()) {
    kernel->gpu = makeGpuGrid(grid);
    if (mlir::plan::LibraryCallAttr call = op.getLibraryCallAttr())
      kernel->gpu->call = makeCall(call);
  }
  kernel->flops_per_row = op.getFlopsPerRow();
  kernel->flops_fixed = op.getFlopsFixed();
  kernel->bytes_per_row = op.getBytesPerRow();
  kernel->bytes_fixed = op.getBytesFixed();
  addArguments(op, *kernel);
  for (mlir::Operation &inner : op.getBody().front()) {
    kernel->uses_rows |= llvm::any_of(inner.getOperandTypes(), mlir::mt::isSplit) ||
                         llvm::any_of(inner.getResultTypes(), mlir::mt::isSplit);
    kernel->random |= drawsNumbers(inner);
  }
  return kernel;
}

static std::unique_ptr<tables::VariableT> makeVariable(mlir::plan::VariableOp op) {
  auto type = mlir::cast<mlir::RankedTensorType>(op.getType());
  auto variable = std::make_unique<tables::VariableT>();
  variable->name = op.getSymName().str();
  variable->dtype = dtypeOf(type.getElementType());
  variable->shape = shapeOf(type);
  variable->kind = static_cast<tables::VariableKind>(op.getKind());
  variable->offset = op.getOffset();
  variable->size = op.getBytes();
  return variable;
}

static void addModuleFacts(mlir::ModuleOp module, tables::PlanT &plan) {
  plan.producer = "mtc " MT_VERSION;
  mlir::mt::Compilation compilation(module);
  plan.model = compilation.getName().str();
  plan.batch = compilation.getBatch();
  plan.shards = compilation.getShards();
  plan.shard_rows = compilation.getShardRows();
  plan.seed = compilation.getSeed();
  plan.fast = compilation.isFast();
  plan.precision = compilation.getPrecision().str();
  for (auto [attribute, strings] :
       {std::pair(mlir::mt::classNamesAttribute, &plan.class_names), {mlir::mt::vocabularyAttribute, &plan.vocabulary}})
    if (auto list = module->getAttrOfType<mlir::ArrayAttr>(attribute))
      for (auto text : list.getAsRange<mlir::StringAttr>())
        strings->push_back(text.str());
  if (auto columns = module->getAttrOfType<mlir::StringAttr>(mlir::mt::columnsAttribute))
    plan.columns = columns.str();
  if (auto rows = module->getAttrOfType<mlir::IntegerAttr>(mlir::mt::fixedBatchAttribute)) {
    plan.fixed_batch = std::make_unique<tables::FixedBatchT>();
    plan.fixed_batch->rows = static_cast<uint64_t>(rows.getInt());
  }
  plan.min_devices = compilation.getMinDevices();
}

static llvm::LogicalResult addAverages(mlir::ModuleOp module, const llvm::StringMap<unsigned> &variables,
                                       tables::PlanT &plan) {
  for (auto op : module.getOps<mlir::plan::VariableOp>()) {
    if (op.getRole() != mlir::mt::VariableRole::average)
      continue;
    auto of = variables.find(op.getOf().value_or(""));
    if (of == variables.end())
      return op.emitOpError("expected the average of a variable, found no \"") << op.getOf().value_or("") << '"';
    plan.variables[of->second]->average = static_cast<int32_t>(variables.lookup(op.getSymName()));
  }
  return success();
}

mlir::FailureOr<tables::PlanT> makeTables(mlir::ModuleOp module) {
  tables::PlanT plan;
  addModuleFacts(module, plan);
  llvm::StringMap<unsigned> kernels, variables;
  for (auto op : module.getOps<mlir::plan::VariableOp>()) {
    unsigned index = plan.variables.size();
    variables[op.getSymName()] = index;
    plan.variables.push_back(makeVariable(op));
    plan.variables_bytes = std::max<uint64_t>(plan.variables_bytes, op.getOffset() + op.getBytes());
    if (op.getRole() == mlir::mt::VariableRole::iteration)
      plan.iteration = index;
    if (op.getRole() == mlir::mt::VariableRole::learning_rate)
      plan.learning_rate = index;
  }
  if (failed(addAverages(module, variables, plan)))
    return failure();
  bool calls = false;
  for (auto op : module.getOps<mlir::plan::KernelOp>()) {
    kernels[op.getSymName()] = plan.kernels.size();
    plan.kernels.push_back(makeKernel(op));
    calls |= plan.kernels.back()->gpu && plan.kernels.back()->gpu->call;
  }
  ProgramTables programs(kernels, variables, plan.layers);
  for (auto op : module.getOps<mlir::plan::ProgramOp>()) {
    auto program = programs.make(op);
    if (failed(program))
      return failure();
    plan.programs.push_back(std::move(*program));
  }
  if (calls)
    plan.call_workspace = callWorkspaceBytes(plan, mlir::mt::Compilation(module).limitsMemory());
  return plan;
}

} // namespace mtc
