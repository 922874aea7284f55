// SPDX-License-Identifier: Apache-2.0
//
// Writes the folded tables: variables, kernels, and the graph and the schedule of each program.
#include "compiler/inspect/Page.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>
#include <set>

namespace mtc {

namespace fb = ::mt::plan;
using mtrun::htmlText;

static void writeVariables(const PageFacts &facts, llvm::raw_ostream &out) {
  out << "<details class=\"fold\"><summary>Variables, " << bytesText(facts.plan.variables_bytes()) << "</summary>\n";
  variableTable(facts.plan).printHtml(out);
  out << "</details>\n";
}

// Sums the cost of each kernel in the main program at batch B on one device, and sorts by FLOPs. A kernel that this
// program does not launch costs nothing.
static void writeKernels(const PageFacts &facts, llvm::raw_ostream &out) {
  struct Sum {
    LaunchCost cost;
    uint64_t launches = 0;
  };
  std::vector<Sum> sums(each(facts.plan.kernels()).size());
  for (const fb::Step *step : each(facts.program ? facts.program->steps() : nullptr))
    if (step->kernel() >= 0) {
      LaunchCost cost = costOf(facts.plan, *step, facts.plan.batch());
      Sum &sum = sums[static_cast<size_t>(step->kernel())];
      sum.cost.flops += cost.flops;
      sum.cost.bytes += cost.bytes;
      ++sum.launches;
    }
  std::vector<size_t> order(sums.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::stable_sort(order, [&](size_t a, size_t b) { return sums[a].cost.flops > sums[b].cost.flops; });
  uint64_t most = sums.empty() ? 1 : std::max<uint64_t>(sums[order[0]].cost.flops, 1);
  out << "<details class=\"fold\"><summary>Kernels, by their FLOPs in "
      << (facts.program ? html(facts.program->name()) : "a program") << "</summary>\n";
  Table table("||name; ||kind; ||#launches; ||#FLOP; ||#bytes; ||_");
  for (size_t index : order) {
    const fb::Kernel &kernel = *facts.plan.kernels()->Get(static_cast<uint32_t>(index));
    const Sum &sum = sums[index];
    table.add({text(kernel.name()), mtrun::enumName(EnumNameKernelKind(kernel.kind())), std::to_string(sum.launches),
               flopsText(sum.cost.flops), bytesText(sum.cost.bytes),
               Cell::ofHtml(bar(static_cast<double>(sum.cost.flops) / static_cast<double>(most), 1))});
  }
  table.printHtml(out);
  out << "</details>\n";
}

namespace {

class ProgramSection {
public:
  ProgramSection(const fb::Plan &plan, const fb::Program &program, llvm::raw_ostream &out)
      : plan(plan), facts(factsOf(program)), out(out) {}

  void print() {
    out << "<h3>Program " << html(facts.program->name()) << "</h3>\n";
    schedule();
    graph();
  }

private:
  const fb::Step &stepAt(size_t index) const { return *facts.program->steps()->Get(static_cast<uint32_t>(index)); }

  void schedule() {
    out << "<details class=\"fold\"><summary>Schedule: " << facts.phases.size() << " steps</summary>\n";
    stepTable(plan, facts).printHtml(out);
    out << "</details>\n";
  }

  // Returns, for each step, the earlier steps whose results it reads. A buffer is one value: the first step that uses
  // it computes it.
  std::vector<std::set<size_t>> makers() const {
    const fb::Program &program = *facts.program;
    std::vector<std::set<size_t>> makers(facts.phases.size());
    std::vector<int64_t> first(facts.lifetimes.size(), -1);
    std::map<int64_t, std::set<size_t>> partials; // steps that compute partial sums, by collective
    for (size_t i = 0; i < facts.phases.size(); ++i) {
      const fb::Step &step = stepAt(i);
      if (step.kernel() < 0) {
        makers[i] = partials[step.collective()];
        for (size_t b = 0; b < first.size(); ++b)
          if (facts.collectives[b] == step.collective() && program.buffers()->Get(b)->space() == fb::Space::Shared)
            first[b] = static_cast<int64_t>(i);
        continue;
      }
      for (const fb::Segment *segment : each(step.segments()))
        for (uint32_t buffer : each(segment->buffers())) {
          fb::Space space = program.buffers()->Get(buffer)->space();
          if (space != fb::Space::Arena && space != fb::Space::Shared)
            continue;
          if (first[buffer] < 0)
            first[buffer] = static_cast<int64_t>(i);
          else if (first[buffer] != static_cast<int64_t>(i))
            makers[i].insert(static_cast<size_t>(first[buffer]));
          if (space == fb::Space::Arena && facts.collectives[buffer] >= 0)
            partials[facts.collectives[buffer]].insert(i);
        }
    }
    return makers;
  }

  // Draws a box per step, below the steps whose results it reads.
  void graph() {
    constexpr int width = 200, height = 36, gapX = 14, gapY = 26;
    std::vector<std::set<size_t>> makers = this->makers();
    std::vector<int> depth(makers.size()), column(makers.size());
    std::map<int, int> used; // number of boxes in each row
    for (size_t i = 0; i < makers.size(); ++i) {
      for (size_t maker : makers[i])
        depth[i] = std::max(depth[i], depth[maker] + 1);
      column[i] = used[depth[i]]++;
    }
    int columns = 1, rows = 0;
    for (auto [row, count] : used) {
      columns = std::max(columns, count);
      rows = std::max(rows, row + 1);
    }
    auto x = [&](size_t i) { return 10 + column[i] * (width + gapX); };
    auto y = [&](size_t i) { return 10 + depth[i] * (height + gapY); };
    out << "<details class=\"fold\"><summary>Graph: " << makers.size()
        << " steps</summary>\n<div class=\"wide\"><svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\""
        << 20 + columns * (width + gapX) << "\" height=\"" << 20 + rows * (height + gapY) << "\">\n";
    for (size_t i = 0; i < makers.size(); ++i)
      for (size_t maker : makers[i])
        out << "<line x1=\"" << x(maker) + width / 2 << "\" y1=\"" << y(maker) + height << "\" x2=\""
            << x(i) + width / 2 << "\" y2=\"" << y(i) << "\"/>\n";
    for (size_t i = 0; i < makers.size(); ++i) {
      const fb::Step &step = stepAt(i);
      std::string layer = layerName(plan, step), name = kernelName(plan, step);
      out << "<g><title>step " << i << ": " << htmlText(name) << (layer.empty() ? "" : ", layer " + htmlText(layer))
          << "</title><rect class=\"" << colorOf(kindName(plan, step)) << "\" x=\"" << x(i) << "\" y=\"" << y(i)
          << "\" width=\"" << width << "\" height=\"" << height << "\" rx=\"4\"/><text x=\"" << x(i) + 6 << "\" y=\""
          << y(i) + 15 << "\">" << shortened(name) << "</text><text x=\"" << x(i) + 6 << "\" y=\"" << y(i) + 29 << "\">"
          << shortened(layer) << "</text></g>\n";
    }
    out << "</svg></div></details>\n";
  }

  // Shortens a name to the width of a box before it is escaped, so that no escape is cut.
  static std::string shortened(llvm::StringRef name) {
    return name.size() <= 32 ? htmlText(name) : htmlText(name.take_front(30)) + "…";
  }

  const fb::Plan &plan;
  ProgramFacts facts;
  llvm::raw_ostream &out;
};

} // namespace

void writeDetails(const PageFacts &facts, llvm::raw_ostream &out) {
  out << "<h2 id=\"details\">Details</h2>\n";
  writeVariables(facts, out);
  writeKernels(facts, out);
  for (const fb::Program *program : each(facts.plan.programs()))
    ProgramSection(facts.plan, *program, out).print();
}

} // namespace mtc
