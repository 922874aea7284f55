// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of a fit: a variable, which can be set, or what a schedule in the plan computes for each step.
#pragma once

#include "runtime/abi/mtrun.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/session/Session.h"
#include "runtime/support/status.h"

#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace mtrun {

class Rate {
public:
  // What the options say of the rate is done once in the life of a run: a checkpoint holds the result. Another given
  // rate than the checkpoint's run had is a new wish. MT_INVALID: a schedule's rate cannot be set.
  Status open(Session &session, const mtrun_loop_options &options, bool resumed, LoopState &state,
              const std::function<void(const std::string &)> &note);

  bool isVariable() const { return variable_ >= 0; }
  bool isKnown() const { return isVariable() || scheduled_; } // of each step
  // What the last step used, and of a variable what the next one will. NaN: not known.
  double now();
  // After a step, with what it computed.
  void saw(double computed) { last_ = scheduled_ ? computed : last_; }
  void set(float rate);

private:
  Session *session_ = nullptr;
  int variable_ = -1;
  bool scheduled_ = false;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<uint64_t> seen_; // Session::changes() when the variable was read
};

} // namespace mtrun
