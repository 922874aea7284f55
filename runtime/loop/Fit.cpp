// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Fit.h"
#include "runtime/api/Handles.h"
#include "runtime/loop/History.h"
#include "runtime/session/Export.h"

#include <algorithm>
#include <cstring>

namespace mtrun {

void Fit::note(const std::string &line) const {
  if (options_.note)
    options_.note(options_.note_user, line.c_str());
}

Status Fit::open(mtrun_session *session, const mtrun_dataset *data, const mtrun_loop_options &options) {
  session_ = session;
  options_ = options;
  if (options_.epochs == 0)
    options_.epochs = 1;
  if (options_.epochs < 0 || options_.more_epochs < 0)
    return {MT_INVALID,
            "expected at least 1 epoch, found " + std::to_string(std::min(options_.epochs, options_.more_epochs))};
  if (options_.steps_per_epoch < 0 || options_.shuffle_window < 0)
    return {MT_INVALID, "expected steps an epoch and a shuffle window of at least 0, found " +
                            std::to_string(options_.steps_per_epoch) + " and " +
                            std::to_string(options_.shuffle_window)};
  if (Status s = openSaver(); !s.ok())
    return s;
  if (Status s = openTraining(data); !s.ok())
    return s;
  if (Status s = openValidation(); !s.ok())
    return std::move(s).in("validation: ");
  if (Status s = openCallbacks(); !s.ok())
    return s;
  values_.resize(names_.size());
  progress_.epochs = options_.epochs;
  progress_.steps = train_.steps();
  progress_.names = names_.data();
  progress_.values = values_.data();
  if (saver_.resumed())
    note("resumed " + saver_.resumedFrom() + ": " + std::to_string(state_.epoch) + " epochs and " +
         std::to_string(state_.position) + (train_.steps() ? " of " + std::to_string(train_.steps()) : std::string()) +
         " steps are done");
  return {};
}

// Opens the stream where the checkpoint left it.
Status Fit::openTraining(const mtrun_dataset *data) {
  mtrun_session_info info;
  mtrun_session_get_info(session_, &info);
  StreamOptions stream;
  stream.shuffle = !options_.no_shuffle && data->size >= 0;
  stream.dropRemainder = options_.drop_remainder;
  stream.seed = info.seed;
  stream.stepsPerEpoch = options_.steps_per_epoch;
  stream.window = options_.shuffle_window;
  LoopState now;
  now.samples = std::max<int64_t>(data->size, 0); // 0: unknown
  now.batch = mtrun_plan_batch(mtrun_session_plan(session_));
  now.stepsPerEpoch = epochSteps(*data, now.batch, stream);
  now.shuffle = stream.shuffle;
  now.window = stream.window;
  now.dropRemainder = stream.dropRemainder;
  if (Status s = saver_.checkData(now, state_); !s.ok())
    return s;
  if (Status s = agree(now, info.seed); !s.ok())
    return s;
  if (options_.more_epochs && __builtin_add_overflow(state_.epoch, options_.more_epochs, &options_.epochs))
    options_.epochs = INT64_MAX;
  if (int64_t done; __builtin_mul_overflow(state_.epoch, now.stepsPerEpoch, &done) ||
                    __builtin_add_overflow(done, state_.position, &done))
    return {MT_INVALID, "expected epochs whose steps can be counted, found " + std::to_string(state_.epoch) + " of " +
                            std::to_string(now.stepsPerEpoch) + " steps"};
  stream.epochs = options_.epochs;
  stream.epoch = state_.epoch;
  stream.position = state_.position;
  if (Status s = train_.open(session_, data, "train_step", stream); !s.ok())
    return s;
  for (const std::string &name : train_.names())
    names_.push_back(name.c_str());
  if (state_.position > 0 && (state_.totals.size() != train_.metrics() || state_.sums.size() != train_.sums()))
    return {MT_CORRUPT, saver_.resumedFrom() + ": expected " + std::to_string(train_.sums()) + " sums of " +
                            std::to_string(train_.metrics()) + " metrics, found " + std::to_string(state_.sums.size()) +
                            " of " + std::to_string(state_.totals.size())};
  if (state_.position > 0)
    train_.running().restore(state_.sums, state_.totals);
  state_.seed = info.seed;
  state_.samples = now.samples;
  state_.batch = now.batch;
  state_.stepsPerEpoch = now.stepsPerEpoch;
  state_.shuffle = now.shuffle;
  state_.window = now.window;
  state_.dropRemainder = now.dropRemainder;
  return {};
}

Status Fit::openValidation() {
  validates_ = options_.validation != nullptr;
  if (!validates_)
    return {};
  StreamOptions stream; // in order, as often as there are epochs to come
  stream.epochs = std::max<int64_t>(1, options_.epochs - state_.epoch);
  if (Status s = validation_.open(session_, options_.validation, "eval_step", stream); !s.ok())
    return s;
  for (const std::string &name : validation_.names())
    validationNames_.push_back("val_" + name);
  for (const std::string &name : validationNames_)
    names_.push_back(name.c_str());
  return {};
}

Status Fit::openCallbacks() {
  rate_ = session_->session->plan().tables().learning_rate();
  monitor_ = options_.monitor ? options_.monitor : validates_ ? "val_loss" : "loss";
  std::string known;
  for (size_t i = 0; i < names_.size(); ++i) {
    known += (i ? ", " : "") + std::string(names_[i]);
    if (monitor_ == names_[i])
      monitorIndex_ = static_cast<int>(i);
  }
  bool needed = options_.monitor || options_.early_patience || options_.plateau_patience;
  if (monitorIndex_ < 0 && needed)
    return {MT_INVALID, "monitor: expected one of " + known + ", found " + monitor_};
  if (options_.plateau_patience && rate_ < 0)
    return {MT_INVALID, "the plan computes its learning rate by a schedule: expected a variable, which alone can be "
                        "reduced on a plateau"};
  if (options_.restore_best && !options_.early_patience)
    return {MT_INVALID, "expected a patience of early stopping beside the best variables to restore, found none"};
  if (options_.early_patience)
    earlyStop_.emplace(options_.early_patience, options_.early_min_delta, largeIsGood(monitor_));
  if (options_.plateau_patience)
    plateau_.emplace(options_.plateau_patience, 1e-4, largeIsGood(monitor_));
  for (auto [name, patience] : {std::pair("early_stop", &earlyStop_), std::pair("plateau", &plateau_)})
    if (*patience && state_.callbacks.count(name))
      (*patience)->restore(state_.callbacks[name]);
  if (options_.restore_best && earlyStop_->seen()) {
    std::string folder = saver_.resumedFrom().substr(0, saver_.resumedFrom().rfind('/'));
    if (!best_.load(*session_->session, folder, earlyStop_->best()))
      note("no checkpoint in " + folder + " holds the best variables; only those of a better epoch could be restored");
  }
  if (options_.epoch_file)
    if (Status s = epochFile_.open(session_, options_.epoch_file, names_); !s.ok())
      return s;
  if (Status s = scaleRate(); !s.ok())
    return s;
  // History: all metrics, sorted as they are shown, and the learning rate.
  std::vector<std::string> columns(names_.begin(), names_.end());
  if (rate_ >= 0)
    columns.push_back("learning_rate");
  if (!state_.history.empty() && state_.names != columns) {
    note("the history of the checkpoint has other columns; it begins again");
    state_.history.clear();
  }
  state_.names = std::move(columns);
  constexpr int64_t kRows = 4096; // more than most runs have
  state_.history.reserve(state_.history.size() +
                         static_cast<size_t>(std::clamp<int64_t>(options_.epochs - state_.epoch, 0, kRows)) *
                             state_.names.size());
  return saver_.start(monitor_, options_.allow_nan != 0);
}

// Once in the life of a run: a checkpoint holds the rate as it was scaled.
Status Fit::scaleRate() {
  if (options_.rate_scale == 0 || options_.rate_scale == 1 || saver_.resumed())
    return {};
  if (rate_ < 0)
    return {MT_INVALID, "the plan computes its learning rate by a schedule: expected a variable, which alone can be "
                        "scaled"};
  double before = learningRate();
  auto rate = static_cast<float>(before * options_.rate_scale);
  session_->session->setVariable(static_cast<uint32_t>(rate_), std::as_bytes(std::span(&rate, 1)));
  char text[120];
  snprintf(text, sizeof text, "learning rate %g: %g times %g", static_cast<double>(rate), before, options_.rate_scale);
  note(text);
  return {};
}

// Read again only after somebody set a variable: steps leave it alone, and a read waits for those in flight.
double Fit::learningRate() {
  if (rate_ >= 0 && rateSeen_ != session_->session->changes()) {
    rateSeen_ = session_->session->changes();
    memcpy(&rateNow_, session_->session->variable(static_cast<uint32_t>(rate_)).data(), sizeof rateNow_);
  }
  return rateNow_;
}

int64_t Fit::together() const {
  int64_t most = granted();
  if ((!options_.in_flight && (options_.progress || options_.stop)) || stop_ || saveDue_)
    return 1;
  return saver_.writes() ? std::min(most, saver_.stepsUntilDue(state_.step)) : most;
}

std::optional<double> Fit::monitored() const {
  if (monitorIndex_ < 0)
    return std::nullopt;
  return values_[static_cast<size_t>(monitorIndex_)];
}

Status Fit::run() {
  total_ = Stopwatch();
  while (state_.epoch < options_.epochs && !stop_ && !early_)
    if (Status s = runEpoch(); !s.ok()) {
      if (saver_.writes())
        (void)saver_.finish();
      return s;
    }
  return finish();
}

Status Fit::finish() {
  bool saved = false;
  Status status;
  if (saver_.writes()) {
    if (!saver_.has(state_.step))
      save(std::nullopt);
    status = saver_.finish();
    saved = status.ok();
  }
  if (!stop_) { // checkpoints hold what training goes on from
    takeAverages(*session_->session);
    if (options_.restore_best && best_.restore(*session_->session)) {
      char text[120];
      snprintf(text, sizeof text, "restored the variables of the best epoch, with %s %g", monitor_.c_str(),
               earlyStop_->best());
      note(text);
    }
  }
  if (options_.result) {
    double seconds = total_.seconds();
    *options_.result = {stop_, saved, state_.epoch, state_.step, seconds > 0 ? train_.waited() / seconds : 0};
  }
  return status;
}

Status Fit::runEpoch() {
  epoch_ = Stopwatch();
  waitedBefore_ = train_.waited();
  progress_.epoch = state_.epoch;
  if (state_.position == 0)
    train_.resetMeans();
  bool last = train_.steps() > 0 && state_.position == train_.steps(); // a resumed run whose validation is to come
  while (!last) {
    progress_.learning_rate = learningRate();
    Status status = train_.step(together());
    if (status.ok() && train_.rows() == 0)
      break;
    if (status.ok() && !options_.allow_nan)
      status = train_.checkFinite();
    if (!status.ok())
      return std::move(status).in("epoch " + std::to_string(state_.epoch + 1) + ", step " +
                                  std::to_string(state_.position + 1) + ": ");
    ++state_.step;
    ++state_.position;
    last = train_.last();
    if (!(last && !validates_))
      report(false);
    // Of an epoch's last step the epoch's end makes the checkpoint.
    saveDue_ = !last && saver_.writes() && (saveDue_ || saver_.dueAfterStep(state_.step));
    if (saveDue_ && train_.inFlight() == 0) {
      save(std::nullopt);
      saveDue_ = false;
    }
    if (last && !validates_)
      break;
    if (asked() && train_.inFlight() == 0)
      return {};
  }
  return validates_ ? validate() : endEpoch();
}

Status Fit::validate() {
  validation_.resetMeans();
  for (bool last = false; !last; last = validation_.last()) {
    bool alone = !options_.in_flight && options_.stop;
    if (Status s = validation_.step(alone ? 1 : granted()); !s.ok())
      return std::move(s).in("validation: ");
    if (asked()) {
      validation_.drop();
      return {};
    }
  }
  return endEpoch();
}

Status Fit::endEpoch() {
  // A loss can be finite although weights are not: relu makes 0 of NaN.
  if (!options_.allow_nan)
    if (Status s = train_.checkVariables(); !s.ok())
      return std::move(s).in("epoch " + std::to_string(state_.epoch + 1) + ": ");
  bool due = saver_.writes() && (saver_.dueAfterStep(state_.step) || saver_.dueAfterEpoch(state_.epoch + 1));
  std::copy(train_.means().begin(), train_.means().end(), values_.begin());
  if (validates_)
    std::copy(validation_.means().begin(), validation_.means().end(),
              values_.begin() + static_cast<std::ptrdiff_t>(train_.metrics()));
  state_.history.insert(state_.history.end(), values_.begin(), values_.end());
  if (rate_ >= 0)
    state_.history.push_back(learningRate());
  report(true);
  updateCallbacks();
  ++state_.epoch;
  state_.position = 0;
  // Of a fit that ends with the best variables, every best epoch has a checkpoint, which stays until there is a better
  // one: only those tell what they monitored.
  bool best = options_.restore_best && earlyStop_->improved();
  if (best)
    best_.keep(*session_->session);
  if (due || (best && saver_.writes()))
    save(best || !options_.restore_best ? monitored() : std::nullopt, !options_.allow_nan);
  if (Status s = writeEpoch(); !s.ok())
    return s;
  asked();
  return {};
}

Status Fit::writeEpoch() const {
  if (options_.history_json)
    if (Status s = writeHistoryJson(options_.history_json, state_.names, state_.history); !s.ok())
      return s;
  if (options_.history_csv)
    if (Status s = writeHistoryCsv(options_.history_csv, state_.names, state_.history); !s.ok())
      return s;
  return epochFile_.writes() ? epochFile_.write(state_.epoch, values_) : Status();
}

void Fit::updateCallbacks() {
  char text[160];
  if (plateau_ && plateau_->update(*monitored())) {
    double factor = options_.plateau_factor > 0 ? options_.plateau_factor : 0.1;
    auto rate = static_cast<float>(std::max(learningRate() * factor, options_.plateau_min_rate));
    if (static_cast<double>(rate) < learningRate()) {
      session_->session->setVariable(static_cast<uint32_t>(rate_), std::as_bytes(std::span(&rate, 1)));
      snprintf(text, sizeof text, "epoch %lld: %s has a plateau; the learning rate is now %g",
               static_cast<long long>(state_.epoch + 1), monitor_.c_str(), static_cast<double>(rate));
      note(text);
    }
  }
  if (earlyStop_ && earlyStop_->update(*monitored())) {
    early_ = true;
    snprintf(text, sizeof text, "epoch %lld: stopping early, %s was best at %g",
             static_cast<long long>(state_.epoch + 1), monitor_.c_str(), earlyStop_->best());
    note(text);
  }
}

void Fit::save(std::optional<double> monitored, bool finite) {
  state_.sums = train_.running().sums();
  state_.totals = train_.running().totals();
  if (earlyStop_)
    state_.callbacks["early_stop"] = earlyStop_->state();
  if (plateau_)
    state_.callbacks["plateau"] = plateau_->state();
  saver_.save(state_, monitored, finite);
}

void Fit::report(bool epochEnd) {
  if (!options_.progress)
    return;
  progress_.validation = epochEnd && validates_;
  progress_.epoch_end = epochEnd;
  progress_.step = state_.position;
  progress_.total_step = state_.step;
  progress_.seconds = epoch_.seconds();
  progress_.input_wait = train_.waited() - waitedBefore_;
  progress_.metrics = static_cast<int32_t>(progress_.validation ? names_.size() : train_.metrics());
  progress_.step_values = progress_.validation ? nullptr : train_.running().values().data();
  std::copy(train_.means().begin(), train_.means().end(), values_.begin());
  if (options_.progress(options_.progress_user, &progress_) != 0)
    wantsStop_ = true; // asked for after every report
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
