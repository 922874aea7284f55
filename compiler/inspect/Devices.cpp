// SPDX-License-Identifier: Apache-2.0
//
// Prints, as text and as a page, which rows of a batch each device computes, how much memory it needs, and lists the
// variables.
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Page.h"
#include "runtime/support/optimizer_parts.h"
#include "runtime/support/subtrees.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstring>

namespace mtc {

namespace fb = ::mt::plan;
using mtrun::htmlText;

namespace {

// The part of a full batch that one device computes.
struct Part {
  uint64_t firstShard, shards, firstRow, rows, bytes;
  uint64_t dividedBytes; // memory with --shard-optimizer; 0: the optimizer cannot be divided, or there is one device
};

std::vector<Part> partsOf(const fb::Plan &plan, uint32_t devices) {
  std::vector<Part> parts;
  mtrun::OptimizerParts optimizer;
  bool divides = devices > 1 && mtrun::divideOptimizer(plan, static_cast<int>(devices), optimizer).ok();
  uint64_t first = 0;
  for (uint64_t shards : mtrun::splitShards(plan.shards(), devices)) {
    uint64_t begin = std::min(first * plan.shard_rows(), plan.batch());
    uint64_t end = std::min((first + shards) * plan.shard_rows(), plan.batch());
    auto variant = static_cast<uint32_t>(llvm::countr_zero(shards));
    mtrun::DeviceMemory memory = mtrun::deviceMemory(plan, variant);
    parts.push_back({first, shards, begin, end - begin, memory.bytes(), 0});
    if (divides) {
      memory.variables = mtrun::placeVariables(plan, optimizer, static_cast<int>(parts.size()) - 1).bytes;
      parts.back().dividedBytes = memory.bytes();
    }
    first += shards;
  }
  return parts;
}

std::string span(uint64_t first, uint64_t count) {
  if (count == 0)
    return "none";
  return count == 1 ? std::to_string(first) : llvm::formatv("{0} to {1}", first, first + count - 1).str();
}

// Centers a word in `width` characters, and cuts it if it is too long.
std::string centered(std::string word, size_t width) {
  word.resize(std::min(word.size(), width));
  size_t left = (width - word.size()) / 2;
  return std::string(left, ' ') + word + std::string(width - word.size() - left, ' ');
}

// Draws a box per device, as wide as the device's share of the shards.
void drawBoxes(const std::vector<Part> &parts, uint64_t shards, llvm::raw_ostream &out) {
  constexpr uint64_t columns = 64;
  uint64_t each = std::max<uint64_t>(columns / shards, 1), group = std::max<uint64_t>(shards / columns, 1);
  std::string border = "  +", names = "  |", rows = "  |";
  for (size_t i = 0; i < parts.size(); ++i) {
    uint64_t width = std::max<uint64_t>(parts[i].shards * each / group, 2) - 1;
    border += std::string(width, '-') + "+";
    names += centered(llvm::formatv(width < 8 ? "{0}" : "device {0}", i), width) + "|";
    rows +=
        centered(llvm::formatv(width < 12 ? "{0}" : "rows {0}", span(parts[i].firstRow, parts[i].rows)), width) + "|";
  }
  out << border << "\n" << names << "\n" << rows << "\n" << border << "\n";
}

std::string headline(const fb::Plan &plan, uint32_t devices) {
  return llvm::formatv("{0} on {1} {2}: a batch of {3} rows in {4} shards of {5}", plan.model()->str(), devices,
                       devices == 1 ? "device" : "devices", plan.batch(), plan.shards(), plan.shard_rows());
}

std::string variablesLine(const fb::Plan &plan) {
  return llvm::formatv("every device holds all {0} variables, {1}", plan.variables()->size(),
                       bytesText(plan.variables_bytes()));
}

} // namespace

std::string inspectDevices(const mtrun::PlanFileView &view, uint32_t devices) {
  const fb::Plan &plan = *view.tables;
  std::vector<Part> parts = partsOf(plan, devices);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << headline(plan, devices) << "\n\n";
  drawBoxes(parts, plan.shards(), out);
  out << "\n";
  for (size_t i = 0; i < parts.size(); ++i)
    out << llvm::formatv("  device {0}: shards {1}, rows {2}, memory {3}{4}\n", i,
                         span(parts[i].firstShard, parts[i].shards), span(parts[i].firstRow, parts[i].rows),
                         bytesText(parts[i].bytes),
                         parts[i].dividedBytes ? ", with --shard-optimizer " + bytesText(parts[i].dividedBytes) : "");
  if (mtrun::OptimizerParts none; devices > 1)
    if (mtrun::Status status = mtrun::divideOptimizer(plan, static_cast<int>(devices), none); !status.ok())
      out << "\n--shard-optimizer: " << status.message() << "\n";
  out << "\n" << variablesLine(plan) << ":\n";
  for (const fb::Variable *variable : each(plan.variables()))
    out << "  " << variable->name()->str() << ", " << bytesText(variable->size()) << "\n";
  return text;
}

// Writes the box of one device, without its labels if too many devices share the row.
static void writeBox(const Part &part, size_t device, size_t devices, llvm::raw_ostream &out) {
  constexpr size_t mostWithWord = 4, mostWithRows = 16;
  std::string rows = "rows " + span(part.firstRow, part.rows);
  out << llvm::formatv("<span class=\"box{0}\" style=\"flex:{1} 1 0\" title=\"device {2}: shards {3}, {4}, {5}\">",
                       devices > mostWithRows ? " t" : "", std::max<uint64_t>(part.shards, 1), device,
                       span(part.firstShard, part.shards), rows, bytesText(part.bytes));
  if (part.rows > 0 && devices <= mostWithRows)
    out << "<span" << (devices > mostWithWord ? " class=\"o\"" : "") << ">" << part.firstRow << "–"
        << part.firstRow + part.rows - 1 << "</span>"; // for narrow screens: the rows without the word
  out << "</span>";
}

void writeDevices(const PageFacts &facts, llvm::raw_ostream &out) {
  const fb::Plan &plan = facts.plan;
  constexpr uint32_t all = 8; // numbers of devices up to 8 have a row each, larger ones only if they are powers of two
  out << "<h2 id=\"devices\">Devices</h2>\n<p class=\"muted\">Which of the " << plan.batch()
      << " rows of a batch each device computes, on 1 to " << plan.shards() << " devices (the bits are the same). "
      << htmlText("Every" + variablesLine(plan).substr(strlen("every")))
      << "; CPU devices share one copy, unless <code>--private-variables</code> is given. Divided: the memory "
      << "with <code>--shard-optimizer</code>. Bytes received: by the "
      << "all-reduces of a step, on the device that receives most, if each device has its own copy.</p>\n"
      << "<div class=\"devices\"><div class=\"row head\"><span class=\"num\">N</span><span>rows of device 0, 1, "
         "...</span><span class=\"num o\">"
      << "largest share</span><span class=\"num\">memory</span><span class=\"num o\">divided</span>"
      << "<span class=\"num o\">received</span></div>\n";
  for (uint32_t n = 1; n <= plan.shards(); n = n < all ? n + 1 : 2 * n) {
    std::vector<Part> parts = partsOf(plan, n);
    uint64_t rows = 0, memory = 0, divided = 0, received = 0;
    for (const Part &part : parts) {
      rows = std::max(rows, part.rows);
      memory = std::max(memory, part.bytes);
      divided = std::max(divided, part.dividedBytes);
    }
    for (const fb::Step *step : each(facts.program && n > 1 ? facts.program->steps() : nullptr))
      if (step->kernel() < 0) {
        BytesMoved moved = bytesMoved(plan, n, step->partial_bytes(), plan.batch());
        received += *std::max_element(moved.received.begin(), moved.received.end());
      }
    out << "<div class=\"row\"><span class=\"num\">" << n << "</span><span class=\"boxes\">";
    for (size_t i = 0; i < parts.size(); ++i)
      writeBox(parts[i], i, parts.size(), out);
    out << llvm::formatv("</span><span class=\"num o\">{0:f1} %</span><span class=\"num\">{1}</span><span class=\"num "
                         "o\">{2}</span><span class=\"num o\">{3}</span></div>\n",
                         100 * static_cast<double>(rows) / static_cast<double>(plan.batch()), bytesText(memory),
                         divided ? bytesText(divided) : "", n > 1 ? bytesText(received) : "");
  }
  out << "</div>\n";
}

std::string inspectDevicesHtml(const mtrun::PlanFileView &view, uint32_t devices) {
  const fb::Plan &plan = *view.tables;
  std::string html;
  llvm::raw_string_ostream out(html);
  out << mtrun::pageHead(plan.model()->str(),
                         ".batch{display:flex;gap:4px}.device{border:1px solid var(--a);padding:8px;min-width:0;"
                         "overflow-wrap:anywhere}.rows{background:var(--soft);padding:4px}.variables{margin-top:4px;"
                         "max-height:40em;overflow:auto;font-size:13px}")
      << "<h1>" << htmlText(headline(plan, devices)) << "</h1>\n<p>" << htmlText(variablesLine(plan))
      << "; the rows are divided.</p>\n<div class=\"batch\">\n";
  std::vector<Part> parts = partsOf(plan, devices);
  for (size_t i = 0; i < parts.size(); ++i) {
    out << "<div class=\"device\" style=\"flex:" << parts[i].shards << "\"><b>device " << i << "</b>, "
        << bytesText(parts[i].bytes) << "<div class=\"rows\">rows " << span(parts[i].firstRow, parts[i].rows)
        << "<br>shards " << span(parts[i].firstShard, parts[i].shards) << "</div><div class=\"variables\">";
    for (const fb::Variable *variable : each(plan.variables()))
      out << htmlText(variable->name()->str()) << ", " << bytesText(variable->size()) << "<br>";
    out << "</div></div>\n";
  }
  out << "</div>\n" << mtrun::pageEnd;
  return html;
}

} // namespace mtc
