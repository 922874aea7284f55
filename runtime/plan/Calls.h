// SPDX-License-Identifier: Apache-2.0
//
// The sizes of the operands and the result of a library call.
#pragma once

#include "runtime/abi/plan_generated.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <string>

namespace mtrun {

// Numbers of elements: per sample if the operand or the result has a batch axis, else in total.
struct CallSizes {
  uint64_t left = 0, right = 0, result = 0;
  bool rightRows = false, resultRows = false;
};

inline bool isTree(const mt::plan::LibraryCall &call) {
  return call.kind() == mt::plan::CallKind::ProductTree || call.kind() == mt::plan::CallKind::ConvolutionTree;
}
inline bool isConvolution(const mt::plan::LibraryCall &call) { return call.kind() >= mt::plan::CallKind::Convolution; }

// Computes the sizes. MT_CORRUPT: unknown kind, a size that is 0 or overflows, or axes that do not fit each other.
Status callSizes(const mt::plan::LibraryCall &call, const std::string &place, CallSizes &sizes);

// Checks that the buffers of a launch's segment have the sizes of the call's operands and result. MT_CORRUPT.
Status checkCall(const mt::plan::LibraryCall &call, const mt::plan::Program &program, const mt::plan::Segment &segment,
                 const std::string &place);

} // namespace mtrun
