// SPDX-License-Identifier: Apache-2.0
//
// Sizes of what a library's call reads and writes.
#pragma once

#include "runtime/abi/plan_generated.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <string>

namespace mtrun {

// In elements. An operand or result has so many a sample, or, where it has no batch axis, in all.
struct CallSizes {
  uint64_t left = 0, right = 0, result = 0;
  bool rightRows = false, resultRows = false;
};

inline bool isTree(const mt::plan::LibraryCall &call) {
  return call.kind() == mt::plan::CallKind::ProductTree || call.kind() == mt::plan::CallKind::ConvolutionTree;
}
inline bool isConvolution(const mt::plan::LibraryCall &call) { return call.kind() >= mt::plan::CallKind::Convolution; }

// MT_CORRUPT: a kind that is none, a size of 0 or so large that products of sizes wrap, axes that do not fit.
Status callSizes(const mt::plan::LibraryCall &call, const std::string &place, CallSizes &sizes);

// Whether a launch's segment has the call's buffers, in these sizes. MT_CORRUPT.
Status checkCall(const mt::plan::LibraryCall &call, const mt::plan::Program &program, const mt::plan::Segment &segment,
                 const std::string &place);

} // namespace mtrun
