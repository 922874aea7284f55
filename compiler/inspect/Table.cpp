// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Table.h"

#include "runtime/support/html.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace mtc {

using llvm::StringRef;

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3)
    text.insert(at - 3, ",");
  return text;
}

// A file may hold any bytes in its names; JSON may not.
Cell::Cell(std::string given) : Cell(llvm::json::Value(llvm::json::fixUTF8(given))) {
  html = mtrun::htmlText(given);
  text = std::move(given);
}

Cell::Cell(const Table &table)
    : json([table](llvm::json::OStream &out) { out.array([&] { table.printJson(out); }); }) {}

Cell Cell::ofHtml(std::string html) {
  Cell cell;
  cell.html = std::move(html);
  return cell;
}

Table::Table(StringRef names) {
  for (StringRef column : llvm::split(names, ';')) {
    auto [key, others] = column.trim().split('|');
    auto [text, page] = others.split('|');
    auto [html, style] = page.starts_with("#") ? std::pair(page.drop_front(), StringRef("n")) : page.split('.');
    auto shown = [](StringRef name) { return name == "_" ? "" : name.str(); };
    columns.push_back({key.str(), shown(text), shown(html), style.str(), !text.empty(), !page.empty()});
  }
}

// Characters of UTF-8.
static size_t width(StringRef text) {
  return static_cast<size_t>(llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

void Table::printText(llvm::raw_ostream &out) const {
  std::vector<std::string> lines(rows.size() + 1, " ");
  for (auto [i, column] : llvm::enumerate(columns)) {
    if (!column.inText)
      continue;
    std::vector<std::string> texts = {column.text};
    for (const std::vector<Cell> &row : rows)
      texts.push_back(row[i].text);
    size_t widest = 0;
    for (const std::string &text : texts)
      widest = std::max(widest, width(text));
    bool number = !rows.empty() && llvm::all_of(llvm::drop_begin(texts), [](const std::string &text) {
      return text.empty() || text == "-" || llvm::isDigit(text[0]);
    });
    for (auto [line, text] : llvm::zip(lines, texts)) {
      std::string space(widest - width(text), ' ');
      line += " " + (number ? space + text : text + space) + " ";
    }
  }
  for (StringRef line : lines)
    out << line.rtrim() << "\n";
}

void Table::printHtml(llvm::raw_ostream &out) const {
  out << "<div class=\"wide\"><table><tr>";
  for (const Column &column : columns)
    if (column.inHtml)
      out << (column.style == "n" ? "<th class=\"n\">" : "<th>") << column.html << "</th>";
  out << "</tr>\n";
  for (const std::vector<Cell> &row : rows) {
    out << "<tr>";
    for (auto [column, cell] : llvm::zip(columns, row))
      if (column.inHtml && !column.style.empty() && (column.style == "n" || !cell.html.empty()))
        out << "<td class=\"" << column.style << "\">" << cell.html << "</td>";
      else if (column.inHtml)
        out << "<td>" << cell.html << "</td>";
    out << "</tr>\n";
  }
  out << "</table></div>";
}

void Table::printJson(llvm::json::OStream &out) const {
  for (const std::vector<Cell> &row : rows)
    out.object([&, &row = row] {
      for (auto [column, cell] : llvm::zip(columns, row))
        if (!column.key.empty() && cell.json) {
          out.attributeBegin(column.key);
          cell.json(out);
          out.attributeEnd();
        }
    });
}

} // namespace mtc
