// SPDX-License-Identifier: Apache-2.0
//
// A table that can be printed as text, as a table of a page, or as JSON.
#ifndef COMPILER_INSPECT_TABLE_H
#define COMPILER_INSPECT_TABLE_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <concepts>
#include <functional>
#include <string>
#include <vector>

namespace mtc {

class Table;

// 1234567 as "1,234,567".
std::string grouped(uint64_t number);

// One cell of a table, with a form for each printer.
struct Cell {
  std::string text, html;
  std::function<void(llvm::json::OStream &)> json; // empty: the row has no such key

  Cell() = default;
  Cell(std::string text);
  Cell(const char *text) : Cell(std::string(text)) {}
  Cell(llvm::json::Value value) : json([value](llvm::json::OStream &out) { out.value(value); }) {}
  Cell(bool flag) : Cell(llvm::json::Value(flag)) {}
  Cell(double number) : Cell(llvm::json::Value(number)) {}
  Cell(std::integral auto number) : Cell(llvm::json::Value(number)) {
    text = std::to_string(number);
    html = grouped(static_cast<uint64_t>(number));
  }
  // An array of objects.
  Cell(const Table &table);
  static Cell ofHtml(std::string html);
};

class Table {
public:
  // "KEY|TEXT|HTML;...": the names of each column for JSON, for text and for a page. A printer leaves out a column
  // without a name for it; "_" is an empty name. A page has "#NAME" at the right, and "NAME.k" in cells of the class k.
  explicit Table(llvm::StringRef columns);
  // Adds a row; cells that are missing at its end are empty.
  void add(std::vector<Cell> row) {
    row.resize(columns.size());
    rows.push_back(std::move(row));
  }

  // Prints the rows in columns. Columns of numbers are aligned at the right.
  void printText(llvm::raw_ostream &out) const;
  void printHtml(llvm::raw_ostream &out) const;
  // The elements of an array: an object for each row.
  void printJson(llvm::json::OStream &out) const;

private:
  struct Column {
    std::string key, text, html, style;
    bool inText, inHtml;
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

} // namespace mtc

#endif
