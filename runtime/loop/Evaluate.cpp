// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Labels.h"
#include "runtime/loop/Loop.h"
#include "runtime/loop/Run.h"

#include <algorithm>

using namespace mtrun;

Status mtrun::evaluate(Session &session, mtrun_dataset &data, const mtrun_loop_options &options, double *values) {
  StreamOptions stream; // one epoch, in order
  stream.dropRemainder = options.drop_remainder;
  stream.allowNan = options.allow_nan != 0;
  if (Status s = numberLabels(data, session.classNames()); !s.ok())
    return s;
  if (Status s = compareProcesses(session, data); !s.ok())
    return s;
  EpochLoop pass;
  if (Status s = pass.open(session, &data, "eval_step", stream); !s.ok())
    return s;
  std::vector<const char *> names;
  for (const MetricColumn &column : pass.columns())
    names.push_back(column.name.c_str());
  mtrun_progress progress = {};
  progress.epochs = 1;
  progress.steps = pass.steps();
  progress.metrics = static_cast<int32_t>(names.size());
  progress.names = names.data();
  progress.values = pass.means().data();
  Stopwatch watch;
  bool stop = false;
  for (int64_t step = 1; !progress.epoch_end && !stop; ++step) {
    if (Status s = pass.step(options.progress && !options.in_flight ? 1 : INT64_MAX); !s.ok())
      return std::move(s).in("step " + std::to_string(step) + ": ");
    progress.step = step;
    progress.seconds = watch.seconds();
    progress.epoch_end = pass.last();
    stop = options.progress && options.progress(options.progress_user, &progress) != 0;
  }
  if (values)
    std::copy(pass.means().begin(), pass.means().end(), values);
  return {};
}
