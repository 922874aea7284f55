// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Compare.h"
#include "compiler/inspect/Page.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace mtc {

using llvm::formatv;
using mtrun::htmlText;

static constexpr const char *compareStyle =
    ".pair{min-width:120px;width:30%}.pair i{display:block;height:7px;min-width:1px;margin:1px 0}.pair .a,.key.a{"
    "background:var(--a)}.pair .b,.key.b{background:var(--b)}td.pair{vertical-align:middle}\n";

namespace {

class ComparisonPage {
public:
  ComparisonPage(const Comparison &comparison, llvm::raw_ostream &out) : comparison(comparison), out(out) {}

  void print() {
    out << mtrun::pageHead(comparison.a + " and " + comparison.b, std::string(planStyle) + compareStyle)
        << "<h1>Two plans</h1>\n<p><span class=\"key a\"></span><b>A</b> " << htmlText(comparison.a)
        << "<br><span class=\"key b\"></span><b>B</b> " << htmlText(comparison.b)
        << "</p>\n<p class=\"muted\">Floors are the times of the work " << htmlText(comparison.rates)
        << ", whichever is longer for each launch.</p>\n";
    facts();
    items("Layers that differ", comparison.layers, false);
    items("Kernels that differ", comparison.kernels, true);
    out << "<p class=\"muted\">" << comparison.sameKernels << " kernels of a step cost the same in both.</p>\n"
        << mtrun::pageEnd;
  }

private:
  void facts() {
    factTable(comparison).printHtml(out);
    out << "\n";
  }

  void items(const char *title, const std::vector<ComparedItem> &list, bool kinds) {
    if (list.empty())
      return;
    out << "<h2>" << title << "</h2>\n";
    Table table(std::string(kinds ? "||kernel; ||kind" : "||layer; ||_") +
                "; ||#launches A; ||#B; ||#FLOP A; ||#B; ||#bytes A; ||#B; ||#floor A, us; ||#B; ||_.pair");
    for (const ComparedItem &item : list) {
      std::vector<Cell> row = {item.name, item.kind};
      auto add = [&](auto value) {
        row.push_back(item.a ? value(*item.a) : "");
        row.push_back(item.b ? value(*item.b) : "");
      };
      add([](const ComparedCost &c) { return grouped(c.launches); });
      add([](const ComparedCost &c) { return flopsText(c.cost.flops); });
      add([](const ComparedCost &c) { return bytesText(c.cost.bytes); });
      add([](const ComparedCost &c) { return formatv("{0:f1}", c.floorUs).str(); });
      row.push_back(pairOfBars(item.a ? item.a->floorUs : 0, item.b ? item.b->floorUs : 0));
      table.add(row);
    }
    table.printHtml(out);
    out << "\n";
  }

  const Comparison &comparison;
  llvm::raw_ostream &out;
};

} // namespace

std::string comparisonHtml(const mtrun::PlanFileView &viewA, const mtrun::PlanFileView &viewB,
                           const CompareNames &names, const Rates &rates) {
  std::string html;
  llvm::raw_string_ostream out(html);
  ComparisonPage(comparePlans(viewA, viewB, names, rates), out).print();
  return html;
}

} // namespace mtc
