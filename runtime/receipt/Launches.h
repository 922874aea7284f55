// SPDX-License-Identifier: Apache-2.0
//
// Digests of the results of every launch in one training step, by which two parties find the first kernel that differs.
#pragma once

#include "runtime/session/Session.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mtrun {

class LaunchDigests {
public:
  // Records the launches of the next step of train_step, the run's step `step`. MT_INVALID: the devices are no CPUs of
  // one process, or the plan has several lengths.
  Status begin(Session &session, int64_t step);
  // Writes the file after the step. MT_IO.
  Status write(const std::string &path) const;

private:
  nlohmann::json head_;
  std::vector<nlohmann::json> launches_;
};

// See compareFiles().
Status compareLaunches(const std::string &first, const std::string &second, std::vector<std::string> &lines);

} // namespace mtrun
