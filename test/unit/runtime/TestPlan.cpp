// SPDX-License-Identifier: Apache-2.0
#include "TestPlan.h"

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mtrun::test {

namespace fb = ::mt::plan;

namespace {

enum KernelIndex { InitVariables, PredictRows, DifferenceRows, GradientPartial, LossPartial, Finish, Update };

uint64_t align64(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

void addKernel(fb::PlanT &plan, const char *name, fb::KernelKind kind, uint64_t rowsPerTile, uint64_t innerTiles,
               uint64_t elementsPerTile, bool usesRows) {
  auto kernel = std::make_unique<fb::KernelT>();
  kernel->name = name;
  kernel->kind = kind;
  kernel->rows_per_tile = rowsPerTile;
  kernel->inner_tiles = innerTiles;
  kernel->elements_per_tile = elementsPerTile;
  kernel->uses_rows = usesRows;
  plan.kernels.push_back(std::move(kernel));
}

// What a kernel takes of a buffer.
fb::KernelArgumentT taking(uint64_t fb::KernelArgumentT::*field, uint64_t bytes) {
  fb::KernelArgumentT argument;
  argument.*field = bytes;
  return argument;
}
fb::KernelArgumentT fixedBytes(uint64_t bytes) { return taking(&fb::KernelArgumentT::fixed_bytes, bytes); }
fb::KernelArgumentT bytesARow(uint64_t bytes) { return taking(&fb::KernelArgumentT::row_bytes, bytes); }
fb::KernelArgumentT bytesAnElement(uint64_t bytes) { return taking(&fb::KernelArgumentT::element_bytes, bytes); }

void setArguments(fb::KernelT &kernel, std::initializer_list<fb::KernelArgumentT> read,
                  std::initializer_list<fb::KernelArgumentT> written) {
  for (const auto &argument : read)
    kernel.arguments.push_back(std::make_unique<fb::KernelArgumentT>(argument));
  for (const auto &argument : written) {
    kernel.arguments.push_back(std::make_unique<fb::KernelArgumentT>(argument));
    kernel.arguments.back()->written = true;
  }
}

void addArguments(fb::PlanT &plan, uint64_t features) {
  constexpr uint64_t number = sizeof(float), shape = 2 * sizeof(int64_t);
  auto of = [&](uint32_t kernel) -> fb::KernelT & { return *plan.kernels[kernel]; };
  fb::KernelArgumentT constant = fixedBytes(shape), w = fixedBytes(features * number), one = fixedBytes(number);
  fb::KernelArgumentT x = bytesARow(features * number), row = bytesARow(number), element = bytesAnElement(number);
  setArguments(of(InitVariables), {constant}, {w, one, one, one});
  setArguments(of(PredictRows), {constant, x, w, one}, {row});
  setArguments(of(DifferenceRows), {constant, x, row, row, w, one}, {row});
  setArguments(of(GradientPartial), {constant, x, row}, {fixedBytes((features + 1) * number)});
  setArguments(of(LossPartial), {constant, row, row}, {fixedBytes(2 * number)});
  setArguments(of(Finish), {fixedBytes(2 * number)}, {one, one, one});
  setArguments(of(Update), {element, element, one}, {});
  of(Update).arguments[1]->written = true;
  setArguments(of(SumPartials), {element, element}, {element});
  setArguments(of(Probe), {}, {fixedBytes(0), fixedBytes(0)});
  setArguments(of(Rotate), {fixedBytes(64 * number)}, {fixedBytes(64 * number)});
  setArguments(of(DoubleRows), {row}, {row});
}

void addVariable(fb::PlanT &plan, const char *name, fb::DType dtype, std::vector<int64_t> shape, uint64_t bytes,
                 fb::VariableKind kind) {
  auto variable = std::make_unique<fb::VariableT>();
  variable->name = name;
  variable->dtype = dtype;
  variable->shape = std::move(shape);
  variable->kind = kind;
  variable->offset = plan.variables_bytes;
  variable->size = bytes;
  plan.variables_bytes += align64(bytes);
  plan.variables.push_back(std::move(variable));
}

// Adds buffers and steps to one program, keeping track of where its arena and its shared block end.
class ProgramBuilder {
public:
  ProgramBuilder(const fb::PlanT &plan, const char *name) : plan_(plan), program_(std::make_unique<fb::ProgramT>()) {
    program_->name = name;
    for (uint32_t shards = 1; shards <= plan.shards; shards *= 2) {
      auto variant = std::make_unique<fb::VariantT>();
      variant->shards = shards;
      program_->variants.push_back(std::move(variant));
    }
  }

  void entry(const char *name, fb::Role role, std::vector<int64_t> shape, bool optional = false) {
    auto entry = std::make_unique<fb::SignatureEntryT>();
    entry->name = name;
    entry->role = role;
    entry->row_bytes = sizeof(float);
    for (size_t i = 1; i < shape.size(); ++i)
      entry->row_bytes *= static_cast<uint64_t>(shape[i]);
    entry->shape = std::move(shape);
    entry->optional = optional;
    program_->signature.push_back(std::move(entry));
    auto buffer = newBuffer(fb::Space::Signature, 0, program_->signature.back()->row_bytes);
    buffer->index = static_cast<uint32_t>(program_->signature.size() - 1);
    program_->buffers.push_back(std::move(buffer));
  }

  uint32_t signatureBuffer(uint32_t index) {
    for (uint32_t i = 0; i < program_->buffers.size(); ++i)
      if (program_->buffers[i]->space == fb::Space::Signature && program_->buffers[i]->index == index)
        return i;
    return 0;
  }

  uint32_t variable(uint32_t index) {
    auto buffer = newBuffer(fb::Space::Variable, plan_.variables[index]->size, 0);
    buffer->index = index;
    return add(std::move(buffer));
  }

  uint32_t constant() {
    auto buffer = newBuffer(fb::Space::Constant, 16, 0);
    buffer->offset = {0};
    return add(std::move(buffer));
  }

  uint32_t arena(uint64_t fixedBytes, uint64_t rowBytes) {
    auto buffer = newBuffer(fb::Space::Arena, fixedBytes, rowBytes);
    for (auto &variant : program_->variants) {
      buffer->offset.push_back(variant->arena_bytes);
      variant->arena_bytes += align64(fixedBytes + rowBytes * variant->shards * plan_.shard_rows);
    }
    return add(std::move(buffer));
  }

  // `bytes` at `offset` of an earlier shared buffer, or at a new place.
  uint32_t shared(uint64_t bytes) {
    auto buffer = newBuffer(fb::Space::Shared, bytes, 0);
    buffer->offset = {program_->shared_bytes};
    program_->shared_bytes += align64(bytes);
    return add(std::move(buffer));
  }
  uint32_t sharedAt(uint32_t other, uint64_t offset, uint64_t bytes) {
    auto buffer = newBuffer(fb::Space::Shared, bytes, 0);
    buffer->offset = {program_->buffers[other]->offset[0] + offset};
    return add(std::move(buffer));
  }

  fb::StepT &launch(fb::Wait wait, int kernel, bool share,
                    std::vector<std::pair<uint64_t, std::vector<uint32_t>>> segments) {
    auto step = std::make_unique<fb::StepT>();
    step->wait = wait;
    step->kernel = kernel;
    step->share = share;
    for (auto &[count, buffers] : segments) {
      auto segment = std::make_unique<fb::SegmentT>();
      segment->count = count;
      segment->buffers = buffers;
      step->segments.push_back(std::move(segment));
    }
    program_->steps.push_back(std::move(step));
    return *program_->steps.back();
  }

  void allReduce(fb::Wait wait, int number, uint32_t partial, uint32_t result) {
    auto step = std::make_unique<fb::StepT>();
    step->wait = wait;
    step->collective = number;
    step->partial_offset = program_->buffers[partial]->offset;
    step->result_offset = program_->buffers[result]->offset[0];
    step->partial_bytes = program_->buffers[partial]->fixed_bytes;
    program_->steps.push_back(std::move(step));
  }

  void metric(const char *name, uint32_t value, uint32_t weight) {
    auto metric = std::make_unique<fb::MetricT>();
    metric->name = name;
    metric->is_loss = true;
    metric->value = value;
    metric->weight = weight;
    program_->metrics.push_back(std::move(metric));
  }

  std::unique_ptr<fb::ProgramT> take() { return std::move(program_); }

private:
  std::unique_ptr<fb::BufferT> newBuffer(fb::Space space, uint64_t fixedBytes, uint64_t rowBytes) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = "buffer" + std::to_string(program_->buffers.size());
    buffer->space = space;
    buffer->fixed_bytes = fixedBytes;
    buffer->row_bytes = rowBytes;
    return buffer;
  }

  uint32_t add(std::unique_ptr<fb::BufferT> buffer) {
    program_->buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(program_->buffers.size() - 1);
  }

  const fb::PlanT &plan_;
  std::unique_ptr<fb::ProgramT> program_;
};

// The grids of the CPU, four threads a block.
void addGpu(fb::PlanT &plan, bool ptx) {
  for (auto &kernel : plan.kernels) {
    kernel->gpu = std::make_unique<fb::GpuGridT>();
    kernel->gpu->threads = gpuThreads;
    kernel->gpu->rows_per_tile = kernel->rows_per_tile;
    kernel->gpu->inner_tiles = kernel->inner_tiles;
    kernel->gpu->elements_per_tile = kernel->elements_per_tile;
    kernel->gpu->shared_bytes = sizeof(uint32_t);
  }
  auto target = std::make_unique<fb::TargetT>();
  target->name = ptx ? "cuda:ptx" : "cuda:simulated";
  if (ptx)
    target->features = {"compute_75"};
  target->device = "cuda";
  target->section = 2;
  plan.targets.push_back(std::move(target));
}

std::unique_ptr<fb::ProgramT> makeInit(const fb::PlanT &plan) {
  ProgramBuilder builder(plan, "init");
  std::vector<uint32_t> buffers = {builder.constant()};
  for (uint32_t v = 0; v < plan.variables.size(); ++v)
    buffers.push_back(builder.variable(v));
  builder.launch(fb::Wait::None, InitVariables, true, {{0, buffers}});
  return builder.take();
}

std::unique_ptr<fb::ProgramT> makePredict(const fb::PlanT &plan, int64_t features) {
  ProgramBuilder builder(plan, "predict");
  builder.entry("x", fb::Role::Input, {-1, features});
  builder.entry("out", fb::Role::Output, {-1});
  builder.launch(fb::Wait::None, PredictRows, false,
                 {{0, {builder.constant(), 0, builder.variable(0), builder.variable(1), 1}}});
  return builder.take();
}

std::unique_ptr<fb::ProgramT> makeTrainStep(const fb::PlanT &plan, int64_t features) {
  ProgramBuilder builder(plan, "train_step");
  builder.entry("x", fb::Role::Input, {-1, features});
  builder.entry("y", fb::Role::Target, {-1});
  builder.entry("sample_weight", fb::Role::SampleWeight, {-1}, true);
  uint32_t shape = builder.constant(), w = builder.variable(0), b = builder.variable(1), rate = builder.variable(2),
           iteration = builder.variable(3);
  uint64_t weights = static_cast<uint64_t>(features) * sizeof(float);
  uint32_t difference = builder.arena(0, sizeof(float));
  uint32_t partial = builder.arena(weights + sizeof(float), 0), lossPartial = builder.arena(2 * sizeof(float), 0);
  uint32_t gradient = builder.shared(weights + sizeof(float)), sums = builder.shared(2 * sizeof(float));
  uint32_t loss = builder.shared(sizeof(float)), weight = builder.shared(sizeof(float));
  uint32_t gradientOfB = builder.sharedAt(gradient, weights, sizeof(float));

  builder.launch(fb::Wait::None, DifferenceRows, false, {{0, {shape, 0, 1, 2, w, b, difference}}});
  builder.launch(fb::Wait::Device, GradientPartial, false, {{0, {shape, 0, difference, partial}}});
  builder.launch(fb::Wait::None, LossPartial, false, {{0, {shape, difference, 2, lossPartial}}});
  builder.allReduce(fb::Wait::All, 0, partial, gradient);
  builder.allReduce(fb::Wait::None, 1, lossPartial, sums);
  builder.launch(fb::Wait::All, Finish, true, {{0, {sums, loss, weight, iteration}}});
  builder.launch(fb::Wait::None, Update, true,
                 {{static_cast<uint64_t>(features), {gradient, w, rate}}, {1, {gradientOfB, b, rate}}});
  builder.metric("loss", loss, weight);
  return builder.take();
}

} // namespace

fb::PlanT makeTables(const TestPlanShape &shape) {
  fb::PlanT plan;
  int64_t features = static_cast<int64_t>(shape.features);
  plan.producer = "test";
  plan.model = "linear";
  plan.batch = shape.batch;
  plan.shards = shape.shards;
  plan.shard_rows = (shape.batch + shape.shards - 1) / shape.shards;
  plan.seed = 7;
  plan.constants = 1;
  plan.sum_kernel = SumPartials;
  plan.learning_rate = 2;
  plan.iteration = 3;
  addKernel(plan, "init_variables", fb::KernelKind::Single, 0, 1, 0, false);
  addKernel(plan, "predict_rows", fb::KernelKind::Rows, 3, 1, 0, true);
  addKernel(plan, "difference_rows", fb::KernelKind::Rows, 3, 1, 0, true);
  addKernel(plan, "gradient_partial", fb::KernelKind::Reduce, 0, shape.features + 1, 0, true);
  addKernel(plan, "loss_partial", fb::KernelKind::Reduce, 0, 2, 0, true);
  addKernel(plan, "finish", fb::KernelKind::Single, 0, 1, 0, false);
  addKernel(plan, "update", fb::KernelKind::Elementwise, 0, 1, 5, false);
  addKernel(plan, "sum_partials", fb::KernelKind::Elementwise, 0, 1, 4, false);
  addKernel(plan, "probe", fb::KernelKind::Rows, 3, 2, 0, true);
  addKernel(plan, "rotate", fb::KernelKind::Rows, 0, 64, 0, false);
  addKernel(plan, "double_rows", fb::KernelKind::Rows, 1, 1, 0, true);
  addArguments(plan, shape.features);
  addVariable(plan, "w", fb::DType::F32, {features}, shape.features * sizeof(float), fb::VariableKind::Trainable);
  addVariable(plan, "b", fb::DType::F32, {1}, sizeof(float), fb::VariableKind::Trainable);
  addVariable(plan, "rate", fb::DType::F32, {}, sizeof(float), fb::VariableKind::NonTrainable);
  addVariable(plan, "iteration", fb::DType::I32, {}, sizeof(int32_t), fb::VariableKind::NonTrainable);
  for (const char *name : {"first", "any"}) {
    auto target = std::make_unique<fb::TargetT>();
    target->name = name;
    if (target->name == "first")
      target->features = {"no-such-feature"};
    plan.targets.push_back(std::move(target));
  }
  if (shape.gpu)
    addGpu(plan, shape.ptx);
  plan.programs.push_back(makeInit(plan));
  plan.programs.push_back(makeTrainStep(plan, features));
  plan.programs.push_back(makePredict(plan, features));
  return plan;
}

std::vector<uint8_t> kernelFile(const char *name) {
  const char *folder = std::getenv("MTC_TEST_KERNELS");
  std::ifstream file(std::string(folder ? folder : MTC_TEST_KERNELS) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<uint8_t> makePlan(const TestPlanShape &shape, const std::function<void(fb::PlanT &)> &change) {
  fb::PlanT plan = makeTables(shape);
  if (change)
    change(plan);
  std::vector<uint8_t> code = kernelFile(), gpuCode = kernelFile(shape.ptx ? "gpu_kernels.ptx" : "gpu_kernels.so");
  uint64_t constants[] = {plan.shard_rows, shape.features};
  std::vector<SectionBytes> sections = {{"cpu", code},
                                        {"constants", {reinterpret_cast<uint8_t *>(constants), sizeof(constants)}}};
  if (shape.gpu)
    sections.push_back({plan.targets.back()->name, gpuCode});
  return writePlanFile(plan, sections);
}

void rehash(std::vector<uint8_t> &bytes) {
  mt_plan_header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  Hash128 hash = hash128(std::span(bytes).subspan(header.tables_offset, header.tables_size));
  header.tables_hash_low = hash.low;
  header.tables_hash_high = hash.high;
  header.header_hash = XXH3_64bits(&header, offsetof(mt_plan_header, header_hash));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

} // namespace mtrun::test
