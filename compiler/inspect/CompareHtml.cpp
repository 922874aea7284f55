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
  // Writes two bars; the longer bar is as wide as the cell.
  void pair(double a, double b) {
    double most = std::max({a, b, 1e-30});
    out << formatv("<td class=\"pair\"><i class=\"a\" style=\"width:{0:f1}%\"></i><i class=\"b\" "
                   "style=\"width:{1:f1}%\"></i></td>",
                   100 * a / most, 100 * b / most);
  }

  void facts() {
    tableHead(out, {"", "#A", "#B", "#B / A", ""});
    for (const ComparedFact &fact : comparison.facts) {
      out << "<tr>";
      textCell(out, htmlText(fact.what));
      numberCell(out, htmlText(fact.a));
      numberCell(out, htmlText(fact.b));
      numberCell(out, fact.ratio > 0 ? formatv("{0:f3}", fact.ratio).str() : "");
      if (fact.ratio > 0 && fact.a != fact.b)
        pair(1, fact.ratio);
      else
        out << "<td></td>";
      out << "</tr>\n";
    }
    out << "</table></div>\n";
  }

  void items(const char *title, const std::vector<ComparedItem> &list, bool kinds) {
    if (list.empty())
      return;
    out << "<h2>" << title << "</h2>\n";
    tableHead(out, {kinds ? "kernel" : "layer", kinds ? "kind" : "", "#launches A", "#B", "#FLOP A", "#B", "#bytes A",
                    "#B", "#floor A, us", "#B", ""});
    for (const ComparedItem &item : list) {
      out << "<tr>";
      textCell(out, htmlText(item.name));
      textCell(out, item.kind);
      auto cells = [&](auto value) {
        numberCell(out, item.a ? value(*item.a) : "");
        numberCell(out, item.b ? value(*item.b) : "");
      };
      cells([](const ComparedCost &c) { return grouped(c.launches); });
      cells([](const ComparedCost &c) { return flopsText(c.cost.flops); });
      cells([](const ComparedCost &c) { return bytesText(c.cost.bytes); });
      cells([](const ComparedCost &c) { return formatv("{0:f1}", c.floorUs).str(); });
      pair(item.a ? item.a->floorUs : 0, item.b ? item.b->floorUs : 0);
      out << "</tr>\n";
    }
    out << "</table></div>\n";
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
