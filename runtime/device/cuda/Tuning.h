// SPDX-License-Identifier: Apache-2.0
//
// Tuning files name the fastest implementation of each kernel on a GPU. They are JSON and end with the hash of the text
// before it; docs/libraries.md.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

#include <string>
#include <vector>

namespace mtrun::cuda {

// The conditions of a measurement; a tuning file may be used only under the same conditions.
struct TuningPlace {
  std::string gpu, capability; // such as "NVIDIA H100 80GB HBM3", "9.0"
  int driver = 0;
  std::vector<std::string> libraries; // such as "cuBLASLt 13.0.2"
  Hash128 plan;
};

struct TunedKernel {
  std::string name;
  std::string algorithm; // "": the generated kernel
  double microseconds = 0, ownMicroseconds = 0;
};

struct Tuning {
  TuningPlace place;
  std::vector<TunedKernel> kernels;
  Hash128 hash; // hash of the file; set by readTuning() and writeTuning()
};

// Parses an untrusted file. MT_CORRUPT with the expected and the found value. `where` begins messages.
Status parseTuning(const std::string &bytes, const std::string &where, Tuning &tuning);
// MT_IO.
Status writeTuning(const std::string &path, Tuning &tuning);
// MT_IO, MT_CORRUPT.
Status readTuning(const std::string &path, Tuning &tuning);
// MT_INVALID: the file is for another plan, GPU, driver or library; the message has both values.
Status checkTuning(const std::string &path, const TuningPlace &made, const TuningPlace &here);

} // namespace mtrun::cuda
