// SPDX-License-Identifier: Apache-2.0
//
// Tuning files: which implementation of each kernel was fastest on a GPU. JSON, ending with the hash of all before it;
// docs/libraries.md.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

#include <string>
#include <vector>

namespace mtrun::cuda {

// What was measured where: a file is good for the same again alone.
struct TuningPlace {
  std::string gpu, capability; // "NVIDIA H100 80GB HBM3", "9.0"
  int driver = 0;
  std::vector<std::string> libraries; // "cuBLASLt 13.0.2"
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
  Hash128 hash; // of the file; set by read and write
};

// Any bytes are fine: MT_CORRUPT says what was expected and what was found. `where` begins messages.
Status parseTuning(const std::string &bytes, const std::string &where, Tuning &tuning);
// MT_IO.
Status writeTuning(const std::string &path, Tuning &tuning);
// MT_IO, MT_CORRUPT.
Status readTuning(const std::string &path, Tuning &tuning);
// MT_INVALID: the file is of another plan, GPU, driver or library; what was expected and found.
Status checkTuning(const std::string &path, const TuningPlace &made, const TuningPlace &here);

} // namespace mtrun::cuda
