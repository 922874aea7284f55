// SPDX-License-Identifier: Apache-2.0
//
// Writes a file per epoch. The name has fields as in Keras' ModelCheckpoint: model-{epoch:02d}-{val_loss:.2f}.keras.
#pragma once

#include "runtime/session/Session.h"
#include "runtime/support/status.h"

#include <span>
#include <string>
#include <vector>

namespace mtrun {

class EpochFile {
public:
  // MT_INVALID: a field is neither {epoch} nor the name of a metric, or the plan cannot write this format.
  // `weightsOnly`: the optimizer's variables are not written.
  Status open(Session &session, const std::string &pattern, const std::vector<const char *> &names, bool weightsOnly);
  bool writes() const { return !pattern_.empty(); }
  // Writes the file of an epoch, counted from 1. `values` are in the order of the names. MT_IO.
  Status write(int64_t epoch, std::span<const double> values) const;
  // Returns the name of an epoch's file.
  std::string path(int64_t epoch, std::span<const double> values) const;

private:
  Session *session_ = nullptr;
  std::string pattern_;
  bool weightsOnly_ = false;
  std::vector<std::string> names_;
};

} // namespace mtrun
