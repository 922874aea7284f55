// SPDX-License-Identifier: Apache-2.0
//
// The parts of a fit in which several processes, with one device each, must agree: begin, data and end.
#include "runtime/data/Compare.h"
#include "runtime/loop/Fit.h"
#include "runtime/support/option_struct.h"
#include "runtime/support/option_table.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace mtrun {

// Returns the value of an option that bits may depend on, with all digits. Texts are names of files, which only process
// 0 writes, and of metrics.
template <typename T> static std::string valueText(const T &value) {
  if constexpr (std::is_same_v<T, const char *>) {
    return "";
  } else if constexpr (std::is_pointer_v<T>) {
    return value ? valueText(*value) : "none";
  } else {
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  }
}

// Process 0 alone reads the folder of checkpoints and writes to it. It may find none and another process one, of the
// last step before a loss.
Status Fit::openSaver() {
  Session &session = *session_;
  bool first = session.process() == 0;
  mtrun_checkpoint_options checkpoint;
  if (Status s = MTRUN_READ_OPTIONS(mtrun_checkpoint_options, force, options_.checkpoint, checkpoint); !s.ok())
    return s;
  if (!first) {
    options_.history_json = options_.history_csv = options_.epoch_file = nullptr;
    checkpoint.folder = checkpoint.resume = nullptr;
  }
  auto tell = [this](const std::string &line) { note(line); };
  if (options_.checkpoint || !first)
    if (Status s = saver_.open(session, checkpoint, tell); !s.ok())
      return s;
  if (Status s = rescue_.open(session, saver_, checkpoint.rescue, [this](const std::string &line) { warn(line); });
      !s.ok())
    return s;
  if (Status s = session.dividesOptimizer() ? saver_.meet(session, tell) : Status(); !s.ok())
    return s;
  savesTogether_ = session.dividesOptimizer() &&
                   decidedByFirst(checkpoint.folder && (checkpoint.every_steps > 0 || checkpoint.every_seconds > 0));
  return resume(checkpoint);
}

Status Fit::resume(const mtrun_checkpoint_options &checkpoint) {
  Session &session = *session_;
  bool first = session.process() == 0, found = false, together = session.processes() > 1;
  auto tell = [this](const std::string &line) { note(line); };
  Checkpoint from;
  if (first)
    if (Status s = saver_.find(tell, from, found); !s.ok())
      return s;
  std::string newest = saver_.resumesNewest() ? "newest" : "";
  if (Status s = together ? session.broadcast(newest) : Status(); !s.ok())
    return s;
  if (together && !session.sharesBytes()) { // GPUs: all read the checkpoint that process 0 has selected
    std::string path = found ? from.path : "";
    if (Status s = session.broadcast(path); !s.ok())
      return s;
    found = !path.empty();
    if (Status s = first || !found ? Status() : readCheckpoint(path, from); !s.ok())
      return s;
  } else if (Status s = rescue_.shareNewest(session, from, found, !newest.empty()); !s.ok()) {
    return s;
  }
  if (!found && saver_.resumesNewest())
    tell("no checkpoint in " + std::string(checkpoint.folder) + ": beginning at step 0");
  return found ? saver_.adopt(from, tell, state_) : Status();
}

void Fit::rescue(const Status &why) {
  if (why.code() == MT_LOST && rescue_.opened() && state_.step > 0)
    keepInMemory();
}

void Fit::keepInMemory() {
  keepState();
  saver_.keepFolder();
  Status status = rescue_.keep(*session_, saver_.manifestOf(state_, std::nullopt));
  note(status.ok() ? "the variables after step " + std::to_string(state_.step) + " are in " + rescue_.path() +
                         "; --resume auto continues with them"
                   : "the variables were not kept: " + status.message());
}

// Compares all that the bits of a run depend on, except for the plan and the seed, which the session has compared.
Status Fit::agree(const mtrun_dataset &data, const LoopState &state, int64_t seed) {
  if (session_->processes() == 1)
    return {};
  std::string lines = "steps per epoch: " + std::to_string(state.stepsPerEpoch) + "\nseed: " + std::to_string(seed) +
                      "\nshuffled: " + std::to_string(state.shuffle) + "\nposition: epoch " +
                      std::to_string(state_.epoch) + ", step " + std::to_string(state_.position) + "\nlearning rate: " +
                      (options_.learning_rate != 0 ? valueText(options_.learning_rate) : "its own") +
                      "\nscale of the learning rate: " + valueText(options_.rate_scale);
  for (const auto &row : loopOptions)
    lines += std::string("\n") + row.name + ": " +
             std::visit([&](auto field) { return valueText(options_.*field); }, row.field);
  lines += "\nvariables: " + session_->variablesHash();
  Status status = appendDataLines(data, "the data", lines);
  if (status.ok() && options_.validation)
    status = appendDataLines(*options_.validation, "the validation data", lines);
  return status.ok() ? session_->agree(lines) : status;
}

// With several processes, no process begins a step until process 0 has broadcast that all may.
int64_t Fit::granted() const { return session_->processes() > 1 ? nextBroadcast_ - stopCalls_ : INT64_MAX; }

// With a divided optimizer process 0 can save only what the others send.
bool Fit::decidedByFirst(bool own) {
  if (!session_->dividesOptimizer())
    return own;
  std::string word = own ? "1" : "0";
  return session_->broadcast(word).ok() && word == "1"; // if the broadcast fails, the next step fails too
}

// All processes must stop after the same step. Process 0 broadcasts from time to time whether to stop, and after how
// many calls it broadcasts again (about a tenth of a second later); in each call if a callback looks at each step. Its
// batches come along: of a callback that gives all rows, the others must have the same.
bool Fit::mustStop(bool now) {
  if (replayed_) // in all processes after the same step
    return stop_ = true;
  Session &session = *session_;
  bool first = session.process() == 0;
  if (first && options_.stop && options_.stop(options_.stop_user) != 0)
    wantsStop_ = true;
  if (session.processes() == 1 || (++stopCalls_ < nextBroadcast_ && !now))
    return stop_ = wantsStop_ && session.processes() == 1;
  double each = sinceBroadcast_.seconds() / static_cast<double>(std::max<int64_t>(stopCalls_, 1));
  int64_t next = std::clamp<int64_t>(static_cast<int64_t>(0.1 / std::max(each, 1e-6)), 1, 2 * nextBroadcast_);
  if (options_.progress && !options_.in_flight)
    next = 1;
  std::string word = std::to_string(wantsStop_ ? 0 : next) + " " + train_.hashOfBatches();
  std::string batches = word.substr(word.find(' '));
  // if the broadcast fails, the next step fails too
  nextBroadcast_ = session.broadcast(word).ok() ? std::atoll(word.c_str()) : 1;
  if (size_t at = word.find(' '); at != std::string::npos && word.substr(at) != batches)
    session.lose({MT_INVALID, "expected the batches that process 0 has had from its callback up to step " +
                                  std::to_string(state_.step) + ", found others; every process must have the same"});
  stop_ = nextBroadcast_ == 0;
  stopCalls_ = 0;
  sinceBroadcast_ = Stopwatch();
  return stop_;
}

} // namespace mtrun
