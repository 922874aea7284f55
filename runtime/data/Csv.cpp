// SPDX-License-Identifier: Apache-2.0
//
// csv:FILE. The inputs are columns of numbers; the target is a column of numbers or of names. The first line may have
// the names of the columns.
#include "runtime/data/CsvRecords.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"
#include "runtime/support/suggest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace mtrun {
namespace {

using Cells = std::vector<std::string_view>;
constexpr size_t maxListed = 10; // maximum number of names in a note or an error

// The indices of the file's input and target columns.
struct Columns {
  std::vector<std::string> names;
  std::vector<size_t> inputs, targets;
  bool named = false; // the target has names of classes
};

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

// Returns a column's name in one line; a spreadsheet may have split it into several.
std::string columnName(std::string_view text) {
  std::string name;
  for (char c : text)
    if (c == '\n' || c == '\r')
      name += name.ends_with(' ') ? "" : " ";
    else
      name += c;
  return name;
}

std::string listOf(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), maxListed); ++i)
    text += (i ? ", " : "") + oneLine(names[i]);
  return names.size() > maxListed ? text + ", ... (" + std::to_string(names.size()) + ")" : text;
}

} // namespace

// Returns true if the first line has names: none of its cells is a number, or it has a name where the second line has a
// number.
static bool isHeader(const CsvRecords &records, const std::vector<std::string> &first, const Cells &second) {
  bool numbers = false;
  double value = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    bool number = records.number(first[i], value);
    numbers |= number;
    if (!number && !first[i].empty() && i < second.size() && records.number(second[i], value))
      return true;
  }
  return !numbers;
}

// Parses "a+b", the names of columns, or a single name that contains a plus sign.
static Status choose(const char *key, const std::string &value, const std::string &where,
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

// Returns true if the first column has no name and counts the lines, as in exports of spreadsheets and data frames.
static bool countsLines(const CsvRecords &records, const Columns &columns, const Cells &sample) {
  double value = 0;
  return columns.names[0].empty() && records.number(sample[0], value) && (value == 0 || value == 1);
}

static Status chooseColumns(const DataSpec &spec, const CsvRecords &records, const std::string &where,
                            const Cells &sample, Columns &columns, std::vector<std::string> &notes) {
  std::vector<size_t> skipped;
  if (!spec.skip.empty())
    if (Status s = choose("skip", spec.skip, where, columns.names, skipped); !s.ok())
      return s;
  if (!spec.target.empty())
    if (Status s = choose("y", spec.target, where, columns.names, columns.targets); !s.ok())
      return s;
  if (!spec.input.empty())
    if (Status s = choose("x", spec.input, where, columns.names, columns.inputs); !s.ok())
      return s;
  auto has = [](const std::vector<size_t> &list, size_t column) {
    return std::find(list.begin(), list.end(), column) != list.end();
  };
  if (spec.input.empty() && spec.skip.empty() && !has(columns.targets, 0) && columns.names.size() > 2 &&
      countsLines(records, columns, sample)) {
    notes.push_back(where + ": the first column has no name and counts the lines, so it is left out");
    skipped.push_back(0);
  }
  for (size_t i = columns.names.size(); spec.target.empty() && columns.targets.empty() && i-- > 0;)
    if (!has(skipped, i) && !has(columns.inputs, i))
      columns.targets.push_back(i);
  for (size_t i = 0; spec.input.empty() && i < columns.names.size(); ++i)
    if (!has(skipped, i) && !has(columns.targets, i))
      columns.inputs.push_back(i);
  for (size_t i : columns.targets)
    if (has(columns.inputs, i))
      return {MT_INVALID, where + ": expected an input or a target, found " + columns.names[i] + " as both"};
  if (columns.inputs.empty())
    return {MT_INVALID,
            where + ": expected a column for the input in addition to the target, found " + listOf(columns.names)};
  double value = 0;
  columns.named = columns.targets.size() == 1 && !sample[columns.targets[0]].empty() &&
                  !records.number(sample[columns.targets[0]], value);
  return {};
}

namespace {

// Collects the values of the chosen columns, sample by sample.
class Values {
public:
  explicit Values(const Columns &columns) : columns_(columns) {}
  Status add(const CsvRecords &records, const Cells &cells);
  void fill(const std::string &where, Table &table);
  bool empty() const { return inputs_.empty(); }

private:
  const Columns &columns_;
  std::vector<double> inputs_, targets_;
  std::map<std::string, int64_t, std::less<>> numbers_; // numbers of class names, in order of appearance
};

// Makes a field of doubles, or of i64 if all values are whole numbers and `whole` is true.
Field makeField(const std::vector<double> &values, size_t width, bool whole) {
  for (size_t i = 0; whole && i < values.size(); ++i)
    whole = std::nearbyint(values[i]) == values[i] && std::fabs(values[i]) < 0x1p53;
  std::vector<uint8_t> bytes(values.size() * 8);
  for (size_t i = 0; i < values.size(); ++i) {
    auto integer = whole ? static_cast<int64_t>(values[i]) : 0;
    memcpy(bytes.data() + 8 * i, whole ? static_cast<const void *>(&integer) : &values[i], 8);
  }
  Field field;
  field.type = whole ? Stored::I64 : Stored::F64;
  field.samples = values.size() / width;
  field.stride = width * 8;
  field.bytes = share(std::move(bytes));
  return field;
}

} // namespace

Status Values::add(const CsvRecords &records, const Cells &cells) {
  const std::vector<std::string> &names = columns_.names;
  if (cells.size() != names.size())
    return {MT_INVALID, records.at() + "expected " + std::to_string(names.size()) + " values, found " +
                            std::to_string(cells.size())};
  double value = 0;
  for (bool target : {false, true})
    for (size_t i : target ? columns_.targets : columns_.inputs) {
      if (target && columns_.named && !cells[i].empty()) {
        auto found = numbers_.find(cells[i]);
        if (found == numbers_.end())
          found = numbers_.emplace(cells[i], static_cast<int64_t>(numbers_.size())).first;
        targets_.push_back(static_cast<double>(found->second));
        continue;
      }
      if (!records.number(cells[i], value))
        return {MT_INVALID, records.at() + "expected a " + (target && columns_.named ? "name" : "number") + " for " +
                                (names[i].empty() ? "column " + std::to_string(i + 1) : names[i]) + ", found " +
                                (cells[i].empty() ? "an empty cell" : "\"" + oneLine(cells[i].substr(0, 100)) + "\"") +
                                (target || names[i].empty() ? "" : "; skip=" + names[i] + " leaves the column out")};
      (target ? targets_ : inputs_).push_back(value);
    }
  return {};
}

void Values::fill(const std::string &where, Table &table) {
  if (columns_.named) { // the number of a class is its index in the sorted names
    std::vector<double> sorted(numbers_.size());
    for (const auto &[name, number] : numbers_) {
      sorted[static_cast<size_t>(number)] = static_cast<double>(table.classes.size());
      table.classes.push_back(name);
    }
    for (double &target : targets_)
      target = sorted[static_cast<size_t>(target)];
    table.notes.push_back(where + ": " + columns_.names[columns_.targets[0]] + " has the classes " +
                          listOf(table.classes) + ", numbered in this order");
  }
  table.fields.push_back(makeField(inputs_, columns_.inputs.size(), false));
  table.fields.back().name = "columns";
  table.fields.back().shape = {columns_.inputs.size()};
  if (!columns_.targets.empty()) {
    size_t width = columns_.targets.size();
    table.fields.push_back(makeField(targets_, width, true));
    table.fields.back().name = columns_.names[columns_.targets[0]];
    table.fields.back().role = MTRUN_TARGET;
    if (width > 1)
      table.fields.back().shape = {width};
  }
  for (Field &field : table.fields)
    field.where = where;
}

static Status openCsv(const DataSpec &spec, Table &table) {
  std::vector<uint8_t> bytes;
  std::string opened;
  if (Status s = readData(spec.paths[0], bytes, opened); !s.ok())
    return s;
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  CsvRecords records(text, opened);
  Cells cells;
  if (Status s = records.next(cells); !s.ok())
    return s;
  Columns columns;
  for (std::string_view cell : cells)
    columns.names.push_back(columnName(cell));
  CsvRecords second = records;
  Cells following;
  if (Status s = second.next(following); !s.ok())
    return s;
  bool header = spec.header.value_or(isHeader(records, columns.names, following));
  double value = 0;
  if (header) {
    if (!spec.header && std::any_of(columns.names.begin(), columns.names.end(),
                                    [&](const std::string &name) { return records.number(name, value); }))
      table.notes.push_back(opened + ": the first line is read as names of columns; with header=no it is a sample");
    if (Status s = records.next(cells); !s.ok())
      return s;
  } else {
    for (size_t i = 0; i < columns.names.size(); ++i)
      columns.names[i] = std::to_string(i);
  }
  if (cells.empty() || columns.names.size() < 2)
    return {MT_INVALID,
            opened + ": expected lines of at least 2 values, found " + (cells.empty() ? "none" : "1 in each")};
  if (cells.size() != columns.names.size())
    return {MT_INVALID, records.at() + "expected " + std::to_string(columns.names.size()) + " values, found " +
                            std::to_string(cells.size())};
  if (Status s = chooseColumns(spec, records, opened, cells, columns, table.notes); !s.ok())
    return s;
  Values values(columns);
  while (!cells.empty()) {
    if (Status s = values.add(records, cells); !s.ok())
      return s;
    if (Status s = records.next(cells); !s.ok())
      return s;
  }
  values.fill(opened, table);
  return {};
}

extern const SourceKind csvSource = {
    .name = "csv",
    .form = "csv:FILE",
    .help = "columns of numbers, and a target",
    .keys = "x=, y=, label=, skip=, header=",
    .open = openCsv,
    .anyScale = true,
};

} // namespace mtrun
