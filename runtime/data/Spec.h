// SPDX-License-Identifier: Apache-2.0
//
// A data specification as users write it: "mnist:DIR[,key=value]...".
#pragma once

#include "runtime/abi/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtrun {

struct DataSpec {
  std::string folder;
  bool test = false;           // split=test
  bool scale = true;           // pixels / 255; scale=1: as they are
  int64_t begin = 0, end = -1; // range=BEGIN:END in samples; end -1: to the last
  std::optional<int64_t> classes;
  std::vector<std::pair<int64_t, float>>
      classWeights; // class-weight=CLASS:WEIGHT[+...]: of samples, by label; 1 of other labels
};

// MT_INVALID names the part that is wrong and what may stand there.
Status parseDataSpec(const std::string &text, DataSpec &spec);

} // namespace mtrun
