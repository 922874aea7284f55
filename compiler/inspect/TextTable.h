// SPDX-License-Identifier: Apache-2.0
#ifndef COMPILER_INSPECT_TEXTTABLE_H
#define COMPILER_INSPECT_TEXTTABLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace mtc {

// A table printed in columns. Columns of numbers are aligned at the right.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> head) { rows.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  void print(llvm::raw_ostream &out) const {
    std::vector<size_t> widths(rows[0].size());
    std::vector<bool> numbers;
    for (const auto &row : rows)
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], width(row[i]));
    for (size_t i = 0; i < widths.size(); ++i)
      numbers.push_back(isNumber(i));
    for (const auto &row : rows) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i) {
        std::string space(widths[i] - width(row[i]), ' ');
        line += " " + (numbers[i] ? space + row[i] : row[i] + space) + " ";
      }
      out << llvm::StringRef(line).rtrim() << "\n";
    }
  }

private:
  // Number of UTF-8 characters.
  static size_t width(llvm::StringRef text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  bool isNumber(size_t column) const {
    return rows.size() > 1 && std::all_of(rows.begin() + 1, rows.end(), [&](const auto &row) {
             return column >= row.size() || row[column].empty() || row[column] == "-" ||
                    std::isdigit(static_cast<unsigned char>(row[column][0]));
           });
  }

  std::vector<std::vector<std::string>> rows;
};

} // namespace mtc

#endif
