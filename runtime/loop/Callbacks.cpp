// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Callbacks.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <cmath>

namespace mtrun {

constexpr double plateauMinDelta = 1e-4;

Monitor Monitor::find(const std::string &text, std::span<const MetricColumn> columns) {
  auto named = [&](const std::string &name) {
    Monitor monitor = {name, -1, false};
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i].name == name) {
        monitor.index = static_cast<int>(i);
        monitor.higher = columns[i].higherIsBetter;
      }
    return monitor;
  };
  Monitor monitor = named(text);
  bool max = text.ends_with(":max"), min = text.ends_with(":min");
  if (monitor.index >= 0 || (!max && !min))
    return monitor;
  monitor = named(text.substr(0, text.size() - 4));
  monitor.higher = max;
  return monitor;
}

std::optional<double> Monitor::of(std::span<const double> values) const {
  auto at = static_cast<size_t>(index); // index -1 becomes larger than any number of columns
  return at < values.size() ? std::optional(values[at]) : std::nullopt;
}

bool Record::update(double value) {
  improved_ = !seen_ ? !std::isnan(value) : isBetter(value, best_);
  if (improved_) {
    seen_ = true;
    best_ = value;
  }
  return improved_;
}

void Record::restore(std::span<const double> state) {
  seen_ = state[0] != 0;
  best_ = state[1];
  improved_ = state[2] != 0;
}

static Status unknown(const char *what, const Monitor &monitor, std::span<const MetricColumn> columns) {
  std::string known;
  std::vector<std::string> names;
  for (const MetricColumn &column : columns) {
    known += (known.empty() ? "" : ", ") + column.name;
    names.push_back(column.name);
  }
  bool validated = !columns.empty() && columns.back().name.starts_with("val_");
  return {MT_INVALID, std::string(what) + ": expected one of " + known + ", found " + monitor.name +
                          (monitor.name.starts_with("val_") && !validated ? ", and nothing is validated"
                                                                          : didYouMean(monitor.name, names))};
}

Status Callbacks::open(const mtrun_loop_options &options, std::span<const MetricColumn> columns, bool validates) {
  std::string common = options.monitor ? options.monitor : validates ? "val_loss" : "loss";
  auto find = [&](const char *own) { return Monitor::find(own ? own : common, columns); };
  Monitor shared = find(nullptr), early = find(options.early_monitor), plateau = find(options.plateau_monitor);
  checkpoints_ = find(options.checkpoint_monitor);
  if (options.monitor && shared.index < 0)
    return unknown("monitor", shared, columns);
  if ((options.early_monitor || options.early_patience) && early.index < 0)
    return unknown("monitor of early stopping", early, columns);
  if ((options.plateau_monitor || options.plateau_patience) && plateau.index < 0)
    return unknown("monitor of the plateau", plateau, columns);
  if ((options.checkpoint_monitor || options.epoch_best_only) && checkpoints_.index < 0)
    return unknown("monitor of checkpoints", checkpoints_, columns);
  if (options.restore_best && !options.early_patience)
    return {MT_INVALID, "the best variables are restored after early stopping only: expected a patience "
                        "(--early-stopping N), found none"};
  if (options.early_patience)
    early_.emplace(early, options.early_min_delta);
  if (options.early_baseline)
    baseline_ = *options.early_baseline;
  patience_ = options.early_patience;
  startEpoch_ = options.early_start_epoch;
  if (options.plateau_patience)
    plateau_.emplace(plateau, options.plateau_min_delta ? *options.plateau_min_delta : plateauMinDelta);
  plateauPatience_ = options.plateau_patience;
  cooldown_ = options.plateau_cooldown;
  if (options.epoch_best_only)
    file_.emplace(checkpoints_, 0);
  return {};
}

// Reads a counter from a manifest, which may have been modified by anyone.
static int64_t countOf(double number) {
  constexpr double most = 1ll << 53;
  return number >= 0 && number <= most ? static_cast<int64_t>(number) : 0;
}

void Callbacks::restore(const LoopState &state) {
  // State that a run without this callback or of another version kept is ignored.
  auto take = [&](const char *name, std::optional<Record> &record, size_t more) -> std::span<const double> {
    auto found = state.callbacks.find(name);
    if (!record || found == state.callbacks.end() || found->second.size() != Record::numberCount + more)
      return {};
    record->restore(found->second);
    return std::span(found->second).subspan(Record::numberCount);
  };
  if (auto numbers = take("early_stop", early_, 2); !numbers.empty()) {
    earlyWaited_ = countOf(numbers[0]);
    bestStep_ = early_->seen() ? countOf(numbers[1]) : -1;
  }
  if (auto numbers = take("plateau", plateau_, 2); !numbers.empty()) {
    plateauWaited_ = countOf(numbers[0]);
    cooling_ = countOf(numbers[1]);
  }
  take("epoch_file", file_, 0);
}

void Callbacks::keep(LoopState &state) const {
  auto put = [&](const char *name, const std::optional<Record> &record, std::vector<int64_t> more) {
    if (!record)
      return;
    std::vector<double> numbers = record->state();
    for (int64_t number : more)
      numbers.push_back(static_cast<double>(number));
    state.callbacks[name] = std::move(numbers);
  };
  put("early_stop", early_, {earlyWaited_, std::max<int64_t>(bestStep_, 0)});
  put("plateau", plateau_, {plateauWaited_, cooling_});
  put("epoch_file", file_, {});
}

void Callbacks::updateEarly(int64_t step, double value) {
  ++earlyWaited_;
  if (early_->update(value)) {
    bestStep_ = step;
    if (!baseline_ || early_->isBetter(value, *baseline_))
      earlyWaited_ = 0;
    return;
  }
  if (earlyWaited_ < patience_)
    return;
  stops_ = true;
  earlyWaited_ = 0; // a later run with more epochs counts again from 0
}

void Callbacks::updatePlateau(double value) {
  if (cooling_ > 0) {
    --cooling_;
    plateauWaited_ = 0;
  }
  if (plateau_->update(value)) {
    plateauWaited_ = 0;
  } else if (cooling_ == 0 && ++plateauWaited_ >= plateauPatience_) {
    reduces_ = true;
    cooling_ = cooldown_;
    plateauWaited_ = 0;
  }
}

void Callbacks::update(int64_t epoch, int64_t step, std::span<const double> values) {
  stops_ = reduces_ = false;
  for (std::optional<Record> *record : {&early_, &plateau_, &file_})
    if (*record)
      (*record)->pass();
  auto valueOf = [&](const std::optional<Record> &record) {
    return record ? record->monitor().of(values) : std::nullopt;
  };
  if (std::optional<double> value = valueOf(early_); value && epoch >= startEpoch_)
    updateEarly(step, *value);
  if (std::optional<double> value = valueOf(plateau_))
    updatePlateau(*value);
  if (std::optional<double> value = valueOf(file_))
    file_->update(*value);
}

} // namespace mtrun
