// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/CsvRecords.h"

#include <algorithm>
#include <charconv>

namespace mtrun {

static char separatorOf(std::string_view text, char lineEnd) {
  bool quoted = false, tab = false;
  for (char c : text) {
    quoted ^= c == '"';
    if (!quoted && c == lineEnd)
      break;
    if (!quoted && c == ';')
      return ';';
    tab |= !quoted && c == '\t';
  }
  return tab ? '\t' : ',';
}

CsvRecords::CsvRecords(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) {
  if (rest_.starts_with("\xEF\xBB\xBF"))
    rest_.remove_prefix(3);
  if (rest_.find('\n') == std::string_view::npos)
    lineEnd_ = '\r';
  separator_ = separatorOf(rest_, lineEnd_);
  if (rest_.starts_with("sep=") && rest_.size() > 5 && (rest_[5] == '\n' || rest_[5] == '\r')) {
    separator_ = rest_[4];
    rest_.remove_prefix(5);
  }
}

// Reads a quoted cell; `rest_` is after the opening quote, and then after the closing quote.
Status CsvRecords::quoted(std::string_view &cell) {
  std::string *text = nullptr; // used if the cell has doubled quotes
  for (size_t begin = 0;;) {
    size_t end = rest_.find('"', begin);
    if (end == std::string_view::npos)
      return {MT_INVALID, at() + "expected a closing quote, found the end of the file"};
    bool doubled = end + 1 < rest_.size() && rest_[end + 1] == '"';
    if (doubled && !text)
      text = &unquoted_.emplace_back();
    if (text)
      text->append(rest_.substr(begin, end - begin + (doubled ? 1 : 0)));
    if (doubled) {
      begin = end + 2;
      continue;
    }
    cell = text ? std::string_view(*text) : rest_.substr(0, end);
    std::string_view inside = rest_.substr(0, end);
    nextLine_ += static_cast<size_t>(std::count(inside.begin(), inside.end(), lineEnd_));
    rest_.remove_prefix(end + 1);
    return {};
  }
}

std::string_view CsvRecords::plain() {
  const char separator = separator_, lineEnd = lineEnd_; // in registers
  const char *begin = rest_.data(), *last = begin + rest_.size(), *end = begin;
  while (end < last && *end != separator && *end != lineEnd)
    ++end;
  std::string_view cell(begin, static_cast<size_t>(end - begin));
  rest_.remove_prefix(cell.size());
  while (cell.ends_with(' ') || cell.ends_with('\r'))
    cell.remove_suffix(1);
  return cell;
}

// UTF-16 text has a zero byte in every ASCII letter; UTF-8 text has none.
Status CsvRecords::checkText() const {
  size_t zero = rest_.find('\0');
  bool mark = rest_.starts_with("\xFF\xFE") || rest_.starts_with("\xFE\xFF");
  if (mark || zero < 2)
    return {MT_INVALID, where_ + ": expected a text in UTF-8, found UTF-16; spreadsheets write \"CSV UTF-8\" too"};
  if (zero == std::string_view::npos)
    return {};
  auto line = 1 + std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(zero), lineEnd_);
  return {MT_INVALID, where_ + ", line " + std::to_string(line) + ": expected a text, found a byte of 0"};
}

Status CsvRecords::next(std::vector<std::string_view> &cells) {
  if (nextLine_ == 1)
    if (Status s = checkText(); !s.ok())
      return s;
  auto isEmpty = [](std::string_view cell) { return cell.empty(); };
  do {
    if (Status s = record(cells); !s.ok())
      return s;
  } while (cells.size() > 1 && std::all_of(cells.begin(), cells.end(), isEmpty));
  return {};
}

Status CsvRecords::record(std::vector<std::string_view> &cells) {
  cells.clear();
  if (!unquoted_.empty())
    unquoted_.clear();
  while (!rest_.empty() && (rest_[0] == '\n' || rest_[0] == '\r')) { // empty lines
    nextLine_ += rest_[0] == lineEnd_;
    rest_.remove_prefix(1);
  }
  line_ = nextLine_;
  for (bool more = !rest_.empty(); more;) {
    while (rest_.starts_with(' '))
      rest_.remove_prefix(1);
    std::string_view cell;
    if (rest_.starts_with('"')) {
      rest_.remove_prefix(1);
      if (Status s = quoted(cell); !s.ok())
        return s;
      if (std::string_view extra = plain(); !extra.empty())
        return {MT_INVALID, at() + "expected the end of a cell after its closing quote, found \"" +
                                std::string(extra.substr(0, 40)) + "\""};
    } else {
      cell = plain();
    }
    cells.push_back(cell);
    more = rest_.starts_with(separator_);
    if (!rest_.empty())
      rest_.remove_prefix(1); // the separator or the end of the line
    nextLine_ += !more;
  }
  return {};
}

bool CsvRecords::number(std::string_view cell, double &value) const {
  auto parse = [&](const char *begin, const char *last) {
    auto [end, error] = std::from_chars(begin, last, value);
    return error == std::errc() && end == last;
  };
  if (cell.starts_with('+') && cell.size() > 1 && cell[1] != '-')
    cell.remove_prefix(1);
  if (parse(cell.data(), cell.data() + cell.size()))
    return true;
  char text[64];
  size_t comma = cell.find(',');
  if (separator_ != ';' || comma == std::string_view::npos || cell.size() > sizeof text ||
      cell.find('.') != std::string_view::npos)
    return false;
  std::copy(cell.begin(), cell.end(), text);
  text[comma] = '.';
  return parse(text, text + cell.size());
}

} // namespace mtrun
