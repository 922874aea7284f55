// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_API_RESULT_H
#define COMPILER_API_RESULT_H

#include "runtime/abi/mtc.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <new>
#include <vector>

struct mtc_result {
  std::vector<uint8_t> bytes;
};

namespace mtc {

// Calls `body`, which returns a Status, and turns exceptions into a status: no exception crosses the C API.
template <typename Body> mt_status *guarded(Body body) {
  try {
    return body().release();
  } catch (const std::bad_alloc &) {
    return mtrun::Status(MT_NO_MEMORY, "out of memory").release();
  }
}

} // namespace mtc

#endif
