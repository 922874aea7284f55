// SPDX-License-Identifier: Apache-2.0
//
// Draws the memory of a device: its parts for every number of shards, and the buffers in the arena over the steps.
#include "compiler/inspect/Alive.h"
#include "compiler/inspect/Page.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <map>
#include <set>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;
using mtrun::htmlText;

static void writeParts(const PageFacts &facts, llvm::raw_ostream &out) {
  struct Part {
    const char *name;
    char color;
    uint64_t bytes;
  };
  auto partsOf = [&](uint32_t variant) {
    mtrun::DeviceMemory memory = mtrun::deviceMemory(facts.plan, variant);
    return std::vector<Part>{{"variables", 'a', memory.variables},           {"arena", 'b', memory.arena},
                             {"results of all-reduces", 'c', memory.shared}, {"staging", 'd', memory.staging},
                             {"sums of micro-batches", 'e', memory.sums},    {"constants", 'f', memory.constants},
                             {"scratch of a thread", 'g', memory.scratch}};
  };
  uint64_t most = 1;
  std::set<llvm::StringRef> used;
  uint32_t variants = static_cast<uint32_t>(llvm::countr_zero(facts.plan.shards())) + 1;
  for (uint32_t variant = 0; variant < variants; ++variant) {
    most = std::max(most, mtrun::deviceMemory(facts.plan, variant).bytes());
    for (const Part &part : partsOf(variant))
      if (part.bytes)
        used.insert(part.name);
  }
  out << "<h2 id=\"memory\">Memory of a device</h2>\n<p class=\"legend\">";
  for (const Part &part : partsOf(0))
    if (used.count(part.name))
      out << "<span class=\"" << part.color << "\"><i></i>" << part.name << "</span>";
  out << "</p>\n<div class=\"parts\"><div class=\"row head\"><span class=\"num\">shards</span><span></span><span "
         "class=\"num\">peak"
         "</span><span class=\"num o\">lower bound</span></div>\n";
  for (uint32_t variant = 0; variant < variants; ++variant) {
    out << "<div class=\"row\"><span class=\"num\">" << (1u << variant) << "</span><span class=\"stack\">";
    for (const Part &part : partsOf(variant))
      if (part.bytes)
        out << formatv("<span class=\"part {0}\" style=\"width:{1:f2}%\" title=\"{2}: {3}\"></span>", part.color,
                       100 * static_cast<double>(part.bytes) / static_cast<double>(most), part.name,
                       bytesText(part.bytes));
    out << "</span><span class=\"num\">" << bytesText(mtrun::deviceMemory(facts.plan, variant).bytes())
        << "</span><span class=\"num o\">" << bytesText(boundBytes(facts.plan, variant)) << "</span></div>\n";
  }
  out << "</div>\n";
}

namespace {

// A map of the arena of a device that computes all shards: steps on the horizontal axis, addresses on the vertical
// axis.
class ArenaMap {
public:
  ArenaMap(const PageFacts &page, llvm::raw_ostream &out)
      : plan(page.plan), facts(factsOf(*page.program)), alive(aliveOf(plan, facts)), out(out) {
    arena = facts.program->variants()->Get(alive.variant)->arena_bytes();
    rows = plan.shard_rows() << alive.variant;
  }

  void print() {
    if (arena == 0 || facts.phases.empty())
      return;
    out << "<h2 id=\"arena\">Arena of a device with " << (uint64_t{1} << alive.variant)
        << " shards, step by step</h2>\n"
        << "<p class=\"muted\">Each box is a value of <code>" << html(facts.program->name())
        << "</code>: its addresses in the " << bytesText(arena)
        << " of the arena, and the steps during which it is live. Its "
        << "color is the kind of kernel that makes it. The line is the number of live bytes: "
        << bytesText(alive.bytes[static_cast<size_t>(alive.peak)])
        << " at most, in the frame. The area that no box fills is lost to fragmentation.</p>\n";
    legend();
    map();
    peak();
  }

private:
  static constexpr double width = 1000, height = 340, left = 64, bottom = 30, top = 6;

  double x(double step) const { return left + step * (width - left) / static_cast<double>(facts.phases.size()); }
  double y(double bytes) const {
    return height - bottom - bytes * (height - top - bottom) / static_cast<double>(arena);
  }
  std::string kindOfMaker(const Lifetime &life) const {
    return kindName(plan, *facts.program->steps()->Get(static_cast<uint32_t>(life.firstStep)));
  }

  void legend() {
    std::map<char, std::string> kinds;
    for (auto [i, life] : llvm::enumerate(facts.lifetimes))
      if (life.used() && facts.program->buffers()->Get(static_cast<uint32_t>(i))->space() == fb::Space::Arena) {
        std::string kind = kindOfMaker(life), &names = kinds[colorOf(kind)];
        if (!llvm::is_contained(llvm::split(names, ", "), kind))
          names += (names.empty() ? "" : ", ") + kind;
      }
    out << "<p class=\"legend\">";
    for (auto &[color, names] : kinds)
      out << "<span class=\"" << color << "\"><i></i>" << names << "</span>";
    out << "</p>\n";
  }

  void axes() {
    constexpr int ticks = 4;
    for (int i = 0; i <= ticks; ++i) {
      double bytes = static_cast<double>(arena) * i / ticks;
      out << formatv("<line class=\"grid\" x1=\"{0}\" y1=\"{1:f1}\" x2=\"{2}\" y2=\"{1:f1}\"/><text x=\"{3}\" "
                     "y=\"{4:f1}\" text-anchor=\"end\">{5}</text>\n",
                     left, y(bytes), width, left - 5, y(bytes) + 4, bytesText(static_cast<uint64_t>(bytes)));
    }
    size_t every = 1; // distance between labels of the axis: 1, 2, 5, 10 ...
    for (size_t i = 0; facts.phases.size() / every > 12; ++i)
      every = every * (i % 3 == 1 ? 5 : 4) / 2;
    for (size_t step = 0; step < facts.phases.size(); step += every)
      out << formatv("<text x=\"{0:f1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>\n",
                     x(static_cast<double>(step) + 0.5), height - bottom + 16, step);
    out << formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">step</text>\n", width - 4, height - 2);
  }

  void map() {
    out << formatv(
        "<div class=\"wide\"><svg class=\"map\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
        "role=\"img\">\n",
        width, height);
    axes();
    for (auto [i, life] : llvm::enumerate(facts.lifetimes)) {
      const fb::Buffer &buffer = *facts.program->buffers()->Get(static_cast<uint32_t>(i));
      if (buffer.space() != fb::Space::Arena || !life.used())
        continue;
      uint64_t bytes = buffer.fixed_bytes() + buffer.row_bytes() * rows, offset = buffer.offset()->Get(alive.variant);
      double begin = x(static_cast<double>(life.firstStep)), end = x(static_cast<double>(life.lastStep) + 1);
      double low = y(static_cast<double>(offset)), high = y(static_cast<double>(offset + bytes));
      out << formatv(
          "<rect class=\"{0}\" x=\"{1:f2}\" y=\"{2:f2}\" width=\"{3:f2}\" height=\"{4:f2}\"><title>{5}: {6}, "
          "{7}, steps {8} to {9}</title></rect>\n",
          colorOf(kindOfMaker(life)), begin, high, end - begin, std::max(0.5, low - high), html(buffer.name()),
          htmlText(shapeOf(buffer)), bytesText(bytes), life.firstStep, life.lastStep);
      if (low - high >= 15)
        label(buffer.name()->str(), begin, end, (low + high) / 2 + 4);
    }
    out << "<polyline class=\"live\" points=\"";
    for (auto [step, phase] : llvm::enumerate(facts.phases)) {
      double bytes = y(static_cast<double>(alive.bytes[static_cast<size_t>(phase)]));
      out << formatv("{0:f1},{2:f1} {1:f1},{2:f1} ", x(static_cast<double>(step)), x(static_cast<double>(step) + 1),
                     bytes);
    }
    double begin = x(static_cast<double>(alive.firstStep)), end = x(static_cast<double>(alive.lastStep) + 1);
    out << formatv(
        "\"/>\n<rect class=\"peak\" x=\"{0:f1}\" y=\"{1}\" width=\"{2:f1}\" height=\"{3}\"/>\n</svg></div>\n", begin,
        top, end - begin, height - top - bottom);
  }

  // Writes as much of a name as fits in a box.
  void label(llvm::StringRef name, double begin, double end, double down) {
    constexpr double letter = 6.6;
    auto room = static_cast<size_t>(std::max(0.0, (end - begin - 8) / letter));
    if (room < 4)
      return;
    out << formatv("<text class=\"in\" x=\"{0:f1}\" y=\"{1:f1}\">{2}{3}</text>\n", begin + 5, down,
                   htmlText(name.take_front(name.size() <= room ? room : room - 1)), name.size() <= room ? "" : "…");
  }

  void peak() {
    constexpr size_t shown = 15;
    uint64_t total = std::max<uint64_t>(alive.bytes[static_cast<size_t>(alive.peak)], 1), rest = 0;
    out << "<details class=\"fold\" open><summary>Alive at the peak, "
        << (alive.firstStep == alive.lastStep ? "step " : "steps ") << alive.firstStep;
    if (alive.firstStep != alive.lastStep)
      out << " to " << alive.lastStep;
    out << ": " << alive.values.size() << " values</summary>\n";
    Table table("||value; ||shape; ||#bytes; ||#share; ||#steps");
    auto row = [&](const std::string &name, const std::string &shape, uint64_t bytes, const std::string &steps) {
      double share = 100 * static_cast<double>(bytes) / static_cast<double>(total);
      table.add({name, shape, bytesText(bytes), formatv("{0:f1} %", share).str(), steps});
    };
    for (auto [i, value] : llvm::enumerate(alive.values)) {
      if (i >= shown) {
        rest += value.bytes;
        continue;
      }
      row(value.name, value.shape, value.bytes, formatv("{0} to {1}", value.firstStep, value.lastStep));
    }
    if (rest)
      row(formatv("{0} others", alive.values.size() - shown), "", rest, "");
    table.printHtml(out);
    out << "</details>\n";
  }

  const fb::Plan &plan;
  ProgramFacts facts;
  AliveFacts alive;
  llvm::raw_ostream &out;
  uint64_t arena = 0, rows = 0;
};

} // namespace

void writeMemory(const PageFacts &facts, llvm::raw_ostream &out) {
  writeParts(facts, out);
  if (facts.program)
    ArenaMap(facts, out).print();
}

} // namespace mtc
