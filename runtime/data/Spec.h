// SPDX-License-Identifier: Apache-2.0
//
// A data specification as users write it: "KIND:PATH[,PATH]...[,key=value]...". A path with a comma cannot be written.
#pragma once

#include "runtime/abi/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtrun {

struct DataSpec {
  std::string text; // all of it
  std::string kind;
  std::vector<std::string> paths;
  bool test = false;           // split=test
  int64_t begin = 0, end = -1; // range=BEGIN:END in samples; end -1: to the last
  std::optional<int64_t> classes;
  std::vector<std::pair<int64_t, float>>
      classWeights;          // class-weight=CLASS:WEIGHT[+...]: of samples, by label; 1 of other labels
  int64_t length = 0;        // tokens: of a sample
  std::string label;         // csv: the column of the target; "": the last
  std::string input, target; // npz: arrays that are the only input and the only target; "": by their names

  // The value of an input's element of channel c (the last axis) is (stored * scale / divisor - mean[c]) / std[c]; no
  // or one entry: all channels. In double, rounded once.
  std::optional<double> scale;
  double divisor = 1;
  std::vector<double> mean, deviation;
  bool reversed = false; // channels in the opposite order: preprocess=caffe
};

// MT_INVALID names the part that is wrong and what may stand there.
Status parseDataSpec(const std::string &text, DataSpec &spec);

} // namespace mtrun
