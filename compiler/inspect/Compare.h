// SPDX-License-Identifier: Apache-2.0
//
// Two plans beside each other: what they promise, and where their kernels differ.
#ifndef COMPILER_INSPECT_COMPARE_H
#define COMPILER_INSPECT_COMPARE_H

#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Layers.h"

#include <optional>

namespace mtc {

// What a kernel or a layer costs in a step of one plan.
struct ComparedCost {
  uint64_t launches = 0;
  LaunchCost cost;
  double floorUs = 0;
  bool operator==(const ComparedCost &other) const {
    return launches == other.launches && cost.flops == other.cost.flops && cost.bytes == other.cost.bytes;
  }
};

struct ComparedItem {
  std::string name, kind;           // kind: of kernels
  std::optional<ComparedCost> a, b; // none: the plan has no such
  bool isSame() const { return a && b && *a == *b; }
};

struct ComparedFact {
  std::string what, a, b;
  double ratio = 0; // of b to a; 0: there is none
};

struct Comparison {
  std::string a, b; // the plans' names
  std::vector<ComparedFact> facts;
  std::vector<ComparedItem> layers, kernels; // those that differ most first
  size_t sameKernels = 0;
  std::string rates; // that the floors are of
};

Comparison comparePlans(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                        const Rates &rates);

} // namespace mtc

#endif
