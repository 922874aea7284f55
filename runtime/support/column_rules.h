// SPDX-License-Identifier: Apache-2.0
//
// A columns file: how cells of a table become the numbers of a model's inputs. The compiler checks it and stores its
// text in the plan, by which the runtime reads CSV files. It is JSON:
//
//   {"format": "mtc columns 1",
//    "inputs": [{"name": "area", "kind": "number", "mean": 80.5, "deviation": 31.0, "missing": 80.5},
//               {"name": "city", "kind": "category", "values": ["Oslo", "Bergen"]},
//               {"name": "zip", "kind": "hash", "bins": 64, "index": true},
//               {"name": "age", "kind": "buckets", "bounds": [18, 30.5]},
//               {"name": "sold", "kind": "date", "mean": 19000.0, "deviation": 400.0}],
//    "targets": ["price"]}
#pragma once

#include "runtime/support/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtrun {

enum class ColumnKind { Number, Date, Category, Hash, Buckets };

struct ColumnRule {
  std::string name;
  ColumnKind kind = ColumnKind::Number;
  double mean = 0, deviation = 1;  // numbers, dates: the number is (value - mean) / deviation
  std::optional<double> missing;   // numbers, dates, buckets: the value of a missing cell; nullopt: an error
  bool emptyIsCategory = false;    // categories, hashes: an empty cell is a text as any other, not an error
  std::vector<std::string> values; // categories 1, 2, ...; 0 is any other text
  std::vector<double> bounds;      // buckets: the first values of buckets 1, 2, ..., ascending
  int64_t bins = 0;                // hashes: number of them
  bool index = false;              // the number of the category, hash or bucket in place of a 1 among zeros

  // Returns the number of categories, hashes or buckets; 0: numbers and dates have none.
  uint64_t choices() const;
  // Returns how many numbers of a sample the column becomes.
  uint64_t width() const { return choices() && !index ? choices() : 1; }
};

struct ColumnRules {
  std::vector<ColumnRule> inputs;
  std::vector<std::string> targets;

  uint64_t width() const; // of all inputs together
};

constexpr size_t maxCategories = 100'000;              // of a column
constexpr size_t maxColumnRulesBytes = 16 * (1 << 20); // of a columns file
constexpr uint64_t maxChoices = 1 << 24;               // hashes of a column, and numbers of a sample

const char *columnKindName(ColumnKind kind);
// Reads the text of a columns file. MT_INVALID: the message names the column and the problem.
Status parseColumnRules(std::string_view text, ColumnRules &rules);
// Returns the text of a columns file.
std::string columnRulesText(const ColumnRules &rules);

} // namespace mtrun
