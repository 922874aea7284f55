// SPDX-License-Identifier: Apache-2.0
//
// Lifetimes, costs and communicated bytes, derived from the tables of a plan. The printers of text, JSON and pages read
// them.
#ifndef COMPILER_INSPECT_FACTS_H
#define COMPILER_INSPECT_FACTS_H

#include "compiler/SizeText.h"
#include "runtime/support/enum_name.h"
#include "runtime/support/plan_memory.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

// Returns the elements of a FlatBuffers vector; a missing vector has none.
template <typename T> auto each(const flatbuffers::Vector<T> *vector) {
  std::vector<decltype(vector->Get(0))> elements;
  for (uint32_t i = 0; vector && i < vector->size(); ++i)
    elements.push_back(vector->Get(i));
  return elements;
}

// The range of steps from the first writer of a buffer to its last reader.
struct Lifetime {
  int64_t firstStep = -1, lastStep = -1;   // -1: no step uses the buffer
  int64_t firstPhase = -1, lastPhase = -1; // a phase is the steps between two barriers, which run concurrently
  bool used() const { return firstStep >= 0; }
  void add(int64_t step, int64_t phase);
};

struct LaunchCost {
  uint64_t flops = 0, bytes = 0;
};

struct BytesMoved {
  uint32_t devices = 0;
  std::vector<uint64_t> received; // bytes that each device receives
  uint64_t total() const;
};

struct ProgramFacts {
  const mt::plan::Program *program = nullptr;
  std::vector<int64_t> phases;     // phase of each step
  std::vector<Lifetime> lifetimes; // lifetime of each buffer
  // For each buffer, the collective whose partial sums (Arena) or results (Shared) contain it, or -1.
  std::vector<int64_t> collectives;
  std::vector<uint32_t> reduceSteps; // step of each collective
};

// Returns "64, 128, 256" for a plan for sequences of several lengths, "" for any other plan.
std::string lengthsText(const mt::plan::Plan &plan);

// Derives the facts of a program of a verified plan.
ProgramFacts factsOf(const mt::plan::Program &program);

// Returns the cost of a launch on a device with `rows` valid rows.
LaunchCost costOf(const mt::plan::Plan &plan, const mt::plan::Step &step, uint64_t rows);

// Returns the bytes that each device receives in an all-reduce of `partialBytes`, in a step of `rows` samples, if each
// device has its own variables (docs/plan-format.md section 5).
BytesMoved bytesMoved(const mt::plan::Plan &plan, uint32_t devices, uint64_t partialBytes, uint64_t rows);

// Returns the numbers of devices that reports have a row for: 2, 3 ... R, above 64 only powers of two.
std::vector<uint32_t> reportedDevices(uint32_t shards);

// Returns mtrun::deviceMemory of the variant for an arena as small as the bytes that are live at once: a lower bound.
uint64_t boundBytes(const mt::plan::Plan &plan, uint32_t variant);

} // namespace mtc

#endif
