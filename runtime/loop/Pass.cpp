// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/Handles.h"
#include "runtime/loop/Loop.h"

#include <cmath>
#include <cstring>

namespace mtrun {

Status Pass::open(mtrun_session *session, const mtrun_dataset *data, const char *program, StreamOptions options) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  session_ = session;
  train_ = strcmp(program, "train_step") == 0;
  if (data->plan != plan)
    return {MT_INVALID, "the dataset was opened for another plan than the session's"};
  Binding binding;
  if (Status s = data->bind(program, binding); !s.ok())
    return s;
  options.batch = mtrun_plan_batch(plan);
  options.augment = train_;
  if (data->size < 0 && options.window > 0)
    return {MT_INVALID, "a shuffle window needs data of known length"};
  options.shuffle = options.shuffle && data->size >= 0;
  if (options.dropRemainder && data->size >= 0 && data->size < options.batch)
    return {MT_INVALID, "dropping the remainder leaves no step: expected at least " + std::to_string(options.batch) +
                            " samples, found " + std::to_string(data->size)};
  int32_t metrics = mtrun_plan_metric_count(plan, program);
  for (int32_t i = 0; i < metrics; ++i)
    names_.push_back(mtrun_plan_metric_name(plan, program, i));
  for (const auto *metric : *session->session->plan().program(program)->metrics())
    losses_ += metric->is_loss();
  means_ = std::make_unique<Means>(
      names_.size(), static_cast<size_t>(mtrun_plan_sum_count(plan, program)),
      [plan, program = std::string(program)](size_t metric, const double *sums, const double *weights) {
        return mtrun_plan_metric_value(plan, program.c_str(), static_cast<int32_t>(metric), sums, weights);
      });
  stream_ = std::make_unique<BatchStream>(*data, binding, options);
  return {};
}

Status Pass::step() {
  const Batch &batch = stream_->next();
  batch_ = &batch;
  if (!batch.status.ok() || batch.rows == 0)
    return batch.status;
  auto call = train_ ? mtrun_train_step : mtrun_eval_step;
  if (mt_status *s = call(session_, batch.tensors.data(), batch.rows, means_->results()))
    return adopt(s);
  means_->add();
  return {};
}

static int64_t firstNotFinite(mt_dtype dtype, const void *data, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i)
    if (dtype == MT_F32   ? !std::isfinite(static_cast<const float *>(data)[i])
        : dtype == MT_F64 ? !std::isfinite(static_cast<const double *>(data)[i])
                          : false)
      return static_cast<int64_t>(i);
  return -1;
}

// Variables with a value that is not finite, and the name of the first.
static int64_t variablesNotFinite(mtrun_session *session, std::string &first) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  mtrun_tensor_info info;
  int64_t count = 0;
  for (int32_t i = 0; i < mtrun_plan_variable_count(plan); ++i) {
    if (!adopt(mtrun_plan_variable(plan, i, &info)).ok())
      continue;
    std::span<const std::byte> bytes = session->session->variable(static_cast<uint32_t>(i));
    if (firstNotFinite(info.dtype, bytes.data(), bytes.size() / mt_dtype_size(info.dtype)) < 0)
      continue;
    if (count++ == 0)
      first = info.name;
  }
  return count;
}

// Where the trouble shows: the batch if it came with the data, else the variables.
static std::string culprit(mtrun_session *session, const char *program, const Batch &batch) {
  const mtrun_plan *plan = mtrun_session_plan(session);
  mtrun_tensor_info info;
  for (int32_t i = 0; i < mtrun_plan_signature_count(plan, program); ++i) {
    const void *tensor = batch.tensors[static_cast<size_t>(i)];
    if (!tensor || !adopt(mtrun_plan_signature(plan, program, i, &info)).ok())
      continue;
    uint64_t elements = 1;
    for (int32_t d = 1; d < info.rank; ++d)
      elements *= static_cast<uint64_t>(info.shape[d]);
    int64_t at = firstNotFinite(info.dtype, tensor, elements * static_cast<uint64_t>(batch.rows));
    if (at >= 0)
      return std::string("\"") + info.name + "\" of the data is not finite either, at row " +
             std::to_string(static_cast<uint64_t>(at) / elements) + " of the batch";
  }
  std::string first;
  int64_t count = variablesNotFinite(session, first);
  if (count == 0)
    return "data and variables are finite";
  return "the data is finite, " + std::to_string(count) +
         (count == 1 ? " variable is not: " : " variables are not, the first is ") + first;
}

Status Pass::checkVariables() const {
  std::string first;
  int64_t count = variablesNotFinite(session_, first);
  if (count == 0)
    return {};
  return {MT_INVALID, std::to_string(count) +
                          (count == 1 ? " variable is not finite: " : " variables are not finite, the first is ") +
                          first};
}

Status Pass::checkFinite() const {
  for (size_t i = 0; i < losses_; ++i)
    if (double value = means_->values()[i]; means_->weights()[i] != 0 && !std::isfinite(value))
      return {MT_INVALID, "\"" + names_[i] + "\" is " +
                              (std::isnan(value) ? "not a number"
                               : value > 0       ? "infinite"
                                                 : "minus infinity") +
                              "; " + culprit(session_, train_ ? "train_step" : "eval_step", *batch_)};
  return {};
}

} // namespace mtrun
