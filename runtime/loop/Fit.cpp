// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/Handles.h"
#include "runtime/loop/Loop.h"

#include <algorithm>

namespace mtrun {
namespace {

// The state of one mtrun_fit call. Everything is allocated before the first step.
class Fit {
public:
  Status open(mtrun_session *session, const mtrun_dataset *data, const mtrun_loop_options &options);
  Status run();

private:
  Status runEpoch(int64_t epoch, bool &stop);
  Status validate();
  bool report(int64_t step, double seconds, bool epochEnd);

  mtrun_loop_options options_ = {};
  Pass train_, validation_;
  bool validates_ = false;
  std::vector<std::string> validationNames_;
  std::vector<const char *> names_; // training metrics, then val_ ones
  std::vector<double> values_;
  mtrun_progress progress_ = {};
};

} // namespace

Status Fit::open(mtrun_session *session, const mtrun_dataset *data, const mtrun_loop_options &options) {
  options_ = options;
  if (options_.epochs == 0)
    options_.epochs = 1;
  if (options_.epochs < 0)
    return {MT_INVALID, "expected at least 1 epoch, found " + std::to_string(options_.epochs)};
  mtrun_session_info info;
  mtrun_session_get_info(session, &info);
  StreamOptions stream;
  stream.epochs = options_.epochs;
  stream.shuffle = !options_.no_shuffle;
  stream.dropRemainder = options_.drop_remainder;
  stream.seed = info.seed;
  if (Status s = train_.open(session, data, "train_step", stream); !s.ok())
    return s;
  for (const std::string &name : train_.names())
    names_.push_back(name.c_str());
  validates_ = options_.validation != nullptr;
  if (validates_) {
    stream.shuffle = stream.dropRemainder = false;
    if (Status s = validation_.open(session, options_.validation, "eval_step", stream); !s.ok())
      return std::move(s).in("validation: ");
    for (const std::string &name : validation_.names())
      validationNames_.push_back("val_" + name);
    for (const std::string &name : validationNames_)
      names_.push_back(name.c_str());
  }
  values_.resize(names_.size());
  progress_.epochs = options_.epochs;
  progress_.steps = train_.steps();
  progress_.names = names_.data();
  progress_.values = values_.data();
  return {};
}

Status Fit::run() {
  bool stop = false;
  for (int64_t epoch = 0; epoch < options_.epochs && !stop; ++epoch)
    if (Status s = runEpoch(epoch, stop); !s.ok())
      return s;
  return {};
}

Status Fit::runEpoch(int64_t epoch, bool &stop) {
  Stopwatch watch;
  progress_.epoch = epoch;
  train_.resetMeans();
  for (int64_t step = 1; step <= train_.steps() && !stop; ++step) {
    if (Status s = train_.step(); !s.ok())
      return std::move(s).in("epoch " + std::to_string(epoch + 1) + ", step " + std::to_string(step) + ": ");
    stop = report(step, watch.seconds(), step == train_.steps() && !validates_);
  }
  if (stop || !validates_)
    return {};
  if (Status s = validate(); !s.ok())
    return std::move(s).in("validation: ");
  stop = report(train_.steps(), watch.seconds(), true);
  return {};
}

Status Fit::validate() {
  validation_.resetMeans();
  for (int64_t step = 0; step < validation_.steps(); ++step)
    if (Status s = validation_.step(); !s.ok())
      return s;
  return {};
}

// True if the caller wants to stop.
bool Fit::report(int64_t step, double seconds, bool epochEnd) {
  if (!options_.progress)
    return false;
  progress_.validation = epochEnd && validates_;
  progress_.epoch_end = epochEnd;
  progress_.step = step;
  progress_.seconds = seconds;
  progress_.metrics = static_cast<int32_t>(train_.metrics());
  std::copy(train_.means().begin(), train_.means().end(), values_.begin());
  if (progress_.validation) {
    progress_.metrics = static_cast<int32_t>(names_.size());
    std::copy(validation_.means().begin(), validation_.means().end(), values_.begin() + train_.metrics());
  }
  return options_.progress(options_.progress_user, &progress_) != 0;
}

} // namespace mtrun

using namespace mtrun;

mt_status *mtrun_fit(mtrun_session *session, mtrun_dataset *data, const mtrun_loop_options *options) {
  return guarded([&]() -> Status {
    if (!session || !data)
      return {MT_INVALID, "fit: expected a session and a dataset, found NULL"};
    Fit fit;
    if (Status s = fit.open(session, data, options ? *options : mtrun_loop_options{}); !s.ok())
      return s;
    return fit.run();
  });
}
