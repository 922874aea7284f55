// SPDX-License-Identifier: Apache-2.0
//
// Compares two plans: their expected costs, and the kernels in which they differ.
#ifndef COMPILER_INSPECT_COMPARE_H
#define COMPILER_INSPECT_COMPARE_H

#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Layers.h"

#include <optional>

namespace mtc {

// The cost of a kernel or a layer in a step of one plan.
struct ComparedCost {
  uint64_t launches = 0;
  LaunchCost cost;
  double floorUs = 0;
  bool operator==(const ComparedCost &other) const {
    return launches == other.launches && cost.flops == other.cost.flops && cost.bytes == other.cost.bytes;
  }
};

struct ComparedItem {
  std::string name, kind;           // kind: of a kernel; empty for a layer
  std::optional<ComparedCost> a, b; // none: the plan has no item of this name
  bool isSame() const { return a && b && *a == *b; }
};

struct ComparedFact {
  std::string what, a, b;
  double ratio = 0; // b divided by a; 0: no ratio
};

struct Comparison {
  std::string a, b; // names of the plans
  std::vector<ComparedFact> facts;
  std::vector<ComparedItem> layers, kernels; // sorted by difference, the largest first
  size_t sameKernels = 0;
  std::string rates; // name of the rates that floors are computed with
};

// The facts, with two bars on a page.
Table factTable(const Comparison &comparison);
// Two bars, the longer one as wide as the cell.
Cell pairOfBars(double a, double b);

Comparison comparePlans(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                        const Rates &rates);

} // namespace mtc

#endif
