// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Compare.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <map>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;

namespace {

// The sums of one plan.
struct Side {
  const fb::Plan &plan;
  const fb::Program *program;
  uint64_t file;
  ComparedCost step;
  double memoryFloorUs = 0; // floor of the launches that are bound by memory
  uint64_t parameters = 0, phases = 0, reduces = 0, reduced = 0, code = 0;
  std::map<std::string, ComparedItem> kernels;
  std::vector<LayerFacts> layers;
  const Rates &rates;

  Side(const mtrun::PlanFileView &view, const Rates &rates)
      : plan(*view.tables), program(mainProgram(*view.tables)), file(view.file.size()), rates(rates) {
    for (const fb::Target *target : each(plan.targets()))
      code += plan.sections()->Get(target->section())->size();
    if (!program)
      return;
    layers = layersOf(plan, *program);
    for (const LayerFacts &layer : layers)
      parameters += layer.parameters;
    ProgramFacts facts = factsOf(*program);
    phases = facts.phases.empty() ? 0 : static_cast<uint64_t>(facts.phases.back() + 1);
    for (const fb::Step *launch : each(program->steps()))
      add(*launch);
  }

  ComparedCost costOfLaunch(const fb::Step &launch) const {
    LaunchCost cost = costOf(plan, launch, plan.batch());
    return {1, cost,
            1e6 *
                std::max(static_cast<double>(cost.flops) / rates.flops, static_cast<double>(cost.bytes) / rates.bytes)};
  }

  static void addTo(ComparedCost &sum, const ComparedCost &cost) {
    sum.launches += cost.launches;
    sum.cost.flops += cost.cost.flops;
    sum.cost.bytes += cost.cost.bytes;
    sum.floorUs += cost.floorUs;
  }

  void add(const fb::Step &launch) {
    if (launch.kernel() < 0) {
      ++reduces;
      reduced += launch.partial_bytes();
      return;
    }
    ComparedCost cost = costOfLaunch(launch);
    addTo(step, cost);
    if (static_cast<double>(cost.cost.bytes) / rates.bytes > static_cast<double>(cost.cost.flops) / rates.flops)
      memoryFloorUs += cost.floorUs;
    ComparedItem &kernel = kernels[kernelName(plan, launch)];
    kernel.kind = kindName(plan, launch);
    if (!kernel.a)
      kernel.a.emplace();
    addTo(*kernel.a, cost);
  }

  ComparedCost costOfLayer(const LayerFacts &layer) const {
    ComparedCost sum;
    for (uint32_t index : layer.steps)
      addTo(sum, costOfLaunch(*program->steps()->Get(index)));
    return sum;
  }
};

void addFact(Comparison &comparison, const char *what, double a, double b, const std::string &textA,
             const std::string &textB) {
  comparison.facts.push_back({what, textA, textB, a > 0 && b > 0 ? b / a : 0});
}

void addCount(Comparison &comparison, const char *what, uint64_t a, uint64_t b) {
  addFact(comparison, what, static_cast<double>(a), static_cast<double>(b), grouped(a), grouped(b));
}

void addBytes(Comparison &comparison, const char *what, uint64_t a, uint64_t b) {
  addFact(comparison, what, static_cast<double>(a), static_cast<double>(b), bytesText(a), bytesText(b));
}

std::string micros(double us) { return formatv("{0:f1} us", us); }

void addMemory(Comparison &comparison, const fb::Plan &a, const fb::Plan &b) {
  for (uint32_t shards = 1, variant = 0; shards <= std::max(a.shards(), b.shards()); shards *= 2, ++variant) {
    auto bytes = [&](const fb::Plan &plan) {
      return shards <= plan.shards() ? mtrun::deviceMemory(plan, variant).bytes() : 0;
    };
    auto text = [&](const fb::Plan &plan) { return shards <= plan.shards() ? bytesText(bytes(plan)) : "-"; };
    std::string what = "memory of a device with " + std::to_string(shards) + (shards == 1 ? " shard" : " shards");
    addFact(comparison, what.c_str(), static_cast<double>(bytes(a)), static_cast<double>(bytes(b)), text(a), text(b));
  }
}

void addFacts(Comparison &comparison, const Side &a, const Side &b) {
  auto word = [](const flatbuffers::String *text, const char *absent) { return text ? text->str() : absent; };
  comparison.facts.push_back({"model", word(a.plan.model(), ""), word(b.plan.model(), "")});
  comparison.facts.push_back({"precision", word(a.plan.precision(), "f32"), word(b.plan.precision(), "f32")});
  addCount(comparison, "batch", a.plan.batch(), b.plan.batch());
  addCount(comparison, "shards", a.plan.shards(), b.plan.shards());
  addCount(comparison, "micro-batches", a.plan.micro_batches(), b.plan.micro_batches());
  addBytes(comparison, "file", a.file, b.file);
  addBytes(comparison, "machine code", a.code, b.code);
  addCount(comparison, "parameters", a.parameters, b.parameters);
  addCount(comparison, "kernels per step", a.kernels.size(), b.kernels.size());
  addCount(comparison, "launches per step", a.step.launches, b.step.launches);
  addCount(comparison, "phases per step", a.phases, b.phases);
  addFact(comparison, "arithmetic per step", static_cast<double>(a.step.cost.flops),
          static_cast<double>(b.step.cost.flops), flopsText(a.step.cost.flops), flopsText(b.step.cost.flops));
  addBytes(comparison, "bytes that kernels move per step", a.step.cost.bytes, b.step.cost.bytes);
  addFact(comparison, "floor per step", a.step.floorUs, b.step.floorUs, micros(a.step.floorUs), micros(b.step.floorUs));
  addFact(comparison, "part of the floor bound by memory", a.memoryFloorUs, b.memoryFloorUs, micros(a.memoryFloorUs),
          micros(b.memoryFloorUs));
  addCount(comparison, "all-reduces per step", a.reduces, b.reduces);
  addBytes(comparison, "bytes of all-reduces per step", a.reduced, b.reduced);
  addMemory(comparison, a.plan, b.plan);
}

void sortByDifference(std::vector<ComparedItem> &items) {
  auto difference = [](const ComparedItem &item) {
    return std::fabs((item.a ? item.a->floorUs : 0) - (item.b ? item.b->floorUs : 0));
  };
  llvm::stable_sort(items, [&](const ComparedItem &x, const ComparedItem &y) { return difference(x) > difference(y); });
}

void addKernels(Comparison &comparison, const Side &a, const Side &b) {
  std::map<std::string, ComparedItem> all = a.kernels;
  for (const auto &[name, kernel] : b.kernels) {
    ComparedItem &both = all[name];
    both.kind = both.kind.empty() || both.kind == kernel.kind ? kernel.kind : both.kind + ", " + kernel.kind;
    both.b = kernel.a;
  }
  for (auto &[name, kernel] : all) {
    kernel.name = name;
    comparison.sameKernels += kernel.isSame();
    if (!kernel.isSame())
      comparison.kernels.push_back(kernel);
  }
  sortByDifference(comparison.kernels);
}

void addLayers(Comparison &comparison, const Side &a, const Side &b) {
  llvm::MapVector<std::string, ComparedItem, std::map<std::string, unsigned>> all;
  for (const LayerFacts &layer : a.layers)
    all[layer.name].a = a.costOfLayer(layer);
  for (const LayerFacts &layer : b.layers)
    all[layer.name].b = b.costOfLayer(layer);
  for (auto &[name, layer] : all) {
    layer.name = name.empty() ? "(of no single layer)" : name;
    if (!layer.isSame())
      comparison.layers.push_back(layer);
  }
  sortByDifference(comparison.layers);
}

} // namespace

Cell pairOfBars(double a, double b) {
  double longer = std::max({a, b, 1e-30});
  return Cell::ofHtml(formatv("<i class=\"a\" style=\"width:{0:f1}%\"></i><i class=\"b\" style=\"width:{1:f1}%\"></i>",
                              100 * a / longer, 100 * b / longer));
}

Table factTable(const Comparison &comparison) {
  Table table("|_|_; |A|#A; |B|#B; |B / A|#B / A; ||_.pair");
  for (const ComparedFact &fact : comparison.facts) {
    Cell ratio(fact.ratio > 0 ? formatv("{0:f3}", fact.ratio).str() : "");
    if (ratio.text.empty())
      ratio.text = "-";
    table.add(
        {fact.what, fact.a, fact.b, ratio, fact.ratio > 0 && fact.a != fact.b ? pairOfBars(1, fact.ratio) : Cell()});
  }
  return table;
}

Comparison comparePlans(const mtrun::PlanFileView &viewA, const mtrun::PlanFileView &viewB, const CompareNames &names,
                        const Rates &rates) {
  Side a(viewA, rates), b(viewB, rates);
  Comparison comparison;
  comparison.a = names.a;
  comparison.b = names.b;
  comparison.rates = formatv("at {0:f1} GFLOP/s and {1:f1} GB/s, {2}", rates.flops / 1e9, rates.bytes / 1e9, rates.of);
  addFacts(comparison, a, b);
  addLayers(comparison, a, b);
  addKernels(comparison, a, b);
  return comparison;
}

static void printItems(const std::vector<ComparedItem> &items, const char *title, llvm::raw_ostream &out) {
  constexpr size_t shown = 40;
  Table table(std::string("|") + title + "; |in; |launches; |FLOP; |bytes; |floor, us");
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
  table.printText(out);
  if (items.size() > shown)
    out << "  and " << items.size() - shown << " others\n";
}

std::string comparisonText(const mtrun::PlanFileView &viewA, const mtrun::PlanFileView &viewB,
                           const CompareNames &names, const Rates &rates) {
  Comparison comparison = comparePlans(viewA, viewB, names, rates);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "A: " << comparison.a << "\nB: " << comparison.b << "\nfloors " << comparison.rates << "\n\n";
  factTable(comparison).printText(out);
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
