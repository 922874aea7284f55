// SPDX-License-Identifier: Apache-2.0
//
// The variables of the optimizer that the devices of a session divide, as whole variables.
#pragma once

#include "runtime/device/ProcessGroup.h"
#include "runtime/device/Transport.h"
#include "runtime/session/Memory.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mtrun {

class DividedVariables {
public:
  using Bytes = std::span<const std::byte>;

  // Both must outlive this object.
  DividedVariables(const MemoryMap &memory, const DeviceLayout &layout) : memory_(memory), layout_(layout) {}

  bool any() const;
  // Notes that the variables change: what was collected is no longer valid.
  void change();
  // Returns what device `device` of this process has of a divided variable.
  Bytes own(uint32_t index, int device) const;
  // Returns the part of the bytes of a variable that a device of this process has; all bytes if it is not divided.
  Bytes partOf(uint32_t index, int device, Bytes bytes);
  // Returns a divided variable, in memory that the next call for this variable changes. Empty: other processes have
  // parts of it that were not collected since it changed.
  Bytes whole(uint32_t index) const;
  // Collects the parts of all processes in process 0, or in all processes. Collective. MT_LOST, MT_NO_MEMORY.
  Status collect(Transport &transport, ProcessGroup &group, bool everywhere);

  const mt::plan::Plan *plan = nullptr;

  // The place of device `device` of the session in a divided variable.
  struct Place {
    uint64_t begin, bytes;
  };
  Place placeOf(uint32_t index, size_t device) const;

private:
  // Makes memory for whole variables, and copies the parts of this process into it.
  void copyOwn(uint32_t index) const;

  const MemoryMap &memory_;
  const DeviceLayout &layout_;
  mutable std::vector<std::vector<std::byte>> whole_; // by variable; made when it is needed
  bool collected_ = false;
};

} // namespace mtrun
