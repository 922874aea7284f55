// SPDX-License-Identifier: Apache-2.0
//
// Columns of a CSV as the numbers of an input, by the rules of a columns file.
#pragma once

#include "runtime/data/CsvRecords.h"
#include "runtime/data/Table.h"
#include "runtime/support/column_rules.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mtrun {

// Returns a list of names for a note or an error, the first of many, each in one line.
std::string listOf(const std::vector<std::string> &names);

// Returns 'found "..."' for a message about a cell.
std::string foundCell(std::string_view cell);

bool hasNumbers(const ColumnRule &rule);
bool isMissing(std::string_view cell);
// The number of a cell of a column of numbers or dates, before it is standardised; nullopt: it is missing.
Status numberOf(const CsvRecords &records, const ColumnRule &rule, bool allowMissing, std::string_view cell,
                std::optional<double> &value);

// Chooses the columns of "a+b", or of a single name that has a plus sign. MT_INVALID: a column that there is not.
Status chooseColumns(const char *key, const std::string &value, const std::string &where,
                     const std::vector<std::string> &names, std::vector<size_t> &chosen);

// Makes rules for the columns `inputs` of the records from the samples of range=. `cells` is the first record.
// MT_INVALID: a cell or a key is wrong.
Status fitColumns(const DataSpec &spec, CsvRecords records, std::vector<std::string_view> cells,
                  const std::vector<std::string> &names, const std::vector<size_t> &inputs, ColumnRules &rules);

// The rules of a columns file for a source of CSV, by its keys.
Status fitCsv(const DataSpec &spec, ColumnRules &rules, std::vector<std::string> &notes);

// Encodes the cells of samples.
class ColumnEncoder {
public:
  explicit ColumnEncoder(const ColumnRules &rules);
  // Makes room for at most `samples`. MT_NO_MEMORY.
  Status reserve(size_t samples, const std::string &where);
  // Adds a sample; column i of the rules is cell columns[i]. MT_INVALID.
  Status add(const CsvRecords &records, const std::vector<std::string_view> &cells, const std::vector<size_t> &columns);
  // Returns one input, or an input for each column with its name.
  std::vector<Field> fields(bool each) &&;

private:
  using Numbers = std::unordered_map<std::string_view, uint64_t>;
  Status encode(const CsvRecords &records, const ColumnRule &rule, const Numbers &categories, std::string_view cell,
                float *out) const;

  const ColumnRules &rules_;
  std::vector<Numbers> categories_; // of each column
  size_t width_;
  std::vector<float> values_;
};

} // namespace mtrun
