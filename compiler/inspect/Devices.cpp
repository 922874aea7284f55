// SPDX-License-Identifier: Apache-2.0
//
// Which device works on which rows of a batch, and what it holds: as text, and as a page.
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/HtmlText.h"
#include "compiler/inspect/Inspect.h"
#include "runtime/support/subtrees.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace mtc {

namespace fb = ::mt::plan;

namespace {

// One device's part of a full batch.
struct Part {
  uint64_t firstShard, shards, firstRow, rows, bytes;
};

std::vector<Part> partsOf(const fb::Plan &plan, uint32_t devices) {
  std::vector<Part> parts;
  uint64_t first = 0;
  for (uint64_t shards : mtrun::splitShards(plan.shards(), devices)) {
    uint64_t begin = std::min(first * plan.shard_rows(), plan.batch());
    uint64_t end = std::min((first + shards) * plan.shard_rows(), plan.batch());
    auto variant = static_cast<uint32_t>(llvm::countr_zero(shards));
    parts.push_back({first, shards, begin, end - begin, mtrun::deviceMemory(plan, variant).bytes()});
    first += shards;
  }
  return parts;
}

std::string span(uint64_t first, uint64_t count) {
  if (count == 0)
    return "none";
  return count == 1 ? std::to_string(first) : llvm::formatv("{0} to {1}", first, first + count - 1).str();
}

// A word in the middle of `width` characters, cut if there is no room.
std::string centered(std::string word, size_t width) {
  word.resize(std::min(word.size(), width));
  size_t left = (width - word.size()) / 2;
  return std::string(left, ' ') + word + std::string(width - word.size() - left, ' ');
}

// A box for each device, as wide as its share of the shards.
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
    out << llvm::formatv("  device {0}: shards {1}, rows {2}, memory {3}\n", i,
                         span(parts[i].firstShard, parts[i].shards), span(parts[i].firstRow, parts[i].rows),
                         bytesText(parts[i].bytes));
  out << "\n" << variablesLine(plan) << ":\n";
  for (const fb::Variable *variable : each(plan.variables()))
    out << "  " << variable->name()->str() << ", " << bytesText(variable->size()) << "\n";
  return text;
}

std::string inspectDevicesHtml(const mtrun::PlanFileView &view, uint32_t devices) {
  const fb::Plan &plan = *view.tables;
  std::string html;
  llvm::raw_string_ostream out(html);
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
         "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>"
      << htmlText(plan.model()->str()) << "</title>\n<style>body{font:14px system-ui,sans-serif;margin:2em;color:#222}"
      << ".batch{display:flex;gap:4px}.device{border:1px solid #4a7db8;background:#e8f0f8;padding:8px;min-width:0;"
      << "overflow-wrap:anywhere}.rows{background:#4a7db8;color:#fff;padding:4px}.variables{background:#fff;padding:"
         "4px;"
      << "margin-top:4px;max-height:40em;overflow:auto}</style></head><body>\n<h1>" << htmlText(headline(plan, devices))
      << "</h1>\n<p>" << htmlText(variablesLine(plan)) << "; the rows are divided.</p>\n<div class=\"batch\">\n";
  std::vector<Part> parts = partsOf(plan, devices);
  for (size_t i = 0; i < parts.size(); ++i) {
    out << "<div class=\"device\" style=\"flex:" << parts[i].shards << "\"><b>device " << i << "</b>, "
        << bytesText(parts[i].bytes) << "<div class=\"rows\">rows " << span(parts[i].firstRow, parts[i].rows)
        << "<br>shards " << span(parts[i].firstShard, parts[i].shards) << "</div><div class=\"variables\">";
    for (const fb::Variable *variable : each(plan.variables()))
      out << htmlText(variable->name()->str()) << ", " << bytesText(variable->size()) << "<br>";
    out << "</div></div>\n";
  }
  out << "</div>\n</body></html>\n";
  return html;
}

} // namespace mtc
