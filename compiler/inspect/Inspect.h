// SPDX-License-Identifier: Apache-2.0
//
// What a plan holds, in words. The plan must be verified.
#ifndef COMPILER_INSPECT_INSPECT_H
#define COMPILER_INSPECT_INSPECT_H

#include "runtime/abi/plan_file.h"

#include <string>

namespace mtc {

struct Measured;

// Tables for people.
std::string inspectText(const mtrun::PlanFileView &view);
// The same facts for programs; docs/inspect.md is the schema.
std::string inspectJson(const mtrun::PlanFileView &view);
// One page that needs nothing beside it: layers with their kernels, devices, memory, graph, schedule. `measured`: the
// times of a trace, or null.
std::string inspectHtml(const mtrun::PlanFileView &view, const Measured *measured = nullptr);
// The times of a trace by layer and by launch. The plan has a program.
std::string inspectTrace(const mtrun::PlanFileView &view, const Measured &measured);

// What the floors of a comparison are of: FLOPs and bytes a second, and whose they are.
struct Rates {
  double flops, bytes;
  std::string of;
};
// Of a GPU by its data sheet, in the plan's precision; zero where the name is not known.
Rates ratesOfGpu(const mtrun::PlanFileView &view, const std::string &gpu);
// Round numbers of a core of a server, for whoever names none.
Rates nominalRates();
struct CompareNames {
  std::string a, b;
};
std::string comparisonText(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                           const Rates &rates);
std::string comparisonHtml(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                           const Rates &rates);

// A modelled training step on 1, 2, 4 ... R GPUs of this name, one of `knownGpus()`; empty: the name is unknown, or the
// plan does not train.
std::string inspectGpus(const mtrun::PlanFileView &view, const std::string &gpu);
std::string knownGpus();
// Which of `devices` devices, 1 to R, works on which rows of a batch and holds which variables: drawn as text, and as a
// page that needs nothing beside it.
std::string inspectDevices(const mtrun::PlanFileView &view, uint32_t devices);
std::string inspectDevicesHtml(const mtrun::PlanFileView &view, uint32_t devices);
// One line: what was made.
std::string summarize(const mtrun::PlanFileView &view);

} // namespace mtc

#endif
