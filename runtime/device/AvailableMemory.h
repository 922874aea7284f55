// SPDX-License-Identifier: Apache-2.0
//
// The memory that is available, and a check for sizes that come from files: a compressed file of some megabytes must
// not exhaust the memory.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <string>

namespace mtrun {

// Returns the bytes that are available on the host or in the process's control group, whichever is smaller.
uint64_t availableMemory();

// MT_NO_MEMORY: `bytes` exceeds three quarters of the available memory or of the process's own limit. `what` begins the
// message. Sizes of up to one megabyte are not checked.
Status checkMemory(uint64_t bytes, const std::string &what);

} // namespace mtrun
