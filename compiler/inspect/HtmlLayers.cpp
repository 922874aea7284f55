// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Page.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;
using mtrun::htmlText;

namespace {

class LayerSection {
public:
  LayerSection(const PageFacts &facts, llvm::raw_ostream &out)
      : facts(facts), measured(facts.measured ? &*facts.measured : nullptr), out(out) {
    for (const LayerFacts &layer : facts.layers)
      most = std::max(most, static_cast<double>(layer.cost.flops));
  }

  void print() {
    out << "<h2 id=\"layers\">Layers</h2>\n<p class=\"muted\">In the order in which <code>"
        << html(facts.program->name())
        << "</code> first works for them; the sum of forward pass, backward pass and update, at batch "
        << facts.plan.batch() << " on one device. Open a layer to see its kernels.";
    if (measured)
      out << formatv(" Times are means of {0} step{1} of {2:f0} samples on {3}.", measured->steps,
                     measured->steps == 1 ? "" : "s", measured->samples, measured->threadsText());
    if (measured && measured->hasFloor())
      out << formatv(" The floor is what the work takes at the peak of {0:f1} GFLOP/s or {1:f1} GB/s, whichever is "
                     "longer; it is the strong part of a bar. More than 100 % of it says that something else ran while "
                     "the peak was measured.",
                     measured->peakFlops / 1e9, measured->peakBytes / 1e9);
    else if (!measured)
      out << " Bars compare the FLOPs.";
    out << "</p>\n<div class=\"layers" << (measured ? " timed" : "")
        << "\">\n<div class=\"row head\"><span>layer</span>"
        << "<span class=\"o\">result</span><span class=\"num o\">parameters</span><span class=\"num"
        << (measured ? " o" : "") << "\">FLOP</span><span class=\"num o\">bytes</span>";
    if (measured)
      out << "<span class=\"num\">us a step</span><span class=\"num\">share</span><span class=\"num o\">of "
             "floor</span>";
    out << "<span></span></div>\n";
    for (const LayerFacts &layer : facts.layers)
      this->layer(layer);
    if (measured)
      others();
    out << "</div>\n";
  }

private:
  double step() const { return std::max(measured->stepUs, 1e-9); }

  void layer(const LayerFacts &layer) {
    out << "<details><summary class=\"row\"><span class=\"name\">"
        << (layer.name.empty() ? "<i>of no single layer</i>" : htmlText(layer.name)) << "</span><span class=\"o\">"
        << htmlText(layer.shape) << "</span><span class=\"num o\">"
        << (layer.parameters ? grouped(layer.parameters) : "") << "</span><span class=\"num" << (measured ? " o" : "")
        << "\">" << flopsText(layer.cost.flops) << "</span><span class=\"num o\">" << bytesText(layer.cost.bytes)
        << "</span>";
    if (measured) {
      double us = layerUs(layer, *measured), floor = layerFloorUs(facts.plan, *facts.program, layer, *measured);
      timeCells(us, floor);
      out << bar(us / step(), us > 0 ? floor / us : 0);
    } else {
      out << bar(static_cast<double>(layer.cost.flops) / most);
    }
    out << "</summary><div class=\"inside\">\n";
    launches(layer);
    out << "</div></details>\n";
  }

  void timeCells(double us, double floor) {
    out << formatv("<span class=\"num\">{0:f1}</span><span class=\"num\">{1:f1} %</span><span class=\"num o\">", us,
                   100 * us / step());
    if (us > 0 && floor > 0)
      out << formatv("{0:f0} %", 100 * floor / us);
    out << "</span>";
  }

  void launches(const LayerFacts &layer) {
    Table table(std::string("||#step; ||kernel.k; ||reads → writes.ops; ||kind; ||#FLOP; ||#bytes; ||#FLOP/byte") +
                (measured ? "; ||#us; ||#of floor; ||bound by" : ""));
    for (uint32_t index : layer.steps) {
      const fb::Step &step = *facts.program->steps()->Get(index);
      LaunchCost cost = costOf(facts.plan, step, facts.plan.batch());
      std::vector<Cell> row = {
          std::to_string(index),      launchCell(facts.plan, step), operandsCell(facts.plan, *facts.program, step),
          kindName(facts.plan, step), flopsText(cost.flops),        bytesText(cost.bytes),
          intensityCell(cost)};
      if (measured)
        addMeasured(step, measured->us[index], row);
      table.add(row);
    }
    table.printHtml(out);
    out << "\n";
  }

  void addMeasured(const fb::Step &step, double us, std::vector<Cell> &row) {
    LaunchCost cost = measuredCost(facts.plan, step, *measured);
    double floor = measured->floorUs(cost);
    row.push_back(formatv("{0:f1}", us).str());
    row.push_back(us > 0 && floor > 0 ? formatv("{0:f0} %", 100 * floor / us).str() : "");
    row.push_back(!measured->hasFloor() || us == 0 ? "" : measured->isBoundByMemory(cost) ? "memory" : "arithmetic");
  }

  // Writes the time of a step that belongs to no layer: waits, all-reduces, idle time.
  void others() {
    const std::pair<const char *, double> parts[] = {{"waits between kernels", measured->waitUs},
                                                     {"all-reduces", measured->transferUs},
                                                     {"idle before and after", measured->idleUs}};
    for (auto [name, us] : parts) {
      if (us == 0)
        continue;
      out << "<div class=\"row\"><span class=\"muted\">" << name << "</span><span class=\"o\"></span>"
          << "<span class=\"o\"></span><span class=\"o\"></span><span class=\"o\"></span>";
      timeCells(us, 0);
      out << bar(us / step());
      out << "</div>\n";
    }
  }

  const PageFacts &facts;
  const Measured *measured;
  llvm::raw_ostream &out;
  double most = 1; // FLOPs of the layer with the most, for the widths of bars
};

} // namespace

void writeLayers(const PageFacts &facts, llvm::raw_ostream &out) { LayerSection(facts, out).print(); }

} // namespace mtc
