// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Describe.h"
#include "runtime/data/Column.h"
#include "runtime/data/CsvColumns.h"
#include "runtime/data/Labels.h"
#include "runtime/data/SourceKind.h"
#include "runtime/support/atomic_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

namespace mtrun {
namespace {

constexpr uint64_t maxShown = 8;     // maximum number of printed values of a sample
constexpr uint64_t maxClasses = 100; // maximum number of classes to count and list

std::string text(double value) {
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

} // namespace

static const char *roleText(const Field &field) {
  return field.named ? "" : field.role == MTRUN_INPUT ? " (input)" : " (target)";
}

// Returns a line such as "  image (input): pictures of 72 x 80 to 400 x 391 pixels (height x width): 8 colour, 1 grey,
// 1 CMYK".
static std::string describePictures(const Field &field) {
  const PictureSurvey &seen = field.pictures->seen;
  std::string line = "  " + field.name + roleText(field) + ": pictures";
  if (seen.grey + seen.colour + seen.cmyk == 0)
    return line + ", not looked at";
  auto size = [](const uint32_t (&sides)[2]) { return std::to_string(sides[0]) + " x " + std::to_string(sides[1]); };
  line += " of " + size(seen.least) + " to " + size(seen.most) + " pixels (height x width):";
  std::string kinds;
  for (auto [count, kind] : {std::pair(seen.colour, "colour"), {seen.grey, "grey"}, {seen.cmyk, "CMYK"}})
    if (count)
      kinds += (kinds.empty() ? " " : ", ") + std::to_string(count) + " " + kind;
  return line + kinds;
}

// Returns a line such as "  label (target): u8 [], 0 to 9, mean 4.4". `counts` receives the counts of labels.
static std::string describeField(const Field &field, const std::vector<std::string> &names, uint64_t begin,
                                 uint64_t end, std::string &counts) {
  if (field.pictures)
    return describePictures(field);
  std::string shape;
  for (uint64_t dim : field.shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
  double least = INFINITY, most = -INFINITY, sum = 0;
  uint64_t elements = field.elements(), strange = 0;
  bool labels = !isFloat(field.type) && elements == 1;
  std::map<double, uint64_t> classes;
  for (uint64_t s = begin; s < end; ++s)
    for (uint64_t e = 0; e < elements; ++e) {
      double value = valueAt(field, s, e);
      if (!std::isfinite(value)) {
        ++strange;
        continue;
      }
      least = std::min(least, value);
      most = std::max(most, value);
      sum += value;
      if (labels && classes.size() <= maxClasses)
        ++classes[value];
    }
  if (labels && classes.size() <= maxClasses) {
    counts = "  " + std::to_string(classes.size()) + " classes:";
    for (const auto &[label, count] : classes)
      counts +=
          " " +
          (label >= 0 && label < static_cast<double>(names.size()) ? names[static_cast<size_t>(label)] : text(label)) +
          ": " + std::to_string(count);
  }
  uint64_t finite = (end - begin) * elements - strange;
  std::string line = "  " + field.name + roleText(field) + ": " + storedName(field.type) + " [" + shape + "]";
  if (finite)
    line += ", " + text(least) + " to " + text(most) + ", mean " + text(sum / static_cast<double>(finite));
  return strange ? line + ", " + std::to_string(strange) + " NaN or infinite" : line;
}

static std::string describeSample(const Table &table, uint64_t sample) {
  std::string line = "  sample " + std::to_string(sample) + ":";
  for (const Field &field : table.fields) {
    line += " " + field.name + " =";
    if (field.pictures) {
      line += " " + field.pictures->nameOf(sample) + ";";
      continue;
    }
    uint64_t elements = field.elements();
    for (uint64_t e = 0; e < std::min(elements, maxShown); ++e)
      line += " " + text(valueAt(field, sample, e));
    line += elements > maxShown ? " ...;" : ";";
  }
  line.pop_back();
  return line;
}

Status describeData(const char *specification, int64_t samples, void (*line)(void *, const char *), void *user) {
  DataSpec spec;
  Table table;
  if (Status s = parseDataSpec(specification, spec); !s.ok())
    return s;
  if (Status s = openTable(spec, table); !s.ok())
    return s;
  uint64_t begin, end;
  if (Status s = sampleRange(spec, table.fields[0], begin, end); !s.ok())
    return s;
  line(user, (spec.text + ": " + std::to_string(end - begin) + " samples").c_str());
  for (const std::string &note : table.notes)
    line(user, ("  " + note).c_str());
  for (const Field &field : table.fields) {
    std::string counts;
    line(user, describeField(field, field.role == MTRUN_TARGET ? table.classes : std::vector<std::string>(), begin, end,
                             counts)
                   .c_str());
    if (!counts.empty())
      line(user, counts.c_str());
  }
  for (uint64_t s = begin; s < std::min(end, begin + static_cast<uint64_t>(samples)); ++s)
    line(user, describeSample(table, s).c_str());
  return {};
}

// Returns a line such as "  city: category, 41 numbers (Oslo, Bergen, ...)".
static std::string describeRule(const ColumnRule &rule) {
  uint64_t width = rule.width();
  std::string line = "  " + rule.name + ": " + columnKindName(rule.kind) + ", " + std::to_string(width) +
                     (width == 1 ? " number" : " numbers");
  if (rule.index)
    line += " of 0 to " + std::to_string(rule.choices() - 1);
  if (rule.kind == ColumnKind::Category)
    line += ": any other, " + listOf(rule.values);
  for (size_t i = 0; i < std::min<size_t>(rule.bounds.size(), maxShown); ++i)
    line += (i ? " " : ", bounds ") + text(rule.bounds[i]);
  if (rule.mean != 0 || rule.deviation != 1)
    line += ", mean " + text(rule.mean) + ", deviation " + text(rule.deviation);
  return rule.missing ? line + ", " + text(*rule.missing) + " where it is missing" : line;
}

Status saveColumns(const char *specification, const char *path, void (*line)(void *, const char *), void *user) {
  DataSpec spec;
  ColumnRules rules;
  std::vector<std::string> notes;
  if (Status s = parseDataSpec(specification, spec); !s.ok())
    return s;
  if (!spec.source->columns)
    return {MT_INVALID, "data: expected csv: for a columns file, found \"" + spec.text + "\""};
  if (Status s = fitCsv(spec, rules, notes); !s.ok())
    return s;
  std::string written = columnRulesText(rules);
  ColumnRules read; // what is written can be read
  if (Status s = parseColumnRules(written, read); !s.ok())
    return std::move(s).in(spec.paths[0] + ": ");
  if (Status s = writeAtomically(path, written); !s.ok())
    return s;
  for (const std::string &note : notes)
    line(user, note.c_str());
  line(user, (std::string(path) + ": " + std::to_string(rules.inputs.size()) + " columns, " +
              std::to_string(rules.width()) + " numbers of a sample")
                 .c_str());
  for (const ColumnRule &rule : rules.inputs)
    line(user, describeRule(rule).c_str());
  if (!rules.targets.empty())
    line(user, ("  target: " + listOf(rules.targets)).c_str());
  return {};
}

} // namespace mtrun
