// SPDX-License-Identifier: Apache-2.0
//
// Prints the times of a trace by layer and by launch.
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Measured.h"
#include "compiler/inspect/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;

namespace {

class TracePrinter {
public:
  TracePrinter(const fb::Plan &plan, const fb::Program &program, const Measured &measured, llvm::raw_ostream &out)
      : plan(plan), program(program), measured(measured), layers(layersOf(plan, program)), out(out) {}

  void print() {
    out << plan.model()->string_view() << ": "
        << formatv("{0:f1} us per step of {1:f0} samples on {2}, {3:f1} us between steps; means of {4} step{5}\n",
                   measured.stepUs, measured.samples, measured.threadsText(), measured.betweenUs, measured.steps,
                   measured.steps == 1 ? "" : "s");
    if (measured.hasFloor())
      out << formatv("peak {0:f1} GFLOP/s and {1:f1} GB/s\n", measured.peakFlops / 1e9, measured.peakBytes / 1e9);
    else
      out << "the trace does not have the peak rates of the devices, so there are no floors\n";
    out << verdict(plan, program, layers, measured) << "\n\n";
    printLayers();
    out << "\n";
    printLaunches();
  }

private:
  std::string share(double us) const { return formatv("{0:f1} %", 100 * us / std::max(measured.stepUs, 1e-9)); }
  static std::string ofFloor(double us, double floor) {
    return us > 0 && floor > 0 ? formatv("{0:f0} %", 100 * floor / us).str() : "-";
  }
  static std::string number(double us) { return formatv("{0:f1}", us); }

  void printLayers() {
    Table table("|layer; |us/step; |share; |of floor");
    std::vector<const LayerFacts *> order;
    for (const LayerFacts &layer : layers)
      order.push_back(&layer);
    llvm::stable_sort(
        order, [&](const LayerFacts *a, const LayerFacts *b) { return layerUs(*a, measured) > layerUs(*b, measured); });
    for (const LayerFacts *layer : order) {
      double us = layerUs(*layer, measured);
      table.add({layer->name.empty() ? "(of no single layer)" : layer->name, number(us), share(us),
                 ofFloor(us, layerFloorUs(plan, program, *layer, measured))});
    }
    const std::pair<const char *, double> others[] = {{"(waits between kernels)", measured.waitUs},
                                                      {"(all-reduces)", measured.transferUs},
                                                      {"(idle before and after)", measured.idleUs}};
    for (auto [name, us] : others)
      if (us > 0)
        table.add({name, number(us), share(us), "-"});
    table.printText(out);
  }

  void printLaunches() {
    constexpr size_t shown = 20;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < measured.us.size(); ++i)
      if (measured.us[i] > 0)
        order.push_back(i);
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return measured.us[a] > measured.us[b]; });
    Table table("|kernel, the longest; |layer; |step; |us/step; |share; |of floor; |bound by");
    for (uint32_t i : llvm::ArrayRef(order).take_front(shown)) {
      const fb::Step &step = *program.steps()->Get(i);
      LaunchCost cost = measuredCost(plan, step, measured);
      table.add({kernelName(plan, step), layerName(plan, step), std::to_string(i), number(measured.us[i]),
                 share(measured.us[i]), ofFloor(measured.us[i], measured.floorUs(cost)),
                 !measured.hasFloor()             ? "-"
                 : measured.isBoundByMemory(cost) ? "memory"
                                                  : "arithmetic"});
    }
    table.printText(out);
  }

  const fb::Plan &plan;
  const fb::Program &program;
  const Measured &measured;
  std::vector<LayerFacts> layers;
  llvm::raw_ostream &out;
};

} // namespace

std::string inspectTrace(const mtrun::PlanFileView &view, const Measured &measured) {
  std::string text;
  llvm::raw_string_ostream out(text);
  TracePrinter(*view.tables, *mainProgram(*view.tables), measured, out).print();
  return text;
}

} // namespace mtc
