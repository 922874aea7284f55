// SPDX-License-Identifier: Apache-2.0
//
// Reads the records of a CSV file (RFC 4180), and variants that spreadsheets write in other languages.
#pragma once

#include "runtime/support/status.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// A cell in double quotes may have separators, line ends and doubled quotes. Spaces around a cell are ignored. Empty
// lines and lines with only separators are skipped. Lines end with a line feed, or with a carriage return if the file
// has no line feed. The separator is a semicolon or a tab if the first line has one outside of quotes, or the character
// of a first line "sep=;", and otherwise a comma.
class CsvRecords {
public:
  // `text` must outlive the records; a byte order mark is skipped. `where` begins messages.
  CsvRecords(std::string_view text, std::string where);

  // Reads the cells of the next record, which are valid until the next call; empty at the end of the file. MT_INVALID:
  // a quote is not closed, or the text is UTF-16, with or without a byte order mark.
  Status next(std::vector<std::string_view> &cells);
  size_t line() const { return line_; }               // line on which the last record begins, from 1
  const std::string &where() const { return where_; } // the file, for messages
  // Returns the begin of a message, such as "d.csv, line 3: ".
  std::string at() const { return where_ + ", line " + std::to_string(line_) + ": "; }
  // Parses a whole cell as a number. If the separator is a semicolon, "0,5" is one half.
  bool number(std::string_view cell, double &value) const;

private:
  Status checkText() const;
  Status record(std::vector<std::string_view> &cells);
  Status quoted(std::string_view &cell);
  std::string_view plain();

  std::string_view rest_;
  std::string where_;
  char lineEnd_ = '\n', separator_ = ',';
  size_t line_ = 0, nextLine_ = 1;
  std::deque<std::string> unquoted_; // cells whose text differs from the bytes of the file
};

} // namespace mtrun
