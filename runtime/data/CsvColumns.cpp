// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/CsvColumns.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/device/AvailableMemory.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

namespace mtrun {
namespace {

constexpr size_t maxListed = 10; // maximum number of names in a note or an error

// Returns the text of a cell for a message.
std::string oneLine(std::string_view text) {
  std::string line;
  for (char c : text)
    if (c == '\n' || c == '\r')
      line += c == '\n' ? "\\n" : "\\r";
    else
      line += c;
  return line;
}

// Parses YYYY-MM-DD, with or without a time HH:MM[:SS[.FRACTION]] after a space or a T; `days` are since 1970.
bool parseDate(std::string_view cell, double &days) {
  auto take = [&cell](size_t digits, unsigned &value) {
    if (cell.size() < digits)
      return false;
    auto [end, error] = std::from_chars(cell.data(), cell.data() + digits, value);
    bool whole = error == std::errc() && end == cell.data() + digits;
    cell.remove_prefix(whole ? digits : 0);
    return whole;
  };
  auto skip = [&cell](char c) {
    bool there = cell.starts_with(c);
    cell.remove_prefix(there);
    return there;
  };
  unsigned year = 0, month = 0, day = 0, hour = 0, minute = 0;
  if (!take(4, year) || !skip('-') || !take(2, month) || !skip('-') || !take(2, day))
    return false;
  std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)), std::chrono::month(month),
                                   std::chrono::day(day)};
  if (!date.ok())
    return false;
  days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (cell.empty())
    return true;
  if (!(skip(' ') || skip('T')) || !take(2, hour) || !skip(':') || !take(2, minute) || hour > 23 || minute > 59)
    return false;
  double second = 0;
  if (skip(':')) {
    auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), second, std::chars_format::fixed);
    if (error != std::errc() || !(second >= 0 && second < 61))
      return false;
    cell.remove_prefix(static_cast<size_t>(end - cell.data()));
  }
  skip('Z');
  days += (hour * 3600 + minute * 60 + second) / 86400;
  return cell.empty();
}

} // namespace

bool hasNumbers(const ColumnRule &rule) {
  return rule.kind == ColumnKind::Number || rule.kind == ColumnKind::Date || rule.kind == ColumnKind::Buckets;
}

bool isMissing(std::string_view cell) {
  for (std::string_view word : {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"})
    if (cell == word)
      return true;
  return false;
}

Status numberOf(const CsvRecords &records, const ColumnRule &rule, bool allowMissing, std::string_view cell,
                std::optional<double> &value) {
  double number = 0;
  bool date = rule.kind == ColumnKind::Date;
  value.reset();
  if ((date ? parseDate(cell, number) : records.number(cell, number)) && std::isfinite(number)) {
    value = number;
    return {};
  }
  if (allowMissing && isMissing(cell))
    return {};
  std::string advice =
      isMissing(cell) ? "; missing=mean puts the mean of the training rows there"
      : date          ? ""
                      : "; categories=" + rule.name + " takes any cells, skip=" + rule.name + " leaves the column out";
  return {MT_INVALID, records.at() + "expected a " + (date ? "date as 2024-05-31" : "number") + " for " + rule.name +
                          ", " + foundCell(cell) + advice};
}

std::string foundCell(std::string_view cell) {
  if (cell.empty())
    return "found an empty cell";
  return "found \"" + oneLine(cell.substr(0, 100)) + "\"";
}

std::string listOf(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), maxListed); ++i)
    text += (i ? ", " : "") + oneLine(names[i]);
  return names.size() > maxListed ? text + ", ... (" + std::to_string(names.size()) + ")" : text;
}

ColumnEncoder::ColumnEncoder(const ColumnRules &rules)
    : rules_(rules), categories_(rules.inputs.size()), width_(rules.width()) {
  for (size_t column = 0; column < rules.inputs.size(); ++column)
    for (size_t i = 0; i < rules.inputs[column].values.size(); ++i)
      categories_[column].emplace(rules.inputs[column].values[i], i + 1);
}

Status ColumnEncoder::reserve(size_t samples, const std::string &where) {
  if (samples > SIZE_MAX / sizeof(float) / width_)
    return {MT_NO_MEMORY, where + ": expected fewer numbers than fit in memory"};
  if (Status s = checkMemory(samples * width_ * sizeof(float), where + ": the numbers of all columns"); !s.ok())
    return s;
  values_.reserve(samples * width_);
  return {};
}

Status ColumnEncoder::encode(const CsvRecords &records, const ColumnRule &rule, const Numbers &categories,
                             std::string_view cell, float *out) const {
  uint64_t choice = 0;
  if (hasNumbers(rule)) {
    std::optional<double> value;
    if (Status s = numberOf(records, rule, rule.missing.has_value(), cell, value); !s.ok())
      return s;
    double number = value.value_or(rule.missing.value_or(0));
    if (rule.kind != ColumnKind::Buckets) {
      *out = static_cast<float>((number - rule.mean) / rule.deviation);
      return {};
    }
    choice =
        static_cast<uint64_t>(std::upper_bound(rule.bounds.begin(), rule.bounds.end(), number) - rule.bounds.begin());
  } else if (cell.empty() && !rule.emptyIsCategory) {
    return {MT_INVALID, records.at() + "expected a text for " + rule.name + ", found an empty cell"};
  } else if (rule.kind == ColumnKind::Hash) {
    choice = fingerprint(cell) % static_cast<uint64_t>(rule.bins);
  } else if (auto found = categories.find(cell); found != categories.end()) {
    choice = found->second;
  }
  if (rule.index)
    *out = static_cast<float>(choice);
  else
    out[choice] = 1;
  return {};
}

Status ColumnEncoder::add(const CsvRecords &records, const std::vector<std::string_view> &cells,
                          const std::vector<size_t> &columns) {
  values_.resize(values_.size() + width_); // zeros
  float *out = values_.data() + values_.size() - width_;
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnRule &rule = rules_.inputs[i];
    if (Status s = encode(records, rule, categories_[i], cells[columns[i]], out); !s.ok())
      return s;
    out += rule.width();
  }
  return {};
}

std::vector<Field> ColumnEncoder::fields(bool each) && {
  Field all;
  all.name = "columns";
  all.type = Stored::F32;
  all.shape = {width_};
  all.samples = values_.size() / width_;
  all.stride = width_ * sizeof(float);
  auto owner = std::make_shared<std::vector<float>>(std::move(values_));
  all.bytes = {owner, reinterpret_cast<const uint8_t *>(owner->data())};
  if (!each)
    return {all};
  std::vector<Field> fields;
  uint64_t offset = 0;
  for (const ColumnRule &rule : rules_.inputs) {
    Field &field = fields.emplace_back(all);
    field.name = rule.name;
    field.named = true;
    field.shape = {rule.width()};
    field.bytes = {owner, all.bytes.get() + offset};
    offset += rule.width() * sizeof(float);
  }
  return fields;
}

} // namespace mtrun
