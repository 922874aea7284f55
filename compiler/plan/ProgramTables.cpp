// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/Tables.h"
#include "dialects/mt/Tails.h"

#include "llvm/ADT/SetVector.h"

namespace mtc {

using mlir::failure;
using mlir::isa;
using mlir::success;
using mlir::plan::Space;

static std::vector<uint64_t> unsignedCopy(llvm::ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

std::vector<uint32_t> ProgramTables::indices(mlir::ValueRange values) const {
  std::vector<uint32_t> result;
  for (mlir::Value value : values)
    result.push_back(buffers.lookup(value));
  return result;
}

void ProgramTables::addSignature(mlir::plan::SignatureOp op) {
  auto type = mlir::cast<mlir::RankedTensorType>(op.getType());
  auto entry = std::make_unique<tables::SignatureEntryT>();
  entry->name = op.getName().str();
  entry->role = static_cast<tables::Role>(op.getRole());
  entry->dtype = dtypeOf(type.getElementType());
  entry->shape = shapeOf(type);
  entry->row_bytes = mlir::mt::elementsPerRow(type) * bytesOfElement(type.getElementType());
  entry->limit = op.getLimit().value_or(-1);
  entry->optional = entry->role == tables::Role::SampleWeight;
  signature[entry->name] = program->signature.size();
  program->signature.push_back(std::move(entry));
}

llvm::LogicalResult ProgramTables::addBuffer(mlir::plan::BufferOp op) {
  auto type = mlir::cast<mlir::plan::BufferType>(op.getResult().getType()).getType();
  auto buffer = std::make_unique<tables::BufferT>();
  buffer->name = op.getName().str();
  buffer->space = static_cast<tables::Space>(op.getSpace());
  buffer->dtype = dtypeOf(type.getElementType());
  uint64_t bytes = mlir::mt::elementsPerRow(type) * bytesOfElement(type.getElementType());
  (mlir::mt::isSplit(type) ? buffer->row_bytes : buffer->fixed_bytes) = bytes;
  buffer->offset = unsignedCopy(op.getOffsets());
  buffer->shape = shapeOf(type);
  if (op.getSpace() == Space::variable || op.getSpace() == Space::signature) {
    const llvm::StringMap<unsigned> &names = op.getSpace() == Space::variable ? variables : signature;
    auto found = names.find(op.getRef().value_or(""));
    if (found == names.end())
      return op.emitOpError("expected the name of a ")
             << mlir::plan::stringifySpace(op.getSpace()) << ", found \"" << op.getRef().value_or("") << "\"";
    buffer->index = found->second;
  }
  buffers[op.getResult()] = program->buffers.size();
  program->buffers.push_back(std::move(buffer));
  return success();
}

// The only name in the location, or the line of the model's text; none if the location has several names.
int32_t ProgramTables::layerOf(mlir::Location location) {
  llvm::SmallSetVector<llvm::StringRef, 4> names;
  std::string line;
  location->walk([&](mlir::Location inner) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(inner)) {
      names.insert(name.getName().getValue());
      return mlir::WalkResult::skip();
    }
    if (auto file = mlir::dyn_cast<mlir::FileLineColLoc>(inner)) {
      std::string lineName = "line " + std::to_string(file.getLine());
      line = line.empty() || line == lineName ? lineName : "several";
    }
    return mlir::WalkResult::advance();
  });
  bool clean =
      names.size() == 1 && !names[0].empty() && names[0].size() <= mlir::mt::maxNameBytes && mlir::mt::isText(names[0]);
  std::string name = clean ? names[0].str() : names.empty() && line != "several" ? line : "";
  if (name.empty())
    return -1;
  auto [found, isNew] = layerNumbers.try_emplace(name, layers.size());
  if (isNew)
    layers.push_back(name);
  return static_cast<int32_t>(found->second);
}

llvm::LogicalResult ProgramTables::addLaunch(mlir::plan::LaunchOp op) {
  auto kernel = kernels.find(op.getKernel());
  if (kernel == kernels.end())
    return op.emitOpError("expected a plan.kernel, found no @") << op.getKernel();
  auto step = std::make_unique<tables::StepT>();
  step->wait = static_cast<tables::Wait>(op.getWait());
  step->tail = mlir::mt::isTail(op);
  step->kernel = kernel->second;
  step->share = op.getShare();
  step->layer = layerOf(op.getLoc());
  size_t segments = op.getCounts().size();
  if (segments == 0 || op.getReads().size() % segments != 0 || op.getWrites().size() % segments != 0)
    return op.emitOpError("expected the same number of buffers for each of ")
           << segments << " segments, found " << op.getReads().size() << " reads and " << op.getWrites().size()
           << " writes";
  size_t reads = op.getReads().size() / segments, writes = op.getWrites().size() / segments;
  for (size_t i = 0; i < segments; ++i) {
    auto segment = std::make_unique<tables::SegmentT>();
    segment->buffers = indices(op.getReads().slice(i * reads, reads));
    std::vector<uint32_t> written = indices(op.getWrites().slice(i * writes, writes));
    segment->buffers.insert(segment->buffers.end(), written.begin(), written.end());
    segment->count = op.getCounts()[i];
    step->segments.push_back(std::move(segment));
  }
  program->steps.push_back(std::move(step));
  return success();
}

void ProgramTables::addReduce(mlir::plan::AllReduceOp op) {
  auto offsets = [](mlir::Value value) { return value.getDefiningOp<mlir::plan::BufferOp>().getOffsets(); };
  auto step = std::make_unique<tables::StepT>();
  step->wait = tables::Wait::All;
  step->collective = op.getOrder();
  step->partial_offset = unsignedCopy(offsets(op.getPartials().front()));
  step->result_offset = offsets(op.getResults().front()).front();
  step->partial_bytes = op.getBytes();
  program->steps.push_back(std::move(step));
}

void ProgramTables::addResult(mlir::plan::ResultOp op) {
  auto metric = std::make_unique<tables::MetricT>();
  metric->name = op.getName().str();
  metric->is_loss = op.getLoss();
  metric->value = buffers.lookup(op.getValue());
  metric->weight = buffers.lookup(op.getWeight());
  metric->finalizer = tables::Finalizer(op.getFinalizer());
  metric->better = tables::Better(op.getBetter());
  metric->shape.assign(op.getShape().begin(), op.getShape().end());
  metric->parameters.assign(op.getParameters().begin(), op.getParameters().end());
  program->metrics.push_back(std::move(metric));
}

// A multiple of the rows of most tiles, and of a pair of samples.
static constexpr uint64_t rowsOfPart = 64;

mlir::FailureOr<std::unique_ptr<tables::ProgramT>> ProgramTables::make(mlir::plan::ProgramOp op) {
  program = std::make_unique<tables::ProgramT>();
  signature.clear();
  buffers.clear();
  program->name = op.getSymName().str();
  program->shared_bytes = op.getSharedBytes();
  if (op.getParts()) {
    program->parts = std::make_unique<tables::ShardPartsT>();
    program->parts->unit = rowsOfPart;
  }
  for (size_t variant = 0; variant < op.getVariantArena().size(); ++variant) {
    auto entry = std::make_unique<tables::VariantT>();
    entry->shards = uint32_t(1) << variant;
    entry->arena_bytes = op.getVariantArena()[variant];
    entry->bound_bytes = op.getVariantBound()[variant];
    program->variants.push_back(std::move(entry));
  }
  for (mlir::Operation &inner : op.getBody().front()) {
    llvm::LogicalResult done = success();
    if (auto entry = mlir::dyn_cast<mlir::plan::SignatureOp>(inner))
      addSignature(entry);
    else if (auto buffer = mlir::dyn_cast<mlir::plan::BufferOp>(inner))
      done = addBuffer(buffer);
    else if (auto launch = mlir::dyn_cast<mlir::plan::LaunchOp>(inner))
      done = addLaunch(launch);
    else if (auto reduce = mlir::dyn_cast<mlir::plan::AllReduceOp>(inner))
      addReduce(reduce);
    else if (auto result = mlir::dyn_cast<mlir::plan::ResultOp>(inner))
      addResult(result);
    else if (auto rate = mlir::dyn_cast<mlir::plan::RateOp>(inner))
      program->learning_rate = buffers.lookup(rate.getValue());
    else
      done = inner.emitOpError("expected an op of a plan program, found this");
    if (failed(done))
      return failure();
  }
  // Losses precede metrics; callers see this order.
  std::stable_partition(program->metrics.begin(), program->metrics.end(),
                        [](const auto &metric) { return metric->is_loss; });
  return std::move(program);
}

} // namespace mtc
