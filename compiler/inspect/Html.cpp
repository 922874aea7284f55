// SPDX-License-Identifier: Apache-2.0
//
// A page for a browser: no script, no style and no picture comes from elsewhere, and names of the plan are text only.
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/HtmlText.h"
#include "compiler/inspect/Inspect.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>
#include <set>

namespace mtc {

namespace fb = ::mt::plan;

std::string htmlText(llvm::StringRef text) {
  std::string html;
  for (char c : llvm::json::fixUTF8(text))
    switch (c) {
    case '&':
      html += "&amp;";
      break;
    case '<':
      html += "&lt;";
      break;
    case '>':
      html += "&gt;";
      break;
    case '"':
      html += "&quot;";
      break;
    case '\'':
      html += "&#39;";
      break;
    default:
      html += c;
    }
  return html;
}

namespace {

std::string pixels(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f", value);
  return text;
}

std::string escaped(const flatbuffers::String *text) {
  return text ? htmlText(llvm::StringRef(text->data(), text->size())) : "";
}

constexpr const char *style = R"(body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}
table{border-collapse:collapse;margin:1em 0}th,td{padding:2px 10px;border-bottom:1px solid #ddd;text-align:left}
td.n{text-align:right;font-variant-numeric:tabular-nums}th{background:#f4f4f4;position:sticky;top:0}
svg{border:1px solid #ccc;background:#fcfcfc;max-width:100%;height:auto}svg text{font:10px system-ui,sans-serif}
details{margin:.5em 0}summary{cursor:pointer;font-weight:bold}.bar{background:#4a7db8;height:10px;display:inline-block}
)";

// A color that a name always has.
std::string colorOf(llvm::StringRef name) {
  uint32_t hash = 2166136261u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return "hsl(" + std::to_string(hash % 360) + ",55%," + std::to_string(55 + hash / 360 % 20) + "%)";
}

class HtmlPrinter {
public:
  HtmlPrinter(const mtrun::PlanFileView &view, llvm::raw_ostream &out) : view(view), plan(*view.tables), out(out) {}

  void print() {
    std::string model = escaped(plan.model());
    out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
           "http-equiv=\"Content-Security-Policy\" "
           "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>"
        << model << "</title>\n<style>" << style << "</style></head><body>\n<h1>" << model << "</h1>\n<p>Batch "
        << plan.batch() << ", " << plan.shards() << " shards of " << plan.shard_rows() << " rows, mode "
        << (plan.fast() ? "fast" : "exact") << ", precision " << escaped(plan.precision()) << ", seed " << plan.seed()
        << "; format " << plan.version() << ", made by " << escaped(plan.producer()) << ", "
        << bytesText(view.file.size()) << ".</p>\n";
    devices();
    variables();
    kernels();
    for (const fb::Program *program : each(plan.programs()))
      this->program(factsOf(*program));
    out << "</body></html>\n";
  }

private:
  void head(std::initializer_list<const char *> names) {
    out << "<table><tr>";
    for (const char *name : names)
      out << "<th>" << name << "</th>";
    out << "</tr>\n";
  }
  void number(uint64_t value) { out << "<td class=\"n\">" << value << "</td>"; }
  void word(const std::string &html) { out << "<td>" << html << "</td>"; }

  void devices() {
    out << "<h2>Memory of a device</h2>\n";
    head({"shards", "peak", "liveness bound"});
    uint32_t variant = 0;
    for (uint32_t shards = 1; shards <= plan.shards(); shards *= 2, ++variant) {
      out << "<tr>";
      number(shards);
      word(bytesText(mtrun::deviceMemory(plan, variant).bytes()));
      word(bytesText(boundBytes(plan, variant)));
      out << "</tr>\n";
    }
    out << "</table>\n";
  }

  void variables() {
    static constexpr const char *kinds[] = {"trainable", "non-trainable", "slot"};
    out << "<details><summary>Variables, " << bytesText(plan.variables_bytes()) << "</summary>\n";
    head({"name", "shape", "kind", "bytes"});
    for (const fb::Variable *variable : each(plan.variables())) {
      std::string shape;
      for (int64_t size : each(variable->shape()))
        shape += (shape.empty() ? "" : " x ") + std::to_string(size);
      out << "<tr>";
      word(escaped(variable->name()));
      word(shape);
      word(kinds[static_cast<int>(variable->kind())]);
      number(variable->size());
      out << "</tr>\n";
    }
    out << "</table></details>\n";
  }

  // Of train_step at batch B on one device, the most FLOPs first; of kernels that it does not launch, none.
  void kernels() {
    std::map<int32_t, LaunchCost> costs;
    std::map<int32_t, uint64_t> launches;
    uint64_t most = 1;
    for (const fb::Program *program : each(plan.programs()))
      for (const fb::Step *step : each(program->steps()))
        if (step->kernel() >= 0 && program->name()->string_view() == "train_step") {
          LaunchCost cost = costOf(plan, *step, plan.batch());
          costs[step->kernel()].flops += cost.flops;
          costs[step->kernel()].bytes += cost.bytes;
          ++launches[step->kernel()];
          most = std::max(most, costs[step->kernel()].flops);
        }
    std::vector<int32_t> order;
    for (size_t i = 0; i < each(plan.kernels()).size(); ++i)
      order.push_back(static_cast<int32_t>(i));
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return costs[a].flops > costs[b].flops; });
    out << "<details open><summary>Kernels, by their FLOPs in train_step</summary>\n";
    head({"name", "kind", "launches", "FLOP", "bytes", ""});
    for (int32_t index : order) {
      const fb::Kernel &kernel = *plan.kernels()->Get(static_cast<uint32_t>(index));
      out << "<tr>";
      word(escaped(kernel.name()));
      word(llvm::StringRef(EnumNameKernelKind(kernel.kind())).lower());
      number(launches[index]);
      word(flopsText(costs[index].flops));
      word(bytesText(costs[index].bytes));
      out << "<td><span class=\"bar\" style=\"width:" << 200 * (costs[index].flops / 1024) / (most / 1024 + 1)
          << "px\"></span></td></tr>\n";
    }
    out << "</table></details>\n";
  }

  void program(const ProgramFacts &facts) {
    out << "<h2>Program " << escaped(facts.program->name()) << "</h2>\n";
    graph(facts);
    schedule(facts);
    memory(facts);
  }

  std::string layerOf(const fb::Step &step) const {
    return step.layer() < 0 ? "" : escaped(plan.layers()->Get(static_cast<uint32_t>(step.layer())));
  }
  std::string nameOf(const fb::Step &step) const {
    return step.kernel() < 0 ? "all-reduce " + std::to_string(step.collective())
                             : escaped(plan.kernels()->Get(static_cast<uint32_t>(step.kernel()))->name());
  }

  // Which earlier steps made what a step reads. A buffer is one value: the first step that touches it makes it.
  std::vector<std::set<size_t>> makersOf(const ProgramFacts &facts) const {
    const fb::Program &program = *facts.program;
    std::vector<std::set<size_t>> makers(facts.phases.size());
    std::vector<int64_t> first(facts.lifetimes.size(), -1);
    std::map<int64_t, std::set<size_t>> partials; // of each collective
    for (size_t i = 0; i < facts.phases.size(); ++i) {
      const fb::Step &step = *program.steps()->Get(static_cast<uint32_t>(i));
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

  // A box a step, below what it reads.
  void graph(const ProgramFacts &facts) {
    constexpr int width = 190, height = 34, gapX = 14, gapY = 26;
    std::vector<std::set<size_t>> makers = makersOf(facts);
    std::vector<int> depth(makers.size()), column(makers.size());
    std::map<int, int> used; // boxes of a row
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
    out << "<details open><summary>Graph: " << makers.size()
        << " steps</summary>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << 20 + columns * (width + gapX)
        << "\" height=\"" << 20 + rows * (height + gapY) << "\">\n";
    for (size_t i = 0; i < makers.size(); ++i)
      for (size_t maker : makers[i])
        out << "<line x1=\"" << x(maker) + width / 2 << "\" y1=\"" << y(maker) + height << "\" x2=\""
            << x(i) + width / 2 << "\" y2=\"" << y(i) << "\" stroke=\"#999\"/>\n";
    for (size_t i = 0; i < makers.size(); ++i) {
      const fb::Step &step = *facts.program->steps()->Get(static_cast<uint32_t>(i));
      std::string layer = layerOf(step), name = nameOf(step);
      out << "<g><title>step " << i << ": " << name << (layer.empty() ? "" : ", layer " + layer) << "</title><rect x=\""
          << x(i) << "\" y=\"" << y(i) << "\" width=\"" << width << "\" height=\"" << height << "\" rx=\"4\" fill=\""
          << colorOf(layer.empty() ? name : layer) << "\"/><text x=\"" << x(i) + 6 << "\" y=\"" << y(i) + 14 << "\">"
          << shortened(step.kernel() < 0 ? name : plan.kernels()->Get(step.kernel())->name()->str())
          << "</text><text x=\"" << x(i) + 6 << "\" y=\"" << y(i) + 27 << "\">"
          << (step.layer() < 0 ? "" : shortened(plan.layers()->Get(step.layer())->str())) << "</text></g>\n";
    }
    out << "</svg></details>\n";
  }

  // What fits a box; of the raw name, so that no escape is cut.
  static std::string shortened(llvm::StringRef name) {
    return name.size() <= 32 ? htmlText(name) : htmlText(name.take_front(30)) + "…";
  }

  void schedule(const ProgramFacts &facts) {
    out << "<details><summary>Schedule</summary>\n";
    head({"step", "phase", "waits for", "what", "layer", "FLOP", "bytes"});
    for (size_t i = 0; i < facts.phases.size(); ++i) {
      const fb::Step &step = *facts.program->steps()->Get(static_cast<uint32_t>(i));
      LaunchCost cost = costOf(plan, step, plan.batch());
      out << "<tr>";
      number(i);
      number(static_cast<uint64_t>(facts.phases[i]));
      word(step.kernel() < 0 ? "all" : llvm::StringRef(EnumNameWait(step.wait())).lower());
      word(nameOf(step));
      word(layerOf(step));
      number(cost.flops);
      number(step.kernel() < 0 ? step.partial_bytes() : cost.bytes);
      out << "</tr>\n";
    }
    out << "</table></details>\n";
  }

  // The arena of a device with all shards: steps to the right, offsets downwards.
  void memory(const ProgramFacts &facts) {
    constexpr int width = 1000, height = 420;
    const fb::Program &program = *facts.program;
    uint32_t variant = program.variants()->size() - 1;
    uint64_t arena = program.variants()->Get(variant)->arena_bytes(), rows = plan.shard_rows() << variant;
    if (arena == 0 || facts.phases.empty())
      return;
    out << "<details open><summary>Arena of a device with " << plan.shards() << " shards: " << bytesText(arena)
        << ", bound " << bytesText(program.variants()->Get(variant)->bound_bytes())
        << "; steps to the right, addresses downwards</summary>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
        << width << "\" height=\"" << height << "\">\n";
    double step = static_cast<double>(width) / static_cast<double>(facts.phases.size()),
           byte = static_cast<double>(height) / static_cast<double>(arena);
    for (size_t i = 0; i < facts.lifetimes.size(); ++i) {
      const fb::Buffer &buffer = *program.buffers()->Get(static_cast<uint32_t>(i));
      const Lifetime &life = facts.lifetimes[i];
      if (buffer.space() != fb::Space::Arena || !life.used())
        continue;
      uint64_t bytes = buffer.fixed_bytes() + buffer.row_bytes() * rows;
      out << "<rect x=\"" << pixels(static_cast<double>(life.firstStep) * step) << "\" y=\""
          << pixels(static_cast<double>(buffer.offset()->Get(variant)) * byte) << "\" width=\""
          << pixels(static_cast<double>(life.lastStep - life.firstStep + 1) * step) << "\" height=\""
          << pixels(std::max(0.5, static_cast<double>(bytes) * byte)) << "\" fill=\"" << colorOf(buffer.name()->str())
          << "\" stroke=\"#fff\" stroke-width=\".3\"><title>" << escaped(buffer.name()) << ": " << bytesText(bytes)
          << ", steps " << life.firstStep << " to " << life.lastStep << "</title></rect>\n";
    }
    out << "</svg></details>\n";
  }

  const mtrun::PlanFileView &view;
  const fb::Plan &plan;
  llvm::raw_ostream &out;
};

} // namespace

std::string inspectHtml(const mtrun::PlanFileView &view) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  HtmlPrinter(view, stream).print();
  return result;
}

} // namespace mtc
