// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Compare.h"
#include "compiler/inspect/TextTable.h"

#include "llvm/Support/FormatVariadic.h"

namespace mtc {

using llvm::formatv;

static void printItems(const std::vector<ComparedItem> &items, const char *title, llvm::raw_ostream &out) {
  constexpr size_t shown = 40;
  TextTable table({title, "in", "launches", "FLOP", "bytes", "floor, us"});
  auto pair = [](const ComparedItem &item, auto value) {
    std::string a = item.a ? value(*item.a) : "-", b = item.b ? value(*item.b) : "-";
    return a == b ? a : a + " > " + b;
  };
  for (const ComparedItem &item : llvm::ArrayRef(items).take_front(shown))
    table.add({item.name,
               item.a && item.b ? "both"
               : item.a         ? "A"
                                : "B",
               pair(item, [](const ComparedCost &c) { return std::to_string(c.launches); }),
               pair(item, [](const ComparedCost &c) { return flopsText(c.cost.flops); }),
               pair(item, [](const ComparedCost &c) { return bytesText(c.cost.bytes); }),
               pair(item, [](const ComparedCost &c) { return formatv("{0:f1}", c.floorUs).str(); })});
  table.print(out);
  if (items.size() > shown)
    out << "  and " << items.size() - shown << " others\n";
}

std::string comparisonText(const mtrun::PlanFileView &viewA, const mtrun::PlanFileView &viewB,
                           const CompareNames &names, const Rates &rates) {
  Comparison comparison = comparePlans(viewA, viewB, names, rates);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "A: " << comparison.a << "\nB: " << comparison.b << "\nfloors " << comparison.rates << "\n\n";
  TextTable facts({"", "A", "B", "B / A"});
  for (const ComparedFact &fact : comparison.facts)
    facts.add({fact.what, fact.a, fact.b, fact.ratio > 0 ? formatv("{0:f3}", fact.ratio).str() : "-"});
  facts.print(out);
  out << "\n"
      << comparison.sameKernels << " kernels of a step cost the same in both, " << comparison.kernels.size()
      << " do not\n";
  if (!comparison.layers.empty()) {
    out << "\n";
    printItems(comparison.layers, "layers that differ", out);
  }
  if (!comparison.kernels.empty()) {
    out << "\n";
    printItems(comparison.kernels, "kernels that differ", out);
  }
  return text;
}

} // namespace mtc
