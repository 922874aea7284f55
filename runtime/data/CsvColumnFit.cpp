// SPDX-License-Identifier: Apache-2.0
//
// Rules of columns from the keys of a source and from the training rows.
#include "runtime/data/CsvColumns.h"
#include "runtime/support/suggest.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace mtrun {
namespace {

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

} // namespace

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
  const ColumnKeys &keys = spec_.columns;
  auto ofKind = [this](const char *key, const std::string &value, ColumnKind kind) {
    return each(key, value, [=, this](ColumnFit &fit) { return setKind(key, fit, kind); });
  };
  // A whole number from `least` to `most` for each column.
  auto ofCount = [this](const char *key, const std::string &value, ColumnKind kind, int64_t least, int64_t most,
                        const std::function<void(ColumnFit &, int64_t)> &set) {
    return eachWithNumbers(key, value, [&](ColumnFit &fit, const std::vector<double> &numbers) -> Status {
      if (numbers.size() != 1 || numbers[0] < double(least) || numbers[0] > double(most) ||
          std::nearbyint(numbers[0]) != numbers[0])
        return {MT_INVALID, where_ + ": expected " + key + "=NAME:N with N of " + std::to_string(least) + " to " +
                                std::to_string(most)};
      set(fit, static_cast<int64_t>(numbers[0]));
      return setKind(key, fit, kind);
    });
  };
  auto setBounds = [this](ColumnFit &fit, const std::vector<double> &numbers) -> Status {
    if (!std::is_sorted(numbers.begin(), numbers.end(), std::less_equal<>()))
      return {MT_INVALID, where_ + ": expected buckets=NAME:A:B with ascending bounds"};
    fit.rule.bounds = numbers;
    return setKind("buckets", fit, ColumnKind::Buckets);
  };
  for (const Status &status :
       {ofKind("categories", keys.categories, ColumnKind::Category), ofKind("dates", keys.dates, ColumnKind::Date),
        ofCount("hash", keys.hash, ColumnKind::Hash, 1, maxChoices,
                [](ColumnFit &fit, int64_t bins) { fit.rule.bins = bins; }),
        eachWithNumbers("buckets", keys.buckets, setBounds),
        ofCount("quantiles", keys.quantiles, ColumnKind::Buckets, 2, maxCategories,
                [](ColumnFit &fit, int64_t quantiles) { fit.quantiles = quantiles; }),
        each("index", keys.index, [](ColumnFit &fit) { return fit.rule.index = true, Status(); })})
    if (!status.ok())
      return status;
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

Status fitColumns(const DataSpec &spec, CsvRecords records, std::vector<std::string_view> cells,
                  const std::vector<std::string> &names, const std::vector<size_t> &inputs, ColumnRules &rules) {
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

} // namespace mtrun
