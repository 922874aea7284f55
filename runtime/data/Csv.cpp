// SPDX-License-Identifier: Apache-2.0
//
// CSV of numbers: a first line of names if it holds anything but numbers; commas; no quotes. One column is the target,
// the others are the input, or each is bound by its name.
#include "runtime/data/Table.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

namespace mtrun {
namespace {

struct Lines {
  std::string_view text;
  size_t number = 0; // of the line that next() gave, from 1
  bool next(std::string_view &line) {
    while (!text.empty()) {
      size_t end = text.find('\n');
      line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (line.ends_with('\r'))
        line.remove_suffix(1);
      if (!line.empty())
        return true;
    }
    return false;
  }
};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (cell.starts_with(' '))
      cell.remove_prefix(1);
    while (cell.ends_with(' '))
      cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos)
      return cells;
    line.remove_prefix(comma + 1);
  }
}

bool number(std::string_view text, double &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

static Status chooseLabel(const DataSpec &spec, const std::string &where, const std::vector<std::string> &names,
                          size_t &label) {
  label = names.size() - 1;
  if (spec.label.empty())
    return {};
  for (label = 0; label < names.size(); ++label)
    if (names[label] == spec.label)
      return {};
  std::string known;
  for (const std::string &name : names)
    known += (known.empty() ? "" : ", ") + name;
  return {MT_INVALID, where + ": expected label= one of " + known + ", found " + spec.label};
}

// A field of some columns of the table; whole numbers become i64 where `target`.
static Field makeField(const std::vector<double> &values, size_t columns, size_t label, bool target) {
  size_t rows = values.size() / columns, width = target ? 1 : columns - 1;
  bool whole = target;
  std::vector<double> chosen;
  chosen.reserve(rows * width);
  for (size_t i = 0; i < values.size(); ++i)
    if ((i % columns == label) == target) {
      chosen.push_back(values[i]);
      whole &= std::nearbyint(values[i]) == values[i] && std::fabs(values[i]) < 0x1p53;
    }
  std::vector<uint8_t> bytes(chosen.size() * 8);
  for (size_t i = 0; i < chosen.size(); ++i) {
    auto integer = whole ? static_cast<int64_t>(chosen[i]) : 0;
    memcpy(bytes.data() + 8 * i, whole ? static_cast<void *>(&integer) : &chosen[i], 8);
  }
  Field field;
  field.role = target ? MTRUN_TARGET : MTRUN_INPUT;
  field.type = whole ? Stored::I64 : Stored::F64;
  if (!target)
    field.shape = {width};
  field.samples = rows;
  field.stride = width * 8;
  field.bytes = share(std::move(bytes));
  return field;
}

Status openCsv(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> bytes;
  std::string found;
  if (Status s = readData(spec.paths[0], bytes, found); !s.ok())
    return s;
  Lines lines = {{reinterpret_cast<const char *>(bytes.data()), bytes.size()}};
  std::vector<std::string> names;
  std::vector<double> values;
  for (std::string_view line; lines.next(line);) {
    std::vector<std::string_view> cells = split(line);
    double value = 0;
    if (names.empty()) {
      bool header = false;
      for (size_t i = 0; i < cells.size(); ++i) {
        header |= !number(cells[i], value);
        names.push_back(std::to_string(i));
      }
      if (header) {
        names.assign(cells.begin(), cells.end());
        continue;
      }
    }
    std::string at = found + ", line " + std::to_string(lines.number) + ": ";
    if (cells.size() != names.size())
      return {MT_INVALID,
              at + "expected " + std::to_string(names.size()) + " values, found " + std::to_string(cells.size())};
    for (size_t i = 0; i < cells.size(); ++i) {
      if (!number(cells[i], value))
        return {MT_INVALID, at + "expected a number for " + names[i] + ", found \"" + std::string(cells[i]) + "\""};
      values.push_back(value);
    }
  }
  if (values.empty() || names.size() < 2)
    return {MT_INVALID,
            found + ": expected lines of at least 2 numbers, found " + (values.empty() ? "none" : "1 in each")};
  size_t label = 0;
  if (Status s = chooseLabel(spec, found, names, label); !s.ok())
    return s;
  for (bool target : {false, true}) {
    table.fields.push_back(makeField(values, names.size(), label, target));
    table.fields.back().name = target ? names[label] : "columns";
    table.fields.back().where = found;
  }
  return {};
}

} // namespace mtrun
