// SPDX-License-Identifier: Apache-2.0
//
// csv:FILE. The inputs are columns of numbers; the target is a column of numbers or of names. The first line may have
// the names of the columns.
#include "runtime/data/CsvColumns.h"
#include "runtime/data/SourceKind.h"
#include "runtime/data/Table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

namespace mtrun {
namespace {

using Cells = std::vector<std::string_view>;

// The indices of the file's input and target columns.
struct Columns {
  std::vector<std::string> names;
  std::vector<size_t> inputs, targets;
  bool named = false; // the target has names of classes
};

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

// Returns true if the first column has no name and counts the lines, as in exports of spreadsheets and data frames.
static bool countsLines(const CsvRecords &records, const Columns &columns, const Cells &sample) {
  double value = 0;
  return columns.names[0].empty() && records.number(sample[0], value) && (value == 0 || value == 1);
}

static Status assignColumns(const DataSpec &spec, const CsvRecords &records, const std::string &where,
                            const Cells &sample, Columns &columns, std::vector<std::string> &notes) {
  std::vector<size_t> skipped;
  if (!spec.skip.empty())
    if (Status s = chooseColumns("skip", spec.skip, where, columns.names, skipped); !s.ok())
      return s;
  if (!spec.target.empty())
    if (Status s = chooseColumns("y", spec.target, where, columns.names, columns.targets); !s.ok())
      return s;
  if (!spec.input.empty())
    if (Status s = chooseColumns("x", spec.input, where, columns.names, columns.inputs); !s.ok())
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

// Finds the columns of a columns file by their names. A file without the targets is for predictions.
static Status findColumns(const ColumnRules &rules, const std::string &where, Columns &columns, const Cells &sample,
                          const CsvRecords &records) {
  auto find = [&](const std::string &name, std::vector<size_t> &found) {
    auto at = std::find(columns.names.begin(), columns.names.end(), name);
    if (at != columns.names.end())
      found.push_back(static_cast<size_t>(at - columns.names.begin()));
    return at != columns.names.end();
  };
  for (const ColumnRule &rule : rules.inputs)
    if (!find(rule.name, columns.inputs))
      return {MT_INVALID, where + ": expected the columns of the plan's columns file, found none named \"" + rule.name +
                              "\" in " + listOf(columns.names)};
  std::string missing;
  for (const std::string &target : rules.targets)
    if (!find(target, columns.targets))
      missing = target;
  if (!missing.empty() && !columns.targets.empty())
    return {MT_INVALID, where + ": expected all targets or none, found no column \"" + missing + "\""};
  double value = 0;
  columns.named = columns.targets.size() == 1 && !sample[columns.targets[0]].empty() &&
                  !records.number(sample[columns.targets[0]], value);
  return {};
}

namespace {

// Collects the values of the chosen columns, sample by sample.
class Values {
public:
  // `encoder`: of the input columns; null: they have numbers.
  Values(const Columns &columns, ColumnEncoder *encoder) : columns_(columns), encoder_(encoder) {}
  Status add(const CsvRecords &records, const Cells &cells);
  void fill(const std::string &where, bool each, Table &table);

private:
  Status addNumber(const CsvRecords &records, std::string_view cell, size_t column, bool target);

  const Columns &columns_;
  ColumnEncoder *encoder_;
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

Status Values::addNumber(const CsvRecords &records, std::string_view cell, size_t column, bool target) {
  const std::string &name = columns_.names[column];
  double value = 0;
  if (records.number(cell, value)) {
    (target ? targets_ : inputs_).push_back(value);
    return {};
  }
  std::string advice;
  if (!target && !name.empty())
    advice = "; skip=" + name + " leaves the column out, a columns file (mtrun data --save-columns) encodes it";
  return {MT_INVALID, records.at() + "expected a " + (target && columns_.named ? "name" : "number") + " for " +
                          (name.empty() ? "column " + std::to_string(column + 1) : name) + ", " + foundCell(cell) +
                          advice};
}

Status Values::add(const CsvRecords &records, const Cells &cells) {
  if (cells.size() != columns_.names.size())
    return {MT_INVALID, records.at() + "expected " + std::to_string(columns_.names.size()) + " values, found " +
                            std::to_string(cells.size())};
  if (encoder_)
    if (Status s = encoder_->add(records, cells, columns_.inputs); !s.ok())
      return s;
  for (size_t i = 0; !encoder_ && i < columns_.inputs.size(); ++i)
    if (Status s = addNumber(records, cells[columns_.inputs[i]], columns_.inputs[i], false); !s.ok())
      return s;
  for (size_t i : columns_.targets) {
    if (!columns_.named || cells[i].empty()) {
      if (Status s = addNumber(records, cells[i], i, true); !s.ok())
        return s;
      continue;
    }
    auto found = numbers_.find(cells[i]);
    if (found == numbers_.end())
      found = numbers_.emplace(cells[i], static_cast<int64_t>(numbers_.size())).first;
    targets_.push_back(static_cast<double>(found->second));
  }
  return {};
}

void Values::fill(const std::string &where, bool each, Table &table) {
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
  if (encoder_) {
    table.fields = std::move(*encoder_).fields(each);
  } else {
    table.fields.push_back(makeField(inputs_, columns_.inputs.size(), false));
    table.fields.back().name = "columns";
    table.fields.back().shape = {columns_.inputs.size()};
  }
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

namespace {

// An open file, at its first sample.
struct File {
  std::vector<uint8_t> bytes;
  std::string where;
  std::optional<CsvRecords> records;
  Cells cells; // of the first sample
  Columns columns;

  Status open(const DataSpec &spec, std::vector<std::string> &notes);
  size_t lines() const { return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1; }
};

} // namespace

Status File::open(const DataSpec &spec, std::vector<std::string> &notes) {
  if (Status s = readData(spec.paths[0], bytes, where); !s.ok())
    return s;
  records.emplace(std::string_view(reinterpret_cast<const char *>(bytes.data()), bytes.size()), where);
  if (Status s = records->next(cells); !s.ok())
    return s;
  std::vector<std::string> &names = columns.names;
  for (std::string_view cell : cells)
    names.push_back(columnName(cell));
  CsvRecords second = *records;
  Cells following;
  if (Status s = second.next(following); !s.ok())
    return s;
  auto has = [&](const ColumnRule &rule) { return std::find(names.begin(), names.end(), rule.name) != names.end(); };
  bool known = spec.rules && std::all_of(spec.rules->inputs.begin(), spec.rules->inputs.end(), has);
  bool header = spec.header.value_or(known || isHeader(*records, names, following));
  double value = 0;
  if (header) {
    if (!spec.header && !known &&
        std::any_of(names.begin(), names.end(), [&](const std::string &name) { return records->number(name, value); }))
      notes.push_back(where + ": the first line is read as names of columns; with header=no it is a sample");
    if (Status s = records->next(cells); !s.ok())
      return s;
  } else {
    for (size_t i = 0; i < names.size(); ++i)
      names[i] = std::to_string(i);
  }
  if (cells.empty() || (names.size() < 2 && !spec.rules))
    return {MT_INVALID,
            where + ": expected lines of at least 2 values, found " + (cells.empty() ? "none" : "1 in each")};
  if (cells.size() != names.size())
    return {MT_INVALID, records->at() + "expected " + std::to_string(names.size()) + " values, found " +
                            std::to_string(cells.size())};
  return {};
}

// Returns an error if keys choose columns or encodings and the plan has a columns file, or has none but needs one.
static Status checkKeys(const DataSpec &spec) {
  bool encodes = spec.columns.any();
  std::string found = "found \"" + spec.text + "\"";
  if (spec.rules && (encodes || spec.scaled || !spec.input.empty() || !spec.target.empty() || !spec.skip.empty()))
    return {MT_INVALID, spec.paths[0] +
                            ": expected no x=, y=, skip=, scale= and no key of an encoding, because the "
                            "plan has a columns file, " +
                            found};
  if (!spec.rules && encodes && !spec.wanted.empty())
    return {MT_INVALID, spec.paths[0] + ": expected a plan with a columns file, " + found + "; mtrun data " +
                            spec.text +
                            " --save-columns FILE writes the file, and mtc compile --columns FILE takes it"};
  return {};
}

// Makes the rules of a columns file from the file's training rows.
static Status fit(const DataSpec &spec, File &file, std::vector<std::string> &notes, ColumnRules &rules) {
  if (Status s = assignColumns(spec, *file.records, file.where, file.cells, file.columns, notes); !s.ok())
    return s;
  for (size_t target : file.columns.targets)
    rules.targets.push_back(file.columns.names[target]);
  return fitColumns(spec, *file.records, file.cells, file.columns.names, file.columns.inputs, rules);
}

Status fitCsv(const DataSpec &spec, ColumnRules &rules, std::vector<std::string> &notes) {
  File file;
  if (Status s = file.open(spec, notes); !s.ok())
    return s;
  return fit(spec, file, notes, rules);
}

static Status openCsv(const DataSpec &spec, Table &table) {
  File file;
  ColumnRules fitted;
  if (Status s = checkKeys(spec); !s.ok())
    return s;
  if (Status s = file.open(spec, table.notes); !s.ok())
    return s;
  const ColumnRules *rules = spec.rules.get();
  if (rules) {
    if (Status s = findColumns(*rules, file.where, file.columns, file.cells, *file.records); !s.ok())
      return s;
  } else if (spec.columns.any()) {
    if (Status s = fit(spec, file, table.notes, fitted); !s.ok())
      return s;
    rules = &fitted;
  } else if (Status s = assignColumns(spec, *file.records, file.where, file.cells, file.columns, table.notes);
             !s.ok()) {
    return s;
  }
  std::optional<ColumnEncoder> encoder;
  if (rules)
    if (Status s = encoder.emplace(*rules).reserve(file.lines(), file.where); !s.ok())
      return s;
  Values values(file.columns, encoder ? &*encoder : nullptr);
  while (!file.cells.empty()) {
    if (Status s = values.add(*file.records, file.cells); !s.ok())
      return s;
    if (Status s = file.records->next(file.cells); !s.ok())
      return s;
  }
  auto isInput = [](const Wanted &wanted) { return wanted.role == MTRUN_INPUT; };
  values.fill(file.where, std::count_if(spec.wanted.begin(), spec.wanted.end(), isInput) > 1, table);
  return {};
}

extern const SourceKind csvSource = {
    .name = "csv",
    .form = "csv:FILE",
    .help = "columns of numbers, and a target; with a columns file also of words and dates",
    .keys = "x=, y=, label=, skip=, header=, standardize=, categories=, hash=, buckets=, quantiles=, dates=, index=, "
            "missing=",
    .open = openCsv,
    .anyScale = true,
    .columns = true,
};

} // namespace mtrun
