// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of a fit: a variable, which can be set, or a schedule in the plan that computes it in each step.
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
  // Applies the options for the rate once in the life of a run, because a checkpoint keeps the result. A resumed run
  // applies `learning_rate` again only if it differs from the value of the checkpoint's run. MT_INVALID: the rate of a
  // schedule cannot be set.
  Status open(Session &session, const mtrun_loop_options &options, bool resumed, LoopState &state,
              const std::function<void(const std::string &)> &note);

  bool isVariable() const { return variable_ >= 0; }
  bool isKnown() const { return isVariable() || scheduled_; } // in each step
  // Returns the rate: the next step's if it is a variable, the last step's if a schedule computes it. NaN: not known.
  double now();
  // Records the rate that a step computed.
  void saw(double computed) { last_ = scheduled_ ? computed : last_; }
  void set(double rate);
  // The number as the variable has it: rounded to F32 in a plan of another precision than f64.
  double asStored(double rate) const;

private:
  bool isDouble() const;

  Session *session_ = nullptr;
  int variable_ = -1;
  bool scheduled_ = false;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<uint64_t> seen_; // Session::changes() when the variable was read
};

} // namespace mtrun
