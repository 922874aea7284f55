// SPDX-License-Identifier: Apache-2.0
//
// The beginning of a fit: checks the options and opens data, validation and callbacks where the checkpoint left them.
#include "runtime/data/Split.h"
#include "runtime/loop/Fit.h"
#include "runtime/support/option_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mtrun {

void Fit::note(const std::string &line) const {
  if (options_.note)
    options_.note(options_.note_user, line.c_str());
}

void Fit::warn(const std::string &line) const {
  if (session_->process() == 0)
    session_->log(1, line);
}

static Status checkCounts(const mtrun_loop_options &options) {
  for (const auto &row : loopOptions)
    if (const auto *field = std::get_if<int64_t mtrun_loop_options::*>(&row.field); field && options.**field < 0)
      return {MT_INVALID,
              std::string("expected ") + row.name + " of at least 0, found " + std::to_string(options.**field)};
  return {};
}

static Status checkNumbers(const mtrun_loop_options &options) {
  const double baseline = options.early_baseline ? *options.early_baseline : 0,
               delta = options.plateau_min_delta ? *options.plateau_min_delta : 0;
  struct {
    const char *what;
    double value;
    bool good;
    const char *range;
  } numbers[] = {
      {"a min delta of early stopping", options.early_min_delta, options.early_min_delta >= 0, "of at least 0"},
      {"a baseline", baseline, true, "that is finite"},
      {"a min delta of the plateau", delta, delta >= 0, "of at least 0"},
      {"a factor of the plateau", options.plateau_factor, options.plateau_factor >= 0 && options.plateau_factor < 1,
       "from 0 to below 1"},
      {"a least learning rate of the plateau", options.plateau_min_rate, options.plateau_min_rate >= 0,
       "of at least 0"},
      {"a factor of the learning rate", options.rate_scale, options.rate_scale >= 0, "of at least 0"},
      {"a learning rate", options.learning_rate, options.learning_rate >= 0, "of at least 0"}};
  for (const auto &number : numbers)
    if (!std::isfinite(number.value) || !number.good) {
      char found[40];
      snprintf(found, sizeof found, "%g", number.value);
      return {MT_INVALID, std::string("expected ") + number.what + " " + number.range + ", found " +
                              (std::isnan(number.value) ? "nan" : found)};
    }
  return {};
}

Status Fit::open(Session &session, mtrun_dataset *data, const mtrun_loop_options &options) {
  session_ = &session;
  options_ = options;
  if (Status s = checkCounts(options_); !s.ok())
    return s;
  if (Status s = checkNumbers(options_); !s.ok())
    return s;
  for (int64_t *count : {&options_.epochs, &options_.validation_freq})
    *count = std::max<int64_t>(*count, 1);
  state_.epoch = options_.initial_epoch; // used if no checkpoint is resumed
  if (Status s = openSaver(); !s.ok())
    return s;
  if (Status s = nameClasses(*data); !s.ok())
    return s;
  if (Status s = holdOut(data); !s.ok())
    return s;
  if (Status s = openTraining(data); !s.ok())
    return s;
  if (Status s = openValidation(); !s.ok())
    return std::move(s).in("validation: ");
  for (const MetricColumn &column : columns_)
    names_.push_back(column.name.c_str());
  values_.resize(columns_.size());
  if (Status s = openCallbacks(); !s.ok())
    return s;
  progress_.epochs = options_.epochs;
  progress_.steps = train_.steps();
  progress_.names = names_.data();
  progress_.values = values_.data();
  if (saver_.resumed())
    note("resumed " + saver_.resumedFrom() + ": " + std::to_string(state_.epoch) + " epochs and " +
         std::to_string(state_.position) + (train_.steps() ? " of " + std::to_string(train_.steps()) : std::string()) +
         " steps are done");
  return startReceipt();
}

// Opens the stream at the position of the checkpoint.
Status Fit::openTraining(const mtrun_dataset *data) {
  const mtrun_session_info info = session_->info();
  StreamOptions stream;
  stream.shuffle = !options_.no_shuffle && data->size >= 0;
  stream.dropRemainder = options_.drop_remainder;
  stream.seed = info.seed;
  stream.stepsPerEpoch = options_.steps_per_epoch;
  stream.window = options_.shuffle_window;
  stream.allowNan = options_.allow_nan != 0;
  LoopState now;
  now.samples = std::max<int64_t>(data->size, 0); // 0: unknown
  now.batch = static_cast<int64_t>(session_->plan().batch());
  now.stepsPerEpoch = epochSteps(*data, now.batch, stream);
  now.choice = choiceHash(*data);
  if (options_.checkpoint)
    now.content = contentHash(*data);
  now.shuffle = stream.shuffle;
  now.window = stream.window;
  now.dropRemainder = stream.dropRemainder;
  if (Status s = saver_.checkData(now, state_); !s.ok())
    return s;
  if (Status s = agree(*data, now, info.seed); !s.ok())
    return s;
  if (options_.more_epochs && __builtin_add_overflow(state_.epoch, options_.more_epochs, &options_.epochs))
    options_.epochs = INT64_MAX;
  if (int64_t done; __builtin_mul_overflow(state_.epoch, now.stepsPerEpoch, &done) ||
                    __builtin_add_overflow(done, state_.position, &done))
    return {MT_INVALID, "expected epochs whose steps can be counted, found " + std::to_string(state_.epoch) + " of " +
                            std::to_string(now.stepsPerEpoch) + " steps"};
  if (Status s = beginReceipt(*data, now, stream); !s.ok())
    return s;
  stream.epochs = options_.epochs;
  stream.epoch = state_.epoch;
  stream.position = state_.position;
  if (Status s = train_.open(*session_, data, "train_step", stream); !s.ok())
    return s;
  columns_ = train_.columns();
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
  state_.choice = now.choice;
  state_.content = now.content;
  state_.shuffle = now.shuffle;
  state_.window = now.window;
  state_.dropRemainder = now.dropRemainder;
  return {};
}

Status Fit::openValidation() {
  validates_ = options_.validation != nullptr;
  if (!validates_)
    return {};
  const mtrun_dataset *data = options_.validation;
  if (int64_t steps = options_.validation_steps) {
    int64_t batch = static_cast<int64_t>(session_->plan().batch()), end = data->size;
    if (data->size < 0)
      return {MT_INVALID, "a number of steps needs data of known length"};
    if (steps < end / batch)
      end = steps * batch;
    validationData_ = sliceOf(*data, 0, end);
    data = validationData_.get();
  }
  StreamOptions stream; // samples in order; a pass for each remaining epoch that validates
  stream.epochs =
      std::max<int64_t>(1, options_.epochs / options_.validation_freq - state_.epoch / options_.validation_freq);
  stream.allowNan = options_.allow_nan != 0;
  if (Status s = validation_.open(*session_, data, "eval_step", stream); !s.ok())
    return s;
  for (MetricColumn column : validation_.columns()) {
    column.name = "val_" + column.name;
    columns_.push_back(std::move(column));
  }
  return {};
}

Status Fit::openCallbacks() {
  if (Status s = callbacks_.open(options_, columns_, validates_); !s.ok())
    return s;
  if (saver_.resumed())
    callbacks_.restore(state_);
  // A user who asks for more epochs, or turns early stopping off, wants a run to continue that had stopped early.
  state_.stoppedEarly = state_.stoppedEarly && callbacks_.early() && !options_.more_epochs;
  if (options_.restore_best && callbacks_.early()->seen()) {
    std::string folder = saver_.bestFolder();
    if (!best_.load(*session_, folder + "/" + checkpointName(callbacks_.bestStep())))
      note("no checkpoint in " + folder +
           " has the best variables; only the variables of a better epoch could be restored");
  }
  if (options_.epoch_file)
    if (Status s = epochFile_.open(*session_, options_.epoch_file, names_, options_.epoch_weights_only); !s.ok())
      return s;
  if (Status s =
          rate_.open(*session_, options_, saver_.resumed(), state_, [this](const std::string &line) { note(line); });
      !s.ok())
    return s;
  openHistory();
  return saver_.start(callbacks_.checkpoints(), options_.allow_nan != 0);
}

// Sets the columns of the history: all losses and metrics, and the learning rate.
void Fit::openHistory() {
  std::vector<std::string> columns(names_.begin(), names_.end());
  if (rate_.isKnown())
    columns.push_back("learning_rate");
  if (!state_.history.empty() && state_.names != columns) {
    note("the history of the checkpoint has other columns; it begins again");
    state_.history.clear();
  }
  state_.names = std::move(columns);
  constexpr int64_t maxRows = 4096; // more than most runs have
  state_.history.reserve(state_.history.size() +
                         static_cast<size_t>(std::clamp<int64_t>(options_.epochs - state_.epoch, 0, maxRows)) *
                             state_.names.size());
}

} // namespace mtrun
