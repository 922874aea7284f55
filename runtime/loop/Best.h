// SPDX-License-Identifier: Apache-2.0
//
// Keeps the model's variables of the best epoch, for a fit that restores them at its end. The optimizer's variables are
// not restored.
#pragma once

#include "runtime/session/Session.h"
#include "runtime/support/status.h"

#include <string>
#include <vector>

namespace mtrun {

// Returns the indices of the model's own variables, without the optimizer's.
std::vector<uint32_t> modelVariables(const Session &session);

class Best {
public:
  // Copies the model's variables.
  void keep(const Session &session);
  // Reads the variables from a checkpoint. Returns false if the checkpoint does not exist or does not verify.
  bool load(const Session &session, const std::string &checkpoint);
  // Restores the variables. Returns false if none were kept.
  bool restore(Session &session) const;

private:
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> values_; // by variable
};

} // namespace mtrun
