// SPDX-License-Identifier: Apache-2.0
//
// A broadcast of many bytes over a transport, for what is too large for the connections of a ProcessGroup.
#pragma once

#include "runtime/device/ProcessGroup.h"
#include "runtime/device/Transport.h"

#include <cstddef>
#include <vector>

namespace mtrun {

// Replaces `bytes` in all processes by the bytes of process `root`. Each process receives them once, and sends them to
// at most log2 of the number of processes. No all-reduce may be in flight. MT_LOST, MT_NO_MEMORY.
Status shareBytes(Transport &transport, ProcessGroup &group, std::vector<std::byte> &bytes, int root);

} // namespace mtrun
