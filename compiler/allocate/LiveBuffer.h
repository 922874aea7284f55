// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtc {

// A buffer that is live in all phases of [first, last]. Sizes are multiples of bufferAlignment.
struct LiveBuffer {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

} // namespace mtc
