// SPDX-License-Identifier: Apache-2.0
#include "Fixtures.h"
#include "runtime/abi/plan_file.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <zlib.h>

namespace fixtures {

TempFolder::TempFolder() {
  std::string pattern = testing::TempDir() + "/mtrun-XXXXXX";
  if (!mkdtemp(pattern.data()))
    abort();
  root_ = pattern;
}

TempFolder::~TempFolder() { std::filesystem::remove_all(root_); }

std::vector<std::string> TempFolder::entries() const {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(root_))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void writeGzip(const std::string &path, const std::string &bytes) {
  gzFile file = gzopen(path.c_str(), "wb9");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::string readFile(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::string idx(const std::vector<uint32_t> &dims, const std::string &elements) {
  std::string file = {0, 0, 8, static_cast<char>(dims.size())};
  for (uint32_t dim : dims)
    for (int shift = 24; shift >= 0; shift -= 8)
      file += static_cast<char>(dim >> shift & 0xff);
  return file + elements;
}

void writeSmallMnist(const TempFolder &folder, const std::string &labels) {
  auto samples = static_cast<uint32_t>(labels.size());
  std::string pixels;
  for (uint32_t i = 0; i < samples * 6; ++i)
    pixels += static_cast<char>(i);
  writeFile(folder.path("train-images-idx3-ubyte"), idx({samples, 2, 3}, pixels));
  writeFile(folder.path("train-labels-idx1-ubyte"), idx({samples}, labels));
}

using namespace mt::plan;

static std::unique_ptr<SignatureEntryT> entry(const char *name, Role role, DType dtype, std::vector<int64_t> shape) {
  auto entry = std::make_unique<SignatureEntryT>();
  entry->name = name;
  entry->role = role;
  entry->dtype = dtype;
  entry->row_bytes = 4;
  for (size_t i = 1; i < shape.size(); ++i)
    entry->row_bytes *= static_cast<uint64_t>(shape[i]);
  entry->shape = std::move(shape);
  return entry;
}

static std::unique_ptr<ProgramT> program(const char *name, uint32_t allShards) {
  auto program = std::make_unique<ProgramT>();
  program->name = name;
  for (uint32_t shards = 1; shards <= allShards; shards *= 2) {
    program->variants.push_back(std::make_unique<VariantT>());
    program->variants.back()->shards = shards;
  }
  return program;
}

static void addMetric(ProgramT &program, const char *name, bool isLoss) {
  auto metric = std::make_unique<MetricT>();
  metric->name = name;
  metric->is_loss = isLoss;
  for (uint32_t *index : {&metric->value, &metric->weight}) {
    auto buffer = std::make_unique<BufferT>();
    buffer->name = std::string(name) + (index == &metric->value ? ".value" : ".weight");
    buffer->space = Space::Shared;
    buffer->dtype = DType::F32;
    buffer->fixed_bytes = 4;
    buffer->offset = {program.shared_bytes};
    program.shared_bytes += 64;
    *index = static_cast<uint32_t>(program.buffers.size());
    program.buffers.push_back(std::move(buffer));
  }
  program.metrics.push_back(std::move(metric));
}

static void addVariable(PlanT &plan, const char *name, DType dtype, std::vector<int64_t> shape, uint64_t elementSize) {
  auto variable = std::make_unique<VariableT>();
  variable->name = name;
  variable->dtype = dtype;
  variable->size = elementSize;
  for (int64_t dim : shape)
    variable->size *= static_cast<uint64_t>(dim);
  variable->shape = std::move(shape);
  variable->offset = plan.variables_bytes;
  plan.variables_bytes += (variable->size + 63) / 64 * 64;
  plan.variables.push_back(std::move(variable));
}

static Owned<mtrun_plan> load(PlanT &plan) {
  std::vector<uint8_t> file = mtrun::writePlanFile(plan, {});
  mtrun_plan *loaded = nullptr;
  EXPECT_EQ(text(mtrun_plan_load_memory(file.data(), file.size(), &loaded)), "0");
  return Owned<mtrun_plan>(loaded);
}

Owned<mtrun_plan> emptyPlan(int64_t batch, bool scheduled, bool metrics, int64_t limit, int64_t inputLimit) {
  PlanT plan;
  plan.producer = "test";
  plan.model = "empty";
  plan.batch = static_cast<uint64_t>(batch);
  plan.shards = 2;
  plan.shard_rows = (plan.batch + 1) / 2;
  plan.seed = 1;
  addVariable(plan, "w", DType::F32, {2, 3}, 4);
  addVariable(plan, "flag", DType::Bool, {3}, 1);
  addVariable(plan, "steps", DType::I64, {}, 8);
  auto sum = std::make_unique<KernelT>();
  sum->name = "sum";
  sum->kind = KernelKind::Elementwise;
  sum->elements_per_tile = 1024;
  plan.kernels.push_back(std::move(sum));
  plan.programs.push_back(program("init", 2));
  for (const char *name : {"train_step", "eval_step", "predict"}) {
    plan.programs.push_back(program(name, 2));
    ProgramT &p = *plan.programs.back();
    p.signature.push_back(entry("image", Role::Input, DType::F32, {-1, 2, 3}));
    p.signature.back()->limit = inputLimit;
    if (std::string(name) == "predict") {
      p.signature.push_back(entry("probabilities", Role::Output, DType::F32, {-1, 4}));
      continue;
    }
    p.signature.push_back(entry("label", Role::Target, DType::I32, {-1}));
    p.signature.back()->limit = limit;
    if (!metrics)
      continue;
    addMetric(p, "loss", true);
    addMetric(p, "accuracy", false);
    if (scheduled && std::string(name) == "train_step")
      p.learning_rate = static_cast<int32_t>(p.metrics[1]->value);
  }
  return load(plan);
}

Owned<mtrun_plan> planWithoutVariables() {
  PlanT plan;
  plan.producer = "test";
  plan.model = "sum";
  plan.batch = 4;
  plan.shards = 1;
  plan.shard_rows = 4;
  plan.programs.push_back(program("predict", 1));
  plan.programs[0]->signature.push_back(entry("image", Role::Input, DType::F32, {-1, 2, 3}));
  plan.programs[0]->signature.push_back(entry("sums", Role::Output, DType::F32, {-1}));
  return load(plan);
}

Owned<mtrun_session> nullSession(const mtrun_plan *plan, const char *devices) {
  mtrun_options options = mtrun_options_init();
  options.devices = devices;
  mtrun_session *session = nullptr;
  EXPECT_EQ(text(mtrun_session_create(plan, &options, &session)), "0");
  return Owned<mtrun_session>(session);
}

Owned<mtrun_dataset> openData(const mtrun_plan *plan, const std::string &spec) {
  mtrun_dataset *dataset = nullptr;
  EXPECT_EQ(text(mtrun_dataset_open(plan, spec.c_str(), &dataset)), "0");
  return Owned<mtrun_dataset>(dataset);
}

std::string text(mt_status *status) {
  std::string result = std::to_string(mt_status_code(status));
  if (status)
    result += std::string(": ") + mt_status_message(status);
  mt_status_free(status);
  return result;
}

std::string text(const mtrun::Status &status) {
  return status.ok() ? "0" : std::to_string(status.code()) + ": " + status.message();
}

} // namespace fixtures
