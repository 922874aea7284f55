// SPDX-License-Identifier: Apache-2.0
//
// What a plan holds, in words. The plan must be verified.
#ifndef COMPILER_INSPECT_INSPECT_H
#define COMPILER_INSPECT_INSPECT_H

#include "runtime/abi/plan_file.h"

#include <string>

namespace mtc {

// Tables for people.
std::string inspectText(const mtrun::PlanFileView &view);
// The same facts for programs; docs/inspect.md is the schema.
std::string inspectJson(const mtrun::PlanFileView &view);
// One page that needs nothing beside it: kernels, graph, schedule, memory over time.
std::string inspectHtml(const mtrun::PlanFileView &view);
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
