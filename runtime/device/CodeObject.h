// SPDX-License-Identifier: Apache-2.0
//
// A plan's machine code for CPUs: which target this CPU takes, and its shared object in memory.
#pragma once

#include "runtime/plan/Plan.h"

#include <string_view>
#include <vector>

namespace mtrun {

// Index of the target for CPUs called `forced`, or of the first in plan order that `has` all its features where
// `forced` is null. MT_INVALID lists the targets there are; MT_DEVICE says what the CPU lacks for each.
Status chooseTarget(const Plan &plan, const char *forced, bool (*has)(std::string_view feature), uint32_t &index);

// An ELF shared object loaded from bytes; unloaded by the destructor.
class CodeObject {
public:
  CodeObject() = default;
  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;
  ~CodeObject();

  // MT_CORRUPT: not a shared object for this machine. MT_DEVICE: the system refuses to map it.
  Status load(std::span<const uint8_t> elf, const std::string &name);
  // A function's address; null if there is none.
  void *find(const char *symbol) const;

private:
  int fd_ = -1; // open as long as the object is loaded: its path names it to the dynamic loader
  void *handle_ = nullptr;
};

} // namespace mtrun
