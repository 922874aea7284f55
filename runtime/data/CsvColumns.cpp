// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/CsvColumns.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/device/AvailableMemory.h"
#include "runtime/support/suggest.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>

namespace mtrun {
namespace {

using Cells = std::vector<std::string_view>;

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

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// The rule of one column, as the training rows determine it.
class ColumnFit {
public:
  ColumnRule rule;
  bool decided = false;                                  // the kind is known: by a key, or by the first cell
  bool standardize = false, chosenToStandardize = false; // chosen: by its name
  int64_t quantiles = 0;                                 // number of buckets whose bounds the rows determine
  bool allowMissing = false, missingIsMean = false;

  Status add(const CsvRecords &records, std::string_view cell);
  Status finish(const std::string &where);

private:
  Status fillNumbers(const std::string &where);
  Status fillCategories(const std::string &where);

  std::vector<double> numbers_;
  std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>> counts_;
};

bool hasNumbers(const ColumnRule &rule) {
  return rule.kind == ColumnKind::Number || rule.kind == ColumnKind::Date || rule.kind == ColumnKind::Buckets;
}

bool isMissing(std::string_view cell) {
  for (std::string_view word : {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"})
    if (cell == word)
      return true;
  return false;
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

// The number of a cell of a column of numbers or dates, before it is standardised; nullopt: it is missing.
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

} // namespace

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

Status ColumnFit::add(const CsvRecords &records, std::string_view cell) {
  if (!decided) {
    double number = 0;
    if (isMissing(cell) && allowMissing)
      return {};
    rule.kind = records.number(cell, number) || cell.empty() ? ColumnKind::Number : ColumnKind::Category;
    decided = true;
  }
  if (hasNumbers(rule)) {
    std::optional<double> value;
    if (Status s = numberOf(records, rule, allowMissing, cell, value); !s.ok())
      return s;
    if (value)
      numbers_.push_back(*value);
    return {};
  }
  if (cell.empty() && !allowMissing)
    return {MT_INVALID, records.at() + "expected a text for " + rule.name +
                            ", found an empty cell; missing=mean makes the empty cell a category"};
  if (!isUtf8(cell))
    return {MT_INVALID, records.at() + "expected a text in UTF-8 for " + rule.name + ", " + foundCell(cell)};
  if (rule.kind == ColumnKind::Hash)
    return {};
  auto found = counts_.find(cell);
  if (found == counts_.end())
    found = counts_.emplace(cell, 0).first;
  ++found->second;
  if (counts_.size() > maxCategories)
    return {MT_INVALID, records.at() + rule.name + " has more than " + std::to_string(maxCategories) +
                            " different texts; hash=" + rule.name + ":1024 puts them into bins, skip=" + rule.name +
                            " leaves the column out"};
  return {};
}

Status ColumnFit::fillNumbers(const std::string &where) {
  if (numbers_.empty())
    return {MT_INVALID, where + ": expected values for " + rule.name + ", found none in the training rows"};
  auto count = static_cast<double>(numbers_.size());
  double mean = 0, squares = 0;
  for (double value : numbers_)
    mean += value;
  mean /= count;
  for (double value : numbers_)
    squares += (value - mean) * (value - mean);
  if (!std::isfinite(squares))
    return {MT_INVALID, where + ": expected values of " + rule.name + " with a finite deviation"};
  if (standardize && rule.kind != ColumnKind::Buckets) {
    rule.mean = mean;
    rule.deviation = std::fmax(std::sqrt(squares / count), 1e-7); // Keras' smallest deviation
  }
  if (missingIsMean)
    rule.missing = mean;
  if (quantiles) {
    std::sort(numbers_.begin(), numbers_.end());
    for (int64_t i = 1; i < quantiles; ++i) {
      double bound = numbers_[static_cast<size_t>(i) * numbers_.size() / static_cast<size_t>(quantiles)];
      if (rule.bounds.empty() || bound > rule.bounds.back())
        rule.bounds.push_back(bound);
    }
  }
  return {};
}

Status ColumnFit::fillCategories(const std::string &where) {
  if (counts_.empty())
    return {MT_INVALID, where + ": expected values for " + rule.name + ", found none in the training rows"};
  auto whole = [](std::string_view text, int64_t &value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  int64_t a = 0, b = 0;
  bool integers = std::all_of(counts_.begin(), counts_.end(), [&](const auto &each) { return whole(each.first, a); });
  std::vector<std::pair<std::string, uint64_t>> order(counts_.begin(), counts_.end());
  // The order of Keras' lookup layers: what is frequent first, then what is last in the alphabet or as a number.
  std::sort(order.begin(), order.end(), [&](const auto &left, const auto &right) {
    if (left.second != right.second)
      return left.second > right.second;
    if (integers && whole(left.first, a) && whole(right.first, b) && a != b)
      return a > b;
    return left.first > right.first;
  });
  for (auto &[text, count] : order)
    rule.values.push_back(text);
  return {};
}

Status ColumnFit::finish(const std::string &where) {
  if (!decided)
    return {MT_INVALID, where + ": expected values for " + rule.name + ", found none in the training rows"};
  if (chosenToStandardize && (!hasNumbers(rule) || rule.kind == ColumnKind::Buckets))
    return {MT_INVALID, where + ": expected standardize= columns of numbers or dates, found " + rule.name};
  rule.emptyIsCategory = allowMissing && !hasNumbers(rule);
  if (rule.emptyIsCategory)
    rule.missing.reset();
  if (hasNumbers(rule))
    return fillNumbers(where);
  return rule.kind == ColumnKind::Category ? fillCategories(where) : Status();
}

Status chooseColumns(const char *key, const std::string &value, const std::string &where,
                     const std::vector<std::string> &names, std::vector<size_t> &chosen) {
  auto find = [&](std::string_view name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  if (size_t whole = find(value); whole < names.size()) {
    chosen.push_back(whole);
    return {};
  }
  for (std::string_view rest = value;;) {
    size_t plus = rest.find('+');
    std::string_view name = rest.substr(0, plus);
    size_t column = find(name);
    if (column == names.size())
      return {MT_INVALID, where + ": expected " + key + "= columns of " + listOf(names) + ", found " +
                              std::string(name) + didYouMean(name, names)};
    if (std::find(chosen.begin(), chosen.end(), column) == chosen.end())
      chosen.push_back(column);
    if (plus == std::string_view::npos)
      return {};
    rest.remove_prefix(plus + 1);
  }
}

namespace {

// Reads the keys of the rules into the fits of the columns.
class Keys {
public:
  Keys(const DataSpec &spec, const std::string &where, const std::vector<std::string> &names,
       const std::vector<size_t> &inputs, std::vector<ColumnFit> &fits)
      : spec_(spec), where_(where), names_(names), inputs_(inputs), fits_(fits) {}
  Status read();

private:
  // Calls `set` for each input column of "a+b".
  Status each(const char *key, const std::string &value, const std::function<Status(ColumnFit &)> &set);
  // Calls `set` for each "NAME:NUMBER[:NUMBER...]" of "a:1+b:2:3".
  using SetNumbers = std::function<Status(ColumnFit &, const std::vector<double> &)>;
  Status eachWithNumbers(const char *key, const std::string &value, const SetNumbers &set);
  Status setKind(const char *key, ColumnFit &fit, ColumnKind kind) const;

  const DataSpec &spec_;
  const std::string &where_;
  const std::vector<std::string> &names_;
  const std::vector<size_t> &inputs_;
  std::vector<ColumnFit> &fits_;
};

} // namespace

Status Keys::each(const char *key, const std::string &value, const std::function<Status(ColumnFit &)> &set) {
  std::vector<size_t> chosen;
  if (value.empty())
    return {};
  if (Status s = chooseColumns(key, value, where_, names_, chosen); !s.ok())
    return s;
  for (size_t column : chosen) {
    auto found = std::find(inputs_.begin(), inputs_.end(), column);
    if (found == inputs_.end())
      return {MT_INVALID, where_ + ": expected " + key + "= columns of the input, found " + names_[column]};
    if (Status s = set(fits_[static_cast<size_t>(found - inputs_.begin())]); !s.ok())
      return s;
  }
  return {};
}

Status Keys::eachWithNumbers(const char *key, const std::string &value, const SetNumbers &set) {
  for (std::string_view rest = value; !rest.empty();) {
    size_t plus = std::min(rest.find('+'), rest.size());
    std::string part(rest.substr(0, plus));
    rest.remove_prefix(std::min(plus + 1, rest.size()));
    size_t colon = std::min(part.find(':'), part.size());
    std::vector<double> numbers;
    bool right = colon < part.size();
    for (std::string_view tail = std::string_view(part).substr(colon); !tail.empty();) {
      tail.remove_prefix(1);
      size_t next = std::min(tail.find(':'), tail.size());
      auto [end, error] = std::from_chars(tail.data(), tail.data() + next, numbers.emplace_back());
      right &= error == std::errc() && end == tail.data() + next && std::isfinite(numbers.back());
      tail.remove_prefix(next);
    }
    if (!right)
      return {MT_INVALID, where_ + ": expected " + key + "= as NAME:NUMBER, found " + part};
    if (Status s = each(key, part.substr(0, colon), [&](ColumnFit &fit) { return set(fit, numbers); }); !s.ok())
      return s;
  }
  return {};
}

Status Keys::setKind(const char *key, ColumnFit &fit, ColumnKind kind) const {
  if (fit.decided)
    return {MT_INVALID, where_ + ": expected one kind for " + fit.rule.name + ", found " + key + "= and " +
                            columnKindName(fit.rule.kind)};
  fit.rule.kind = kind;
  fit.decided = true;
  return {};
}

Status Keys::read() {
  auto whole = [](double value, double least, double most) {
    return value >= least && value <= most && std::nearbyint(value) == value;
  };
  const ColumnKeys &keys = spec_.columns;
  if (Status s = each("categories", keys.categories,
                      [&](ColumnFit &fit) { return setKind("categories", fit, ColumnKind::Category); });
      !s.ok())
    return s;
  if (Status s = each("dates", keys.dates, [&](ColumnFit &fit) { return setKind("dates", fit, ColumnKind::Date); });
      !s.ok())
    return s;
  if (Status s = eachWithNumbers("hash", keys.hash,
                                 [&](ColumnFit &fit, const std::vector<double> &numbers) -> Status {
                                   if (numbers.size() != 1 || !whole(numbers[0], 1, double(maxChoices)))
                                     return {MT_INVALID, where_ + ": expected hash=NAME:N with N of 1 to " +
                                                             std::to_string(maxChoices)};
                                   fit.rule.bins = static_cast<int64_t>(numbers[0]);
                                   return setKind("hash", fit, ColumnKind::Hash);
                                 });
      !s.ok())
    return s;
  if (Status s = eachWithNumbers("buckets", keys.buckets,
                                 [&](ColumnFit &fit, const std::vector<double> &numbers) -> Status {
                                   if (!std::is_sorted(numbers.begin(), numbers.end(), std::less_equal<>()))
                                     return {MT_INVALID, where_ + ": expected buckets=NAME:A:B with ascending bounds"};
                                   fit.rule.bounds = numbers;
                                   return setKind("buckets", fit, ColumnKind::Buckets);
                                 });
      !s.ok())
    return s;
  if (Status s = eachWithNumbers("quantiles", keys.quantiles,
                                 [&](ColumnFit &fit, const std::vector<double> &numbers) -> Status {
                                   if (numbers.size() != 1 || !whole(numbers[0], 2, double(maxCategories)))
                                     return {MT_INVALID, where_ + ": expected quantiles=NAME:N with N of 2 to " +
                                                             std::to_string(maxCategories)};
                                   fit.quantiles = static_cast<int64_t>(numbers[0]);
                                   return setKind("quantiles", fit, ColumnKind::Buckets);
                                 });
      !s.ok())
    return s;
  if (Status s = each("index", keys.index, [](ColumnFit &fit) { return fit.rule.index = true, Status(); }); !s.ok())
    return s;
  for (ColumnFit &fit : fits_) {
    fit.allowMissing = !keys.missing.empty();
    fit.missingIsMean = keys.missing == "mean";
    if (fit.allowMissing && !fit.missingIsMean) {
      double value = 0;
      auto [end, error] = std::from_chars(keys.missing.data(), keys.missing.data() + keys.missing.size(), value);
      if (error != std::errc() || *end || !std::isfinite(value))
        return {MT_INVALID, where_ + ": expected missing=mean or missing=NUMBER, found " + keys.missing};
      fit.rule.missing = value;
    }
    fit.standardize = keys.standardize == "yes" || keys.standardize == "1";
  }
  if (keys.standardize.empty() || keys.standardize == "yes" || keys.standardize == "1")
    return {};
  return each("standardize", keys.standardize, [](ColumnFit &fit) {
    fit.standardize = fit.chosenToStandardize = true;
    return Status();
  });
}

Status fitColumns(const DataSpec &spec, CsvRecords records, Cells cells, const std::vector<std::string> &names,
                  const std::vector<size_t> &inputs, ColumnRules &rules) {
  std::vector<ColumnFit> fits(inputs.size());
  const std::string where = records.where();
  for (size_t i = 0; i < inputs.size(); ++i) {
    fits[i].rule.name = names[inputs[i]];
    if (!isUtf8(fits[i].rule.name))
      return {MT_INVALID, where + ": expected names of columns in UTF-8, found " + printable(fits[i].rule.name)};
  }
  if (Status s = Keys(spec, where, names, inputs, fits).read(); !s.ok())
    return s;
  for (int64_t sample = 0; !cells.empty() && (spec.end < 0 || sample < spec.end); ++sample) {
    if (cells.size() != names.size())
      return {MT_INVALID, records.at() + "expected " + std::to_string(names.size()) + " values, found " +
                              std::to_string(cells.size())};
    for (size_t i = 0; sample >= spec.begin && i < inputs.size(); ++i)
      if (Status s = fits[i].add(records, cells[inputs[i]]); !s.ok())
        return s;
    if (Status s = records.next(cells); !s.ok())
      return s;
  }
  for (ColumnFit &fit : fits) {
    if (Status s = fit.finish(where); !s.ok())
      return s;
    rules.inputs.push_back(std::move(fit.rule));
  }
  return {};
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

Status ColumnEncoder::add(const CsvRecords &records, const Cells &cells, const std::vector<size_t> &columns) {
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
