// SPDX-License-Identifier: Apache-2.0
#include "Exercise.h"

#include "runtime/abi/mtrun.h"
#include "runtime/api/Handles.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mtrun::test {

namespace fb = ::mt::plan;

namespace {

struct Free {
  void operator()(mtrun_plan *plan) const { mtrun_plan_free(plan); }
  void operator()(mtrun_session *session) const { mtrun_session_free(session); }
  void operator()(mtrun_dataset *dataset) const { mtrun_dataset_free(dataset); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

bool good(mt_status *status) {
  bool success = status == nullptr;
  if (!success && (mt_status_code(status) == MT_OK || !*mt_status_message(status)))
    std::abort();
  mt_status_free(status);
  return success;
}

// So that thousands of sessions can be made.
bool isSmall(const fb::Plan &plan) {
  constexpr uint64_t limit = 1 << 20;
  if (plan.variables_bytes() > limit || plan.batch() > limit)
    return false;
  for (const fb::Program *program : Each(plan.programs())) {
    uint64_t bytes = program->shared_bytes();
    for (const fb::Variant *variant : Each(program->variants()))
      bytes = std::max(bytes, variant->arena_bytes());
    for (const fb::SignatureEntry *entry : Each(program->signature()))
      bytes = std::max(bytes, entry->row_bytes() * plan.batch());
    if (bytes > limit)
      return false;
  }
  for (const fb::Kernel *kernel : Each(plan.kernels()))
    if (kernel->scratch_bytes() > limit)
      return false;
  return true;
}

// Memory for a program's tensors, in signature order.
struct Tensors {
  Tensors(const fb::Plan &plan, const fb::Program *program) {
    for (const fb::SignatureEntry *entry : Each(program ? program->signature() : nullptr)) {
      memory.emplace_back(entry->row_bytes() * plan.batch());
      pointers.push_back(memory.back().data());
    }
  }
  std::vector<std::vector<char>> memory;
  std::vector<void *> pointers;
};

// Three samples of zeros for every input, target and weight of train_step.
Owned<mtrun_dataset> zeros(const mtrun_plan *plan, std::vector<std::vector<char>> &memory) {
  constexpr int64_t samples = 3;
  std::vector<mtrun_field> fields;
  for (int32_t i = 0; i < mtrun_plan_signature_count(plan, "train_step"); ++i) {
    mtrun_tensor_info info;
    if (!good(mtrun_plan_signature(plan, "train_step", i, &info)) || info.role == MTRUN_OUTPUT)
      continue;
    size_t bytes = mt_dtype_size(info.dtype);
    for (int32_t d = 1; d < info.rank; ++d)
      bytes *= static_cast<size_t>(info.shape[d]);
    memory.emplace_back(bytes * samples);
    fields.push_back({info.name, info.dtype, info.rank - 1, info.shape + 1, memory.back().data(), MTRUN_DENSE});
  }
  mtrun_dataset *data = nullptr;
  if (!good(
          mtrun_dataset_open_arrays(plan, fields.data(), static_cast<int32_t>(fields.size()), samples, nullptr, &data)))
    return nullptr;
  return Owned<mtrun_dataset>(data);
}

// Everything that callbacks do with the learning rate, two steps.
void fit(const mtrun_plan *plan, mtrun_session *session) {
  std::vector<std::vector<char>> memory;
  Owned<mtrun_dataset> data = zeros(plan, memory);
  if (!data)
    return;
  mtrun_loop_options options = mtrun_loop_options_init();
  options.epochs = 2;
  options.steps_per_epoch = 1;
  options.rate_scale = 2;
  options.plateau_patience = 1;
  options.validation = data.get();
  if (!good(mtrun_fit(session, data.get(), &options))) { // of a plan without a learning rate, or without metrics
    options.rate_scale = 0;
    options.plateau_patience = 0;
    good(mtrun_fit(session, data.get(), &options));
  }
  options = {};
  std::vector<double> values(static_cast<size_t>(std::max(mtrun_plan_metric_count(plan, "eval_step"), 1)));
  good(mtrun_evaluate(session, data.get(), &options, values.data()));
}

void readAndSet(const mtrun_plan *plan, mtrun_session *session) {
  for (int32_t i = 0; i < mtrun_plan_variable_count(plan); ++i) {
    mtrun_tensor_info info;
    if (!good(mtrun_plan_variable(plan, i, &info)))
      continue;
    std::vector<char> bytes(plan->plan->tables().variables()->Get(static_cast<uint32_t>(i))->size());
    good(mtrun_get_variable(session, info.name, bytes.data(), bytes.size()));
    good(mtrun_set_variable(session, info.name, bytes.data(), bytes.size()));
    bytes.resize(bytes.size() + 1);
    good(mtrun_set_variable(session, info.name, bytes.data(), bytes.size()));
  }
}

} // namespace

Exercised exercise(const void *bytes, size_t size, int devices, bool privateVariables) {
  mtrun_plan *loaded = nullptr;
  if (!good(mtrun_plan_load_memory(bytes, size, &loaded)))
    return Exercised::Refused;
  Owned<mtrun_plan> plan(loaded);
  const fb::Plan &tables = plan->plan->tables();
  if (!isSmall(tables))
    return Exercised::Loaded;
  mtrun_options options = mtrun_options_init();
  std::string spec = "null:" + std::to_string(devices);
  options.devices = spec.c_str();
  options.private_variables = privateVariables;
  options.no_pin = options.no_spin = 1;
  mtrun_session *made = nullptr;
  if (!good(mtrun_session_create(plan.get(), &options, &made)))
    return Exercised::Loaded;
  Owned<mtrun_session> session(made);
  auto batch = static_cast<int64_t>(plan->plan->batch());
  const fb::Program *training = plan->plan->program("train_step");
  if (training) {
    Tensors tensors(tables, training);
    std::vector<const void *> pointers(tensors.pointers.begin(), tensors.pointers.end());
    std::vector<double> values(static_cast<size_t>(mtrun_plan_metric_count(plan.get(), "train_step"))), weights(values),
        sums(static_cast<size_t>(mtrun_plan_sum_count(plan.get(), "train_step")));
    double rate = 0;
    mtrun_results results = {values.data(), weights.data(), sums.data(), &rate};
    for (int64_t n : {batch, int64_t{1}})
      good(mtrun_train_step(session.get(), pointers.data(), n, &results));
    mtrun_timing timing;
    good(mtrun_benchmark(session.get(), batch, 1, 1, &timing));
  }
  for (const fb::Program *program : Each(tables.programs()))
    good(mtrun_plan_graph(plan.get(), program->name()->c_str(), [](void *, const mtrun_node *) {}, nullptr));
  if (const fb::Program *prediction = plan->plan->program("predict")) {
    Tensors tensors(tables, prediction);
    good(mtrun_predict(session.get(), tensors.pointers.data(), batch));
  }
  fit(plan.get(), session.get());
  readAndSet(plan.get(), session.get());
  good(mtrun_session_init(session.get(), 3));
  return Exercised::Ran;
}

} // namespace mtrun::test
