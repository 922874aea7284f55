// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Rate.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace mtrun {

Status Rate::open(Session &session, const mtrun_loop_options &options, bool resumed, LoopState &state,
                  const std::function<void(const std::string &)> &note) {
  session_ = &session;
  variable_ = session.plan().tables().learning_rate();
  const auto *program = session.plan().program("train_step");
  scheduled_ = variable_ < 0 && program && program->learning_rate() >= 0;
  last_ = state.scheduledRate;
  bool sets = options.learning_rate != 0 && (!resumed || options.learning_rate != state.givenRate);
  bool scales = options.rate_scale != 0 && options.rate_scale != 1 && (!resumed || sets);
  state.givenRate = options.learning_rate != 0 ? options.learning_rate : state.givenRate;
  const char *wish = options.learning_rate != 0                           ? "set"
                     : options.plateau_patience                           ? "reduced on a plateau"
                     : options.rate_scale != 0 && options.rate_scale != 1 ? "scaled"
                                                                          : nullptr;
  if (wish && !isVariable())
    return {MT_INVALID, std::string("the plan computes its learning rate by a schedule: expected a variable, which "
                                    "alone can be ") +
                            wish};
  if (!sets && !scales)
    return {};
  double before = sets ? options.learning_rate : now();
  set(before * (scales ? options.rate_scale : 1));
  char text[120];
  if (scales)
    snprintf(text, sizeof text, "learning rate %g: %g times %g", now(), before, options.rate_scale);
  else
    snprintf(text, sizeof text, "learning rate %g", now());
  note(text);
  return {};
}

// Reads the variable again only after setVariable(): steps do not change it, and a read waits for the steps in flight.
double Rate::now() {
  if (isVariable() && seen_ != session_->changes()) {
    seen_ = session_->changes();
    std::span<const std::byte> bytes = session_->variable(static_cast<uint32_t>(variable_));
    if (bytes.size() == sizeof(double)) {
      memcpy(&last_, bytes.data(), sizeof last_);
    } else {
      float rate = 0;
      memcpy(&rate, bytes.data(), std::min(bytes.size(), sizeof rate));
      last_ = static_cast<double>(rate);
    }
  }
  return last_;
}

double Rate::asStored(double rate) const { return isDouble() ? rate : static_cast<double>(static_cast<float>(rate)); }

bool Rate::isDouble() const {
  const auto *variable = session_->plan().tables().variables()->Get(static_cast<uint32_t>(variable_));
  return variable->dtype() == mt::plan::DType::F64;
}

void Rate::set(double rate) {
  // The plan has been verified: the variable is a single F32, or an F64 in a plan of that precision.
  auto narrow = static_cast<float>(rate);
  (void)session_->setVariable(static_cast<uint32_t>(variable_),
                              isDouble() ? std::as_bytes(std::span(&rate, 1)) : std::as_bytes(std::span(&narrow, 1)));
}

} // namespace mtrun
