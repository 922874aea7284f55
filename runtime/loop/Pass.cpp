// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Loop.h"

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
  if (options.dropRemainder && data->size < options.batch)
    return {MT_INVALID, "dropping the remainder leaves no step: expected at least " + std::to_string(options.batch) +
                            " samples, found " + std::to_string(data->size)};
  int32_t metrics = mtrun_plan_metric_count(plan, program);
  for (int32_t i = 0; i < metrics; ++i)
    names_.push_back(mtrun_plan_metric_name(plan, program, i));
  means_ = std::make_unique<Means>(names_.size());
  stream_ = std::make_unique<BatchStream>(*data, binding, options);
  return {};
}

Status Pass::step() {
  const Batch &batch = stream_->next();
  auto call = train_ ? mtrun_train_step : mtrun_eval_step;
  if (mt_status *s = call(session_, batch.tensors.data(), batch.rows, means_->results()))
    return adopt(s);
  means_->add();
  return {};
}

} // namespace mtrun
