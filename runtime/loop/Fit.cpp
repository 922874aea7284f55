// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Fit.h"
#include "runtime/loop/History.h"
#include "runtime/session/Export.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mtrun {

int64_t Fit::maxInFlight() const {
  int64_t most = granted();
  if ((!options_.in_flight && (options_.progress || options_.stop)) || stop_ || saveDue_)
    return 1;
  if (receipt_.isOn())
    most = std::min(most, receipt_.stepsUntilDue(state_.step));
  return saver_.writes() ? std::min(most, saver_.stepsUntilDue(state_.step)) : most;
}

bool Fit::nothingLeft() const { return state_.stoppedEarly || state_.epoch >= options_.epochs; }

Status Fit::run() {
  total_ = Stopwatch();
  writeAgain();
  if (nothingLeft())
    note("nothing left to do: " +
         (state_.stoppedEarly
              ? "early stopping ended the run after epoch " + std::to_string(state_.epoch)
              : std::to_string(state_.epoch) + " of " + std::to_string(options_.epochs) + " epochs are done") +
         "; --more-epochs N continues");
  while (!nothingLeft() && !stop_)
    if (Status s = runEpoch(); !s.ok()) {
      rescue(s);
      if (saver_.writes())
        (void)saver_.finish();
      return s;
    }
  return finish();
}

// The process may have died after it saved the checkpoint and before it wrote the history and the file of the epoch:
// write them again.
void Fit::writeAgain() {
  if (!saver_.resumed() || state_.history.empty())
    return;
  (void)session_->collect(); // if it fails, the next step fails too
  writeHistory();
  if (state_.position > 0)
    return;
  auto row = state_.history.end() - static_cast<std::ptrdiff_t>(state_.names.size());
  std::copy(row, row + static_cast<std::ptrdiff_t>(values_.size()), values_.begin());
  if (callbacks_.writesFile())
    writeEpochFile();
}

Status Fit::finish() {
  bool saved = false;
  Status status, recorded = endReceipt();
  Status collected = session_->collect();
  if (decidedByFirst(saver_.writes() && !saver_.has(state_)))
    if (Status s = save(std::nullopt); status.ok() && !s.ok())
      collected = s;
  if (saver_.writes()) {
    status = saver_.finish();
    saved = status.ok();
    if (!saved && rescue_.opened())
      keepInMemory();
  }
  if (status.ok() && (saved || !stop_))
    rescue_.remove();
  if (status.ok())
    status = fileError_;
  if (status.ok())
    status = recorded;
  if (status.ok())
    status = collected;
  if (!stop_) { // checkpoints keep the variables that training continues with, not the averages
    if (Status set = takeAverages(*session_); status.ok())
      status = set;
    if (options_.restore_best && best_.restore(*session_)) {
      char text[120];
      snprintf(text, sizeof text, " %g", callbacks_.early()->best());
      note("restored the variables of the best epoch, with " + callbacks_.early()->monitor().name + text);
    }
  }
  if (options_.result) {
    double seconds = total_.seconds();
    *options_.result = {stop_,
                        saved,
                        state_.epoch,
                        state_.step,
                        seconds > 0 ? train_.waited() / seconds : 0,
                        seconds,
                        state_.stoppedEarly,
                        notFinite_};
  }
  return status;
}

Status Fit::runEpoch() {
  epoch_ = Stopwatch();
  waitedBefore_ = train_.waited();
  progress_.epoch = state_.epoch;
  if (state_.position == 0)
    train_.resetMeans();
  if (options_.epoch_begin && options_.epoch_begin(options_.progress_user, state_.epoch) != 0)
    wantsStop_ = true;
  if (wantsStop_ && session_->processes() == 1) { // several processes end together after a step
    stop_ = true;
    return {};
  }
  progress_.learning_rate = rate_.now();
  bool validates = this->validates(state_.epoch);
  // the run was resumed before the validation of its epoch
  bool last = train_.steps() > 0 && state_.position == train_.steps();
  while (!last) {
    bool hashes = hashesLaunches();
    if (Status s = hashes ? launches_.begin(*session_, options_.hash_launches) : Status(); !s.ok())
      return s;
    Status status = train_.step(maxInFlight());
    if (status.ok() && train_.rows() == 0)
      break;
    if (hashes && status.ok())
      status = launches_.write(options_.launch_file);
    if (status.ok() && !options_.allow_nan)
      status = train_.checkFinite();
    if (!status.ok())
      return std::move(status).in("epoch " + std::to_string(state_.epoch + 1) + ", step " +
                                  std::to_string(state_.position + 1) + ": ");
    ++state_.step;
    ++state_.position;
    rate_.saw(train_.running().learningRate());
    progress_.learning_rate = rate_.now();
    last = train_.last();
    if (receipt_.isOn())
      receipt_.add(train_.batch());
    if (Status s = last ? Status() : recordStep(); !s.ok())
      return s;
    if (!(last && !validates))
      report(false);
    // The end of the epoch saves the checkpoint of the epoch's last step.
    saveDue_ = !last && saver_.writes() && (saveDue_ || saver_.dueAfterStep(state_.step));
    if (savesTogether_ && !last)
      saveDue_ = decidedByFirst(saveDue_);
    if (saveDue_ && train_.inFlight() == 0) {
      if (Status s = saver_.savesTogether() ? Status() : session_->collect(); !s.ok())
        return s;
      if (Status s = save(std::nullopt); !s.ok())
        return s;
      saveDue_ = false;
    }
    if (last && !validates)
      break;
    if (mustStop() && train_.inFlight() == 0)
      return {};
  }
  return validates ? validate() : endEpoch();
}

Status Fit::validate() {
  validation_.resetMeans();
  for (bool last = false; !last; last = validation_.last()) {
    bool alone = !options_.in_flight && options_.stop;
    if (Status s = validation_.step(alone ? 1 : granted()); !s.ok())
      return std::move(s).in("validation: ");
    if (mustStop()) {
      validation_.drop();
      return {};
    }
  }
  for (size_t i = 0; i < validation_.metrics() && !options_.allow_nan; ++i)
    if (const MetricColumn &column = validation_.columns()[i]; column.loss && !std::isfinite(validation_.means()[i])) {
      notFinite_ = true;
      warn("epoch " + std::to_string(state_.epoch + 1) + ": the loss of validation val_" + column.name +
           " is not finite");
    }
  return endEpoch();
}

Status Fit::endEpoch() {
  // A loss can be finite although weights are NaN: relu(NaN) is 0.
  if (!options_.allow_nan)
    if (Status s = train_.checkVariables(); !s.ok())
      return std::move(s).in("epoch " + std::to_string(state_.epoch + 1) + ": ");
  bool due = saver_.writes() && (saver_.dueAfterStep(state_.step) || saver_.dueAfterEpoch(state_.epoch + 1));
  auto validation = std::copy(train_.means().begin(), train_.means().end(), values_.begin());
  std::fill(validation, values_.end(), std::numeric_limits<double>::quiet_NaN());
  if (validates(state_.epoch))
    std::copy(validation_.means().begin(), validation_.means().end(), validation);
  state_.history.insert(state_.history.end(), values_.begin(), values_.end());
  if (rate_.isKnown())
    state_.history.push_back(rate_.now());
  report(true);
  updateCallbacks();
  // With restore_best, save the checkpoint of the best epoch, because the fit ends with its variables.
  bool best = options_.restore_best && callbacks_.improved();
  std::optional<double> monitored = callbacks_.checkpoints().of(watched());
  ++state_.epoch;
  state_.position = 0;
  if (Status s = recordStep(); !s.ok())
    return s;
  if (best)
    best_.keep(*session_);
  bool writes = callbacks_.writesFile() && epochFile_.writes();
  bool saves = decidedByFirst(due || (best && saver_.writes()));
  if (decidedByFirst((saves && !saver_.savesTogether()) || writes))
    if (Status s = session_->collect(); !s.ok())
      return s;
  if (Status s = saves ? save(monitored, !options_.allow_nan) : Status(); !s.ok())
    return s;
  writeHistory();
  if (writes)
    writeEpochFile();
  // a callback may have set variables
  if (session_->processes() > 1)
    if (Status s =
            session_->agree("variables after epoch " + std::to_string(state_.epoch) + ": " + session_->variablesHash());
        !s.ok())
      return s;
  mustStop(/*now=*/true);
  return {};
}

// A failed write does not end a run of hours. The next epoch tries again.
void Fit::writeHistory() {
  History history = {state_.names, state_.history, 1};
  if (!state_.names.empty())
    history.firstEpoch += state_.epoch - static_cast<int64_t>(state_.history.size() / state_.names.size());
  Status json, csv;
  if (options_.history_json)
    json = writeHistoryJson(options_.history_json, history);
  if (options_.history_csv)
    csv = writeHistoryCsv(options_.history_csv, history);
  bool fails = !json.ok() || !csv.ok();
  if (fails && !historyFails_)
    warn("the history was not written: " + (json.ok() ? csv : json).message());
  historyFails_ = fails;
}

void Fit::writeEpochFile() {
  if (!epochFile_.writes())
    return;
  fileError_ = epochFile_.write(state_.epoch, values_);
  if (!fileError_.ok())
    warn("the file of epoch " + std::to_string(state_.epoch) + " was not written: " + fileError_.message());
}

std::span<const double> Fit::watched() const {
  return std::span(values_).first(validates(state_.epoch) ? values_.size() : train_.metrics());
}

void Fit::updateCallbacks() {
  callbacks_.update(state_.epoch, state_.step, watched());
  std::string epoch = "epoch " + std::to_string(state_.epoch + 1) + ": ";
  char text[80];
  if (callbacks_.reduces()) {
    double factor = options_.plateau_factor > 0 ? options_.plateau_factor : 0.1;
    double rate = rate_.asStored(std::max(rate_.now() * factor, options_.plateau_min_rate));
    if (rate < rate_.now()) {
      rate_.set(rate);
      snprintf(text, sizeof text, "%g", rate);
      note(epoch + callbacks_.plateau()->monitor().name + " has a plateau; the learning rate is now " + text);
    }
  }
  if (callbacks_.stops()) {
    state_.stoppedEarly = true;
    const Record &early = *callbacks_.early();
    snprintf(text, sizeof text, " was best at %g", early.best());
    note(epoch + "stopping early, " + early.monitor().name + text);
  }
}

void Fit::keepState() {
  state_.sums = train_.running().sums();
  state_.totals = train_.running().totals();
  state_.scheduledRate = rate_.isVariable() ? std::numeric_limits<double>::quiet_NaN() : rate_.now();
  callbacks_.keep(state_);
}

Status Fit::save(std::optional<double> monitored, bool finite) {
  keepState();
  int64_t best = options_.restore_best ? callbacks_.bestStep() : -1;
  if (saver_.savesTogether())
    return saver_.saveTogether(state_, monitored, finite, best);
  if (saver_.writes()) // otherwise another process does
    saver_.save(state_, monitored, finite, best);
  return {};
}

void Fit::report(bool epochEnd) {
  if (!options_.progress)
    return;
  progress_.validation = epochEnd && validates(state_.epoch);
  progress_.epoch_end = epochEnd;
  progress_.step = state_.position;
  progress_.total_step = state_.step;
  progress_.seconds = epoch_.seconds();
  progress_.input_wait = train_.waited() - waitedBefore_;
  progress_.metrics = static_cast<int32_t>(progress_.validation ? names_.size() : train_.metrics());
  progress_.step_values = progress_.validation ? nullptr : train_.running().values().data();
  std::copy(train_.means().begin(), train_.means().end(), values_.begin());
  if (options_.progress(options_.progress_user, &progress_) != 0)
    wantsStop_ = true; // checked after every report
}

} // namespace mtrun
