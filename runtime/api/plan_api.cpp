// SPDX-License-Identifier: Apache-2.0
//
// The functions of mtrun.h for plans.
#include "runtime/api/Handles.h"
#include "runtime/plan/Check.h"
#include "runtime/plan/Signature.h"
#include "runtime/session/Metric.h"

namespace fb = ::mt::plan;

using mtrun::count;
using mtrun::guarded;
using mtrun::infoOf;
using mtrun::Plan;
using mtrun::Status;

namespace {

const fb::Program *find(const mtrun_plan *plan, const char *program) {
  return plan && program ? plan->plan->program(program) : nullptr;
}

Status wrap(Status status, std::unique_ptr<Plan> loaded, mtrun_plan **plan) {
  *plan = nullptr;
  if (status.ok())
    *plan = new mtrun_plan{std::move(loaded)};
  return status;
}

Status outOfRange(const char *what, int32_t count, int32_t index) {
  return {MT_INVALID,
          std::string("expected ") + what + " below " + std::to_string(count) + ", found " + std::to_string(index)};
}

} // namespace

const char *mtrun_version() { return MT_VERSION; }

mt_status *mtrun_plan_load(const char *path, mtrun_plan **plan) {
  return guarded([&] {
    std::unique_ptr<Plan> loaded;
    Status status = Plan::load(path, loaded);
    return wrap(std::move(status), std::move(loaded), plan);
  });
}

mt_status *mtrun_plan_load_memory(const void *data, size_t size, mtrun_plan **plan) {
  return guarded([&] {
    std::unique_ptr<Plan> loaded;
    Status status = Plan::loadMemory(data, size, loaded);
    return wrap(std::move(status), std::move(loaded), plan);
  });
}

void mtrun_plan_free(mtrun_plan *plan) { delete plan; }

const char *mtrun_plan_model(const mtrun_plan *plan) {
  const auto *model = plan->plan->tables().model();
  return model ? model->c_str() : "";
}

int64_t mtrun_plan_batch(const mtrun_plan *plan) { return static_cast<int64_t>(plan->plan->batch()); }

int32_t mtrun_plan_shards(const mtrun_plan *plan) { return static_cast<int32_t>(plan->plan->shards()); }

int mtrun_plan_has_code(const mtrun_plan *plan, const char *kind) {
  for (const fb::Target *target : mtrun::Each(plan->plan->tables().targets()))
    if (kind && (target->device() ? target->device()->string_view() : "cpu") == kind)
      return 1;
  return 0;
}

int mtrun_plan_has_weights(const mtrun_plan *plan) { return plan->plan->tables().initial_values() >= 0; }

int mtrun_plan_has_program(const mtrun_plan *plan, const char *program) { return find(plan, program) != nullptr; }

int32_t mtrun_plan_signature_count(const mtrun_plan *plan, const char *program) {
  const fb::Program *found = find(plan, program);
  return found ? static_cast<int32_t>(count(found->signature())) : 0;
}

mt_status *mtrun_plan_signature(const mtrun_plan *plan, const char *program, int32_t index, mtrun_tensor_info *info) {
  return guarded([&]() -> Status {
    int32_t entries = mtrun_plan_signature_count(plan, program);
    if (index < 0 || index >= entries)
      return outOfRange("a signature entry", entries, index);
    const fb::SignatureEntry &entry = *find(plan, program)->signature()->Get(static_cast<uint32_t>(index));
    *info = infoOf(entry);
    return {};
  });
}

int32_t mtrun_plan_metric_count(const mtrun_plan *plan, const char *program) {
  const fb::Program *found = find(plan, program);
  return found ? static_cast<int32_t>(count(found->metrics())) : 0;
}

const char *mtrun_plan_metric_name(const mtrun_plan *plan, const char *program, int32_t index) {
  if (index < 0 || index >= mtrun_plan_metric_count(plan, program))
    return nullptr;
  return find(plan, program)->metrics()->Get(static_cast<uint32_t>(index))->name()->c_str();
}

int mtrun_plan_metric_higher_is_better(const mtrun_plan *plan, const char *program, int32_t index) {
  if (index < 0 || index >= mtrun_plan_metric_count(plan, program))
    return 0;
  return find(plan, program)->metrics()->Get(static_cast<uint32_t>(index))->better() == fb::Better::Higher;
}

int64_t mtrun_plan_sum_count(const mtrun_plan *plan, const char *program) {
  const fb::Program *found = find(plan, program);
  return found ? static_cast<int64_t>(mtrun::sumsOf(*found)) : 0;
}

double mtrun_plan_metric_value(const mtrun_plan *plan, const char *program, int32_t index, const double *sums,
                               const double *weights) {
  if (index < 0 || index >= mtrun_plan_metric_count(plan, program))
    return 0;
  return mtrun::metricValue(*find(plan, program), static_cast<size_t>(index), sums, weights);
}

int32_t mtrun_plan_length_count(const mtrun_plan *plan) {
  return static_cast<int32_t>(count(plan->plan->tables().lengths()));
}

int64_t mtrun_plan_length(const mtrun_plan *plan, int32_t index) {
  if (index < 0 || index >= mtrun_plan_length_count(plan))
    return -1;
  return static_cast<int64_t>(plan->plan->tables().lengths()->Get(static_cast<uint32_t>(index))->length());
}

int32_t mtrun_plan_token_count(const mtrun_plan *plan) {
  return static_cast<int32_t>(count(plan->plan->tables().vocabulary()));
}

const char *mtrun_plan_token(const mtrun_plan *plan, int32_t index) {
  const auto *vocabulary = plan->plan->tables().vocabulary();
  bool known = index >= 0 && static_cast<uint32_t>(index) < count(vocabulary);
  return known ? vocabulary->Get(static_cast<uint32_t>(index))->c_str() : nullptr;
}

int32_t mtrun_plan_variable_count(const mtrun_plan *plan) {
  return static_cast<int32_t>(count(plan->plan->tables().variables()));
}

mt_status *mtrun_plan_variable(const mtrun_plan *plan, int32_t index, mtrun_tensor_info *info) {
  return guarded([&]() -> Status {
    int32_t variables = mtrun_plan_variable_count(plan);
    if (index < 0 || index >= variables)
      return outOfRange("a variable", variables, index);
    const fb::Variable &variable = *plan->plan->tables().variables()->Get(static_cast<uint32_t>(index));
    *info = infoOf(variable);
    return {};
  });
}
