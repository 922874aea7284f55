// SPDX-License-Identifier: Apache-2.0
//
// How much memory there is to take, and whether what a file makes of itself there leaves some: an archive of a few
// megabytes must not take all of it.
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <string>

namespace mtrun {

// Bytes that this process may take: of the host or of its control group, the less.
uint64_t availableMemory();

// MT_NO_MEMORY: `bytes` are more than three quarters of that, or of the process' own limit. `what` begins the message.
// A megabyte is not asked for.
Status checkMemory(uint64_t bytes, const std::string &what);

} // namespace mtrun
