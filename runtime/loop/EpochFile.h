// SPDX-License-Identifier: Apache-2.0
//
// A file an epoch, by a name with fields as Keras' ModelCheckpoint has them: model-{epoch:02d}-{val_loss:.2f}.keras.
#pragma once

#include "runtime/session/Session.h"
#include "runtime/support/status.h"

#include <span>
#include <string>
#include <vector>

namespace mtrun {

class EpochFile {
public:
  // MT_INVALID: a field that is neither {epoch} nor the name of a metric, or a plan that has no such file.
  // `weightsOnly`: without the optimizer's variables, in a .safetensors file.
  Status open(Session &session, const std::string &pattern, const std::vector<const char *> &names, bool weightsOnly);
  bool writes() const { return !pattern_.empty(); }
  // After the epoch, counted from 1; values in the order of the names. MT_IO.
  Status write(int64_t epoch, std::span<const double> values) const;
  // The name of an epoch's file.
  std::string path(int64_t epoch, std::span<const double> values) const;

private:
  Session *session_ = nullptr;
  std::string pattern_;
  bool weightsOnly_ = false;
  std::vector<std::string> names_;
};

} // namespace mtrun
