// SPDX-License-Identifier: Apache-2.0
//
// The layout of a plan file: header | tables | page-aligned sections. The compiler writes and the runtime reads plan
// files only through this file. It checks only bytes and hashes; runtime/plan verifies the meaning.
#pragma once

#include "runtime/abi/plan_generated.h"
#include "runtime/abi/plan_header.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// XXH3-128 with seed 0.
struct Hash128 {
  uint64_t low = 0, high = 0;
  bool operator==(const Hash128 &) const = default;
};
Hash128 hash128(std::span<const uint8_t> bytes);

// A section to be written; the bytes are not owned.
struct SectionBytes {
  std::string name;
  std::span<const uint8_t> bytes;
};

// Sets `steps_hash` of a plan that does not have targets, initial values, archive and sections yet. `kernels`: a text
// of what the kernels compute, the same for all targets.
void setStepsHash(mt::plan::PlanT &plan, std::span<const uint8_t> constants, std::string_view kernels);

// Returns the tables that setStepsHash() hashed when the plan was made: the tables that determine the bits of a step.
std::vector<uint8_t> stepsTables(const mt::plan::Plan &tables);

// Lays out a complete plan file. Replaces `plan.sections` by the offsets, sizes and hashes of `sections` (in the same
// order, so indices into Plan.sections are indices into `sections`) and `plan.version` by the lowest version that has
// all of the plan. Makes large tables compact. The bytes depend only on the arguments.
std::vector<uint8_t> writePlanFile(mt::plan::PlanT &plan, std::span<const SectionBytes> sections);

enum class PlanFileFault { None, Corrupt, Version };

// The result of openPlanFile(). `tables` points into the bytes of the file or, if its tables are compact, into
// `expanded`. It is null unless fault is None.
struct PlanFileView {
  PlanFileFault fault = PlanFileFault::None;
  std::string message; // one line, empty without a fault
  const mt::plan::Plan *tables = nullptr;
  std::span<const uint8_t> file;
  std::shared_ptr<const std::vector<uint8_t>> expanded;

  // Bytes of section `index`; the index must be below tables->sections()->size().
  std::span<const uint8_t> section(uint32_t index) const;
};

// Returns the tables if they are a well-formed FlatBuffer of a plan, which can be read without leaving `bytes` and
// without misaligned loads; else null. They may be compact. `bytes` must be 8-byte aligned and outlive the result.
const mt::plan::Plan *wellFormedTables(std::span<const uint8_t> bytes);

// Checks, in this order: sizes, magic, version, header hash, tables hash, FlatBuffers structure, and for every section:
// name, alignment, order (each starts at the first page boundary after the section before it), zero padding and hash;
// and that the file ends with the last section; then expands compact tables. `file` must be 8-byte aligned and
// outlive the view. Never reads outside `file`.
PlanFileView openPlanFile(std::span<const uint8_t> file);

} // namespace mtrun
