// SPDX-License-Identifier: Apache-2.0
//
// The layout of a plan file: header | tables | page-aligned sections. The one place that knows it, used by the
// compiler to write and by the runtime to read. Meaning is checked elsewhere (runtime/plan); here are only bytes and
// hashes.
#pragma once

#include "runtime/abi/plan_generated.h"
#include "runtime/abi/plan_header.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtrun {

// XXH3-128 with seed 0.
struct Hash128 {
  uint64_t low = 0, high = 0;
  bool operator==(const Hash128 &) const = default;
};
Hash128 hash128(std::span<const uint8_t> bytes);

// A section to be written; the bytes are borrowed.
struct SectionBytes {
  std::string name;
  std::span<const uint8_t> bytes;
};

// Sets `steps_hash` of a plan that has no targets, initial values, archive and sections yet.
void setStepsHash(mt::plan::PlanT &plan, std::span<const uint8_t> constants);

// Lays out a whole plan file. Replaces `plan.sections` by the offsets, sizes and hashes of `sections` (same order, so
// indices into Plan.sections are indices into `sections`) and `plan.version` by MT_PLAN_VERSION. Same input, same
// bytes.
std::vector<uint8_t> writePlanFile(mt::plan::PlanT &plan, std::span<const SectionBytes> sections);

enum class PlanFileFault { None, Corrupt, Version };

// What opening found. `tables` is null unless fault is None; it points into the file's bytes.
struct PlanFileView {
  PlanFileFault fault = PlanFileFault::None;
  std::string message; // one line, empty without a fault
  const mt::plan::Plan *tables = nullptr;
  std::span<const uint8_t> file;

  // Bytes of section `index`; the index must be below tables->sections()->size().
  std::span<const uint8_t> section(uint32_t index) const;
};

// The tables if they are a FlatBuffer of a plan that can be read without leaving `bytes` and without misaligned loads,
// else null. `bytes` must be 8-byte aligned and outlive the result.
const mt::plan::Plan *wellFormedTables(std::span<const uint8_t> bytes);

// Checks, in this order: sizes, magic, version, header hash, tables hash, FlatBuffers structure, and for every section:
// name, alignment, order (each starts at the first page boundary after what comes before it), zero padding, hash, and
// that the file ends with the last one. `file` must be 8-byte aligned and outlive the view. Never reads outside `file`.
PlanFileView openPlanFile(std::span<const uint8_t> file);

} // namespace mtrun
