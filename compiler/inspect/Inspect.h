// SPDX-License-Identifier: Apache-2.0
//
// Reports on a verified plan, as text, JSON and pages.
#ifndef COMPILER_INSPECT_INSPECT_H
#define COMPILER_INSPECT_INSPECT_H

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

#include <string>

namespace mtc {

struct Measured;

// Returns tables for people to read.
std::string inspectText(const mtrun::PlanFileView &view);
// Returns the same facts as JSON for programs; docs/inspect.md is the schema.
std::string inspectJson(const mtrun::PlanFileView &view);
// Returns one self-contained page: layers with their kernels, devices, memory, graph, schedule. `measured`: the times
// of a trace, or null.
std::string inspectHtml(const mtrun::PlanFileView &view, const Measured *measured = nullptr);
// Returns the times of a trace by layer and by launch. The plan must have a program.
std::string inspectTrace(const mtrun::PlanFileView &view, const Measured &measured);

// The rates that the floors of a comparison are computed with: FLOP/s, byte/s, and the name of the device.
struct Rates {
  double flops, bytes;
  std::string of;
};
// Returns the data sheet rates of a GPU in the plan's precision; zeros if the name is unknown.
Rates ratesOfGpu(const mtrun::PlanFileView &view, const std::string &gpu);
// Returns round rates of one core of a server, the default of a comparison.
Rates nominalRates();
struct CompareNames {
  std::string a, b;
};
std::string comparisonText(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                           const Rates &rates);
std::string comparisonHtml(const mtrun::PlanFileView &a, const mtrun::PlanFileView &b, const CompareNames &names,
                           const Rates &rates);

// Returns a table of a modeled training step on 1, 2, 4 ... R GPUs of this name, which knownGpus() lists; empty if the
// name is unknown or the plan does not train.
std::string inspectGpus(const mtrun::PlanFileView &view, const std::string &gpu);
std::string knownGpus();
// The same on hosts of GPUs, or of CPUs, with an exchange that adds inside hosts first and with a ring. Texts as in
// mtc_inspect_options.
struct HostsModel {
  const char *gpu, *cpu, *hosts, *network;
};
mtrun::Status inspectHosts(const mtrun::PlanFileView &view, const HostsModel &of, std::string &text);
// Draws, as text and as a self-contained page, which rows of a batch each of `devices` devices (1 to R) computes and
// how much memory it needs, and lists the variables.
std::string inspectDevices(const mtrun::PlanFileView &view, uint32_t devices);
std::string inspectDevicesHtml(const mtrun::PlanFileView &view, uint32_t devices);
// Returns one line that describes the plan.
std::string summarize(const mtrun::PlanFileView &view);

} // namespace mtc

#endif
