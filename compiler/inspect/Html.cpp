// SPDX-License-Identifier: Apache-2.0
//
// Writes a plan as one page. The page loads no script, style or picture, and escapes all names of the plan.
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Page.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;

const char *const planStyle = R"(
.bar{display:block;height:12px;background:var(--soft);min-width:40px}
.bar>i{display:block;height:100%;min-width:1px;background:color-mix(in srgb,var(--a) 45%,var(--bg))}
.bar i i{display:block;height:100%;background:var(--a)}.legend span{display:inline-block;margin-right:16px}
.legend i,.key{display:inline-block;width:10px;height:10px;margin-right:6px}.a{--k:var(--a)}.b{--k:var(--b)}
.c{--k:var(--c)}.d{--k:var(--d)}.e{--k:var(--e)}.f{--k:var(--f)}.g{--k:var(--g)}.m{--k:var(--muted)}
.legend i,.key,.part{background:var(--k)}
.row{display:grid;gap:2px 14px;align-items:center;padding:5px 0;border-bottom:1px solid var(--line)}
.head{color:var(--muted);font-weight:600}.row>*{min-width:0}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.name{overflow-wrap:anywhere}
.layers summary .name::before{content:"\25b8\a0";color:var(--muted)}
.layers details[open]>summary .name::before{content:"\25be\a0"}.layers details[open]>summary{background:var(--soft)}
.layers .row{grid-template-columns:minmax(170px,3fr) minmax(100px,2fr) 96px 96px 84px minmax(80px,2fr)}
.timed .row{grid-template-columns:minmax(150px,3fr) minmax(90px,2fr) 96px 96px 76px 84px 60px 72px minmax(70px,2fr)}
.layers .inside{margin:0 0 12px 18px}.inside table{font-size:13px}.wide td{overflow-wrap:break-word}
.ops{min-width:190px}.k{white-space:nowrap}.devices .row{grid-template-columns:34px minmax(0,1fr) 100px 92px 92px 92px}
.boxes{display:flex;gap:3px}.box{border:1px solid var(--a);background:color-mix(in srgb,var(--a) 16%,var(--bg));
border-radius:3px;padding:1px 5px;min-width:3px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;
font-size:12px;height:22px;text-align:center}.box.t{padding:1px 0}
.stack{display:flex;height:16px;background:var(--soft)}.part{height:100%;min-width:0}
.parts .row{grid-template-columns:60px minmax(0,1fr) 88px 104px}
.map rect,.graph rect{stroke:var(--bg);stroke-width:.4}.map rect{fill:var(--k);opacity:.75}
.map .peak{fill:none;stroke:var(--fg);stroke-width:1.5;opacity:1}
.map .live{fill:none;stroke:var(--fg);stroke-width:1.2}.map .in{fill:var(--bg);font-size:11px}
.map .grid,.graph line{stroke:var(--line)}.map{min-width:640px}.graph{max-width:none;width:auto}
.graph rect{fill:color-mix(in srgb,var(--k) 30%,var(--bg));stroke:var(--k)}svg.graph text{fill:var(--fg)}
.fold{margin:8px 0}.fold>summary{font-weight:600}.verdict{font-size:17px;margin:12px 0}@media(max-width:760px){body{
padding:14px}.o{display:none}.layers .row{grid-template-columns:minmax(0,3fr) 78px minmax(50px,1fr)}.timed .row{
grid-template-columns:minmax(0,3fr) 78px 44px minmax(50px,1fr)}.devices .row{
grid-template-columns:26px minmax(0,1fr) 84px}.parts .row{grid-template-columns:52px minmax(0,1fr) 80px}
.layers .inside{margin-left:0}}
)";

std::string html(const flatbuffers::String *text) {
  return text ? mtrun::htmlText(std::string_view(text->data(), text->size())) : "";
}

Cell operandsCell(const fb::Plan &plan, const fb::Program &program, const fb::Step &step) {
  std::string operands = mtrun::htmlText(operandsOf(plan, program, step));
  for (size_t at = 0; (at = operands.find("?×", at)) != std::string::npos; ++at)
    operands.insert(at + 1, "&#8288;"); // no line ends inside a shape
  return Cell::ofHtml(operands);
}

Cell launchCell(const fb::Plan &plan, const fb::Step &step) {
  Cell cell(kernelName(plan, step));
  cell.html = std::string("<span class=\"key ") + colorOf(kindName(plan, step)) + "\"></span>" + cell.html;
  return cell;
}

char colorOf(llvm::StringRef kind) {
  return llvm::StringSwitch<char>(kind)
      .Cases({"matmul", "conv", "attention"}, 'a')
      .Cases({"matmul_wgrad", "conv_wgrad", "attention_gradient"}, 'd')
      .Case("elementwise", 'b')
      .Case("rows", 'c')
      .Case("reduce", 'f')
      .Case("all-reduce", 'e')
      .Default('g');
}

std::string bar(double part, double inner) {
  std::string text = formatv("<span class=\"bar\"><i style=\"width:{0:f1}%\">", std::clamp(100 * part, 0.0, 100.0));
  if (inner > 0)
    text += formatv("<i style=\"width:{0:f1}%\"></i>", std::min(100 * inner, 100.0));
  return text + "</i></span>";
}

PageFacts::PageFacts(const mtrun::PlanFileView &view)
    : view(view), plan(*view.tables), program(mainProgram(*view.tables)) {
  if (program)
    layers = layersOf(plan, *program);
}

static void tile(llvm::raw_ostream &out, const std::string &value, const std::string &what) {
  out << "<div class=\"tile\"><b>" << value << "</b>" << what << "</div>\n";
}

static void writeTiles(const PageFacts &facts, llvm::raw_ostream &out) {
  const fb::Plan &plan = facts.plan;
  uint64_t parameters = 0, reduces = 0, reduced = 0, launches = 0;
  LaunchCost cost;
  for (const LayerFacts &layer : facts.layers) {
    parameters += layer.parameters;
    launches += layer.steps.size();
    cost.flops += layer.cost.flops;
    cost.bytes += layer.cost.bytes;
  }
  for (const fb::Step *step : each(facts.program->steps()))
    if (step->kernel() < 0) {
      ++reduces;
      reduced += step->partial_bytes();
    }
  auto last = static_cast<uint32_t>(llvm::countr_zero(plan.shards()));
  out << "<div class=\"tiles\">";
  tile(out, grouped(parameters), "parameters");
  tile(out, flopsText(cost.flops), "per step");
  tile(out, bytesText(cost.bytes), "moved by kernels per step, at least");
  tile(out, grouped(launches), "launches per step");
  tile(out, grouped(reduces), "all-reduces per step, of " + bytesText(reduced));
  tile(out, bytesText(mtrun::deviceMemory(plan, last).bytes()), "memory of a lone device");
  if (facts.measured)
    tile(out, formatv("{0:f2} ms", facts.measured->stepUs / 1e3), "a step, measured");
  out << "</div>\n";
}

static void writePage(const PageFacts &facts, llvm::raw_ostream &out) {
  const fb::Plan &plan = facts.plan;
  std::string model = plan.model() ? plan.model()->str() : "";
  out << mtrun::pageHead(model, planStyle) << "<h1>" << mtrun::htmlText(model) << "</h1>\n<p class=\"muted\">Batch "
      << plan.batch() << ", " << plan.shards() << " shards of " << plan.shard_rows() << " rows, mode "
      << (plan.fast() ? "fast" : "exact") << ", precision " << (plan.precision() ? html(plan.precision()) : "f32")
      << ", seed " << plan.seed() << (plan.lengths() ? "; lengths " + lengthsText(plan) : "") << "; format "
      << plan.version() << ", made by " << html(plan.producer()) << ", " << bytesText(facts.view.file.size())
      << ".</p>\n";
  if (facts.measured)
    out << "<p class=\"verdict\">" << mtrun::htmlText(verdict(plan, *facts.program, facts.layers, *facts.measured))
        << "</p>\n";
  if (facts.program) {
    writeTiles(facts, out);
    writeLayers(facts, out);
  }
  writeDevices(facts, out);
  writeMemory(facts, out);
  writeDetails(facts, out);
  out << mtrun::pageEnd;
}

std::string inspectHtml(const mtrun::PlanFileView &view, const Measured *measured) {
  PageFacts facts(view);
  if (measured)
    facts.measured = *measured;
  std::string result;
  llvm::raw_string_ostream stream(result);
  writePage(facts, stream);
  return result;
}

} // namespace mtc
