// SPDX-License-Identifier: Apache-2.0
//
// The model's variables at the end of the best epoch, for a fit that ends with them. The optimizer's stay where they
// are.
#pragma once

#include "runtime/session/Session.h"
#include "runtime/support/status.h"

#include <string>
#include <vector>

namespace mtrun {

// Indices of the variables that are the model's own, and not the optimizer's.
std::vector<uint32_t> modelVariables(const Session &session);

class Best {
public:
  // Copies them.
  void keep(const Session &session);
  // Takes them from a checkpoint. False: it does not verify, or is not there.
  bool load(const Session &session, const std::string &checkpoint);
  // Gives them back, if there are any.
  bool restore(Session &session) const;

private:
  std::vector<std::pair<uint32_t, std::vector<std::byte>>> values_; // by variable
};

} // namespace mtrun
