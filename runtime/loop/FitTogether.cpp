// SPDX-License-Identifier: Apache-2.0
//
// What several processes of a fit, with a device each, have to do alike: begin, read the same data, and end.
#include "runtime/loop/Fit.h"
#include "runtime/support/option_struct.h"

#include <algorithm>
#include <cstdlib>

namespace mtrun {

// Of several processes the first one reads the folder, and alone writes; the others read the checkpoint that it found.
Status Fit::openSaver() {
  Session &session = *session_;
  bool first = session.process() == 0;
  mtrun_checkpoint_options checkpoint;
  if (Status s = MTRUN_READ_OPTIONS(mtrun_checkpoint_options, force, options_.checkpoint, checkpoint); !s.ok())
    return s;
  auto tell = [this](const std::string &line) { note(line); };
  if (options_.checkpoint && first)
    if (Status s = saver_.open(*session_, checkpoint, tell, state_); !s.ok())
      return s;
  if (session.processes() == 1)
    return {};
  std::string from = saver_.resumedFrom();
  if (Status s = session.share(from); !s.ok() || first)
    return s;
  options_.history_json = options_.history_csv = options_.epoch_file = nullptr;
  checkpoint.folder = nullptr;
  checkpoint.resume = from.c_str();
  return from.empty() ? Status() : saver_.open(*session_, checkpoint, tell, state_);
}

Status Fit::agree(const LoopState &data, int64_t seed) const {
  std::string own = std::to_string(data.samples) + " samples, " + std::to_string(data.stepsPerEpoch) +
                    " steps an epoch, seed " + std::to_string(seed) + ", shuffled " + std::to_string(data.shuffle) +
                    ", window " + std::to_string(data.window),
              firsts = own;
  if (Status s = session_->share(firsts); !s.ok())
    return s;
  if (firsts != own)
    return {MT_INVALID, "expected the data of process 0: " + firsts + "; found " + own};
  return {};
}

// Of several processes none begins a step before the first has said that all do.
int64_t Fit::granted() const { return session_->processes() > 1 ? nextWord_ - asked_ : INT64_MAX; }

// Several processes must end after the same step: now and then the first says whether all do, and after how many calls
// it says so again, a tenth of a second later or so.
bool Fit::asked() {
  Session &session = *session_;
  bool first = session.process() == 0;
  if (first && options_.stop && options_.stop(options_.stop_user) != 0)
    wantsStop_ = true;
  if (session.processes() == 1 || ++asked_ < nextWord_)
    return stop_ = wantsStop_ && session.processes() == 1;
  double each = sinceWord_.seconds() / static_cast<double>(nextWord_);
  int64_t next = std::clamp<int64_t>(static_cast<int64_t>(0.1 / std::max(each, 1e-6)), 1, 2 * nextWord_);
  std::string word = std::to_string(wantsStop_ ? 0 : next);
  nextWord_ = session.share(word).ok() ? std::atoll(word.c_str()) : 1; // a failure is the next step's too
  stop_ = nextWord_ == 0;
  asked_ = 0;
  sinceWord_ = Stopwatch();
  return stop_;
}

} // namespace mtrun
