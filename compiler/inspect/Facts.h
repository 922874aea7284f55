// SPDX-License-Identifier: Apache-2.0
//
// What follows from a plan's tables: lifetimes, costs, bytes moved. Both printers read it.
#ifndef COMPILER_INSPECT_FACTS_H
#define COMPILER_INSPECT_FACTS_H

#include "compiler/SizeText.h"
#include "runtime/support/plan_memory.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mtc {

// The elements of a vector of the tables; a missing vector has none.
template <typename T> auto each(const flatbuffers::Vector<T> *vector) {
  std::vector<decltype(vector->Get(0))> elements;
  for (uint32_t i = 0; vector && i < vector->size(); ++i)
    elements.push_back(vector->Get(i));
  return elements;
}

// A stretch of steps: of one buffer's use, from its first writer to its last reader.
struct Lifetime {
  int64_t firstStep = -1, lastStep = -1;   // -1: no step uses it
  int64_t firstPhase = -1, lastPhase = -1; // steps of one phase run side by side: no barrier stands between them
  bool used() const { return firstStep >= 0; }
  void add(int64_t step, int64_t phase);
};

struct LaunchCost {
  uint64_t flops = 0, bytes = 0;
};

struct BytesMoved {
  uint32_t devices = 0;
  std::vector<uint64_t> received; // one a device
  uint64_t total() const;
};

struct ProgramFacts {
  const mt::plan::Program *program = nullptr;
  std::vector<int64_t> phases;     // one a step
  std::vector<Lifetime> lifetimes; // one a buffer
  // Of each buffer: the collective whose partial sums (Arena) or results (Shared) hold it, or -1.
  std::vector<int64_t> collectives;
  std::vector<uint32_t> reduceSteps; // of each collective: its step
};

// "64, 128, 256" of a plan for sequences of several lengths; "": it has one.
std::string lengthsText(const mt::plan::Plan &plan);

// The facts of one program of a verified plan.
ProgramFacts factsOf(const mt::plan::Program &program);

// The cost of a launch on a device with `rows` valid rows.
LaunchCost costOf(const mt::plan::Plan &plan, const mt::plan::Step &step, uint64_t rows);

// Bytes that each device receives in an all-reduce of `partialBytes` in a step of `rows` samples, where every device
// owns its variables (docs/plan-format.md section 5).
BytesMoved bytesMoved(const mt::plan::Plan &plan, uint32_t devices, uint64_t partialBytes, uint64_t rows);

// The numbers of devices that reports show: 2, 3 ... R, above 64 powers of two alone.
std::vector<uint32_t> reportedDevices(uint32_t shards);

// mtrun::deviceMemory of the variant, if arenas were as small as what is alive at once.
uint64_t boundBytes(const mt::plan::Plan &plan, uint32_t variant);

} // namespace mtc

#endif
