// SPDX-License-Identifier: Apache-2.0
//
// The records of a CSV file as RFC 4180 describes them, and as spreadsheets of other languages write them.
#pragma once

#include "runtime/support/status.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

// Reads one record after the other. A cell in double quotes may hold separators, line ends and doubled quotes; spaces
// around a cell do not count; empty lines are passed over, and those of separators alone. Lines end with a line feed,
// or, where the file has none, with a carriage return. The separator is a semicolon or a tab if the first line has one
// outside of quotes, else a comma; or what a first line "sep=;" says.
class CsvRecords {
public:
  // `text` must outlive the records; a byte order mark is passed over. `where` is for messages.
  CsvRecords(std::string_view text, std::string where);

  // The cells of the next record, valid until the next call; none at the end. MT_INVALID: a quote that does not end, or
  // UTF-16, with its mark or without.
  Status next(std::vector<std::string_view> &cells);
  size_t line() const { return line_; } // on which the record that next() gave begins, from 1
  // "d.csv, line 3: "
  std::string at() const { return where_ + ", line " + std::to_string(line_) + ": "; }
  // A whole cell as a number; beside semicolons 0,5 is one half.
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
  std::deque<std::string> unquoted_; // cells whose text is not as in the file
};

} // namespace mtrun
