// SPDX-License-Identifier: Apache-2.0
//
// Broadcasts and collects many bytes over a transport, for what is too large for the connections of a ProcessGroup.
#pragma once

#include "runtime/device/ProcessGroup.h"
#include "runtime/device/Transport.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtrun {

// Replaces `bytes` in all processes by the bytes of process `root`. Each process receives them once, and sends them to
// at most log2 of the number of processes. No all-reduce may be in flight. MT_LOST, MT_NO_MEMORY.
Status shareBytes(Transport &transport, ProcessGroup &group, std::vector<std::byte> &bytes, int root);

// Memory of process 0 that receives a part from a process, or the part in that process.
struct SharedPart {
  int process;
  std::byte *memory;
  uint64_t bytes;
};

// Collects parts in process 0. Its list has the parts of all processes, and the list of another process has its own
// parts, in the same order. No all-reduce may be in flight. MT_LOST.
Status collectParts(Transport &transport, ProcessGroup &group, std::span<const SharedPart> parts);

} // namespace mtrun
