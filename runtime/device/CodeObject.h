// SPDX-License-Identifier: Apache-2.0
//
// A plan's machine code for CPUs: chooses the target and loads its shared object into memory.
#pragma once

#include "runtime/plan/Plan.h"

#include <string_view>
#include <vector>

namespace mtrun {

// Finds the CPU target named `forced`; if `forced` is null, the first target whose features the CPU has. MT_INVALID
// lists the plan's targets; MT_DEVICE lists for each target the features that the CPU lacks.
Status chooseTarget(const Plan &plan, const char *forced, bool (*has)(std::string_view feature), uint32_t &index);

// An ELF shared object that is loaded from bytes and unloaded by the destructor.
class CodeObject {
public:
  CodeObject() = default;
  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;
  ~CodeObject();

  // MT_CORRUPT: the bytes are not a shared object for this machine. MT_DEVICE: the system refuses to map it.
  Status load(std::span<const uint8_t> elf, const std::string &name);
  // Returns a function's address, or null.
  void *find(const char *symbol) const;

private:
  int fd_ = -1; // open while the object is loaded, because its path identifies the object to the dynamic loader
  void *handle_ = nullptr;
};

} // namespace mtrun
